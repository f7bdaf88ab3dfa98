"""The classic recurrent networks: h' = tanh(W h + U x + b), GRU and LSTM. The weights are those of torch's cells.

torch's own kernels run one network; several on a GPU a scan of ours takes at once where it can hold their weights. Else
each of them runs by itself. Wherever there is noise on the state a scan of ours puts it on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from statetrack import ops
from statetrack.errors import unknown
from statetrack.models.layers import Embedding, Linear, affine, lookup
from statetrack.models.sequence import SequenceModel, Shape, State, whole_numbers
from statetrack.ops import rnn

# The weights of all replicas are rows of one matrix, and cuDNN gathers those of a network at every call.
warnings.filterwarnings("ignore", message="RNN module weights are not part of single contiguous chunk of memory")


class WhereTheyAre:
    """A cell of torch's that leaves its weights where they are: those of many replicas are no network to cuDNN, which
    else puts the weights of a cell that is copied on a GPU side by side.
    """

    def flatten_parameters(self) -> None:
        pass


class TanhCell(WhereTheyAre, nn.RNN): ...


class GRUCell(WhereTheyAre, nn.GRU): ...


class LSTMCell(WhereTheyAre, nn.LSTM): ...


CELLS: dict[str, Callable[..., nn.RNNBase]] = {"tanh": TanhCell, "gru": GRUCell, "lstm": LSTMCell}
WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class ClassicRNN(SequenceModel):
    """Embedding, `layers` of one cell, a linear head. The state is h of every layer, and for an LSTM c as well."""

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

    def folds(self, count: int) -> bool:
        """A scan that reads the weights anew at every step takes about what torch's kernels take for three networks."""
        weight, least = self.head.weight, 2 if rnn.is_held(self.cell, self.hidden) else 3
        return self.foldable and count >= least and rnn.is_fused(weight.device, self.hidden, weight.dtype)

    @property
    def takes_noise(self) -> bool:  # type: ignore[override]
        return self.foldable

    def forward_from(self, ids: Tensor, state: State, noise: ops.Noise | None = None) -> tuple[Tensor, State]:
        """Noise, that on the first tensor of the state, moves every part of the state once it was read."""
        several_networks = self.head.weight.dim() > 2
        by_scan = several_networks or noise is not None
        h, after = self.by_scan(ids, state, noise) if by_scan else self.by_torch(ids, state)
        return self.head(h), after

    def by_torch(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        # torch wants the layers before the rows.
        before = tuple(part.transpose(0, 1).contiguous() for part in state)
        # To cuDNN training means to keep what a gradient takes, and a diagnosis asks trained networks for gradients.
        self.rnn.training = torch.is_grad_enabled()
        with torch.autocast(ids.device.type, enabled=False):
            h, last = self.rnn(self.embedding(ids), before if self.cell == "lstm" else before[0])
        after = last if self.cell == "lstm" else (last,)
        return h, tuple(part.transpose(0, 1) for part in after)

    def by_scan(self, ids: Tensor, state: State, noise: ops.Noise | None) -> tuple[Tensor, State]:
        with torch.autocast(ids.device.type, enabled=False):
            h, after = ids, []
            for layer in range(self.layers):
                W_ih, W_hh, b_ih, b_hh = (getattr(self.rnn, f"{name}_l{layer}") for name in WEIGHTS)
                inner = None
                if self.cell == "gru":  # the last part of its bias stands within the step
                    inner = b_hh[..., 2 * self.hidden :]
                    b_hh = F.pad(b_hh[..., : 2 * self.hidden], (0, self.hidden))
                if layer > 0:
                    x = affine(h, W_ih, b_ih + b_hh)
                elif ids.numel() >= self.embedding.weight[..., 0].numel():
                    # What a token brings is the same wherever it stands.
                    x = lookup(ids, affine(self.embedding.weight, W_ih, b_ih + b_hh))
                else:
                    x = affine(self.embedding(ids), W_ih, b_ih + b_hh)
                own = tuple(part[:, layer] for part in state)
                h, last = ops.rnn_scan(
                    self.cell, x, W_hh, own, bias=inner, noise=noise, layer=layer, layers=self.layers
                )
                after.append(last)
        return h, tuple(torch.stack(parts, dim=1) for parts in zip(*after))
