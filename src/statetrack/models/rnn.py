"""The classic recurrent networks, on torch's own kernels: h' = tanh(W h + U x + b), GRU and LSTM."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn

from statetrack.errors import unknown
from statetrack.models.layers import Embedding, Linear
from statetrack.models.sequence import SequenceModel, Shape, State, whole_numbers

# The weights of all replicas are rows of one matrix, and cuDNN gathers those of a network at every call.
warnings.filterwarnings("ignore", message="RNN module weights are not part of single contiguous chunk of memory")

CELLS: dict[str, Callable[..., nn.RNNBase]] = {"tanh": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class ClassicRNN(SequenceModel):
    """Embedding, `layers` of one cell, a linear head. The state is h of every layer, and for an LSTM c as well."""

    # torch's kernels take the weights of one network, so replicas run one after another.
    foldable = False

    def __init__(
        self, *, inputs: int, outputs: int, cell: str = "tanh", layers: int = 1, hidden: int = 128, dim: int = 128,
        learned_start: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(inputs, outputs)
        if cell not in CELLS:
            raise unknown("cell", cell, CELLS)
        whole_numbers(layers=layers, hidden=hidden, dim=dim)
        self.cell, self.layers, self.hidden = cell, layers, hidden
        self.embedding = Embedding(inputs, dim)
        self.rnn = CELLS[cell](dim, hidden, layers, batch_first=True)
        self.head = Linear(hidden, outputs)
        if learned_start:
            self.learn_start()

    def state_shapes(self) -> list[Shape]:
        return [(self.layers, self.hidden)] * (2 if self.cell == "lstm" else 1)

    def forward_from(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        x = self.embedding(ids)
        # torch wants the layers before the rows.
        before = tuple(part.transpose(0, 1).contiguous() for part in state)
        with torch.autocast(x.device.type, enabled=False):
            h, last = self.rnn(x, before if self.cell == "lstm" else before[0])
        after = last if self.cell == "lstm" else (last,)
        return self.head(h), tuple(part.transpose(0, 1) for part in after)
