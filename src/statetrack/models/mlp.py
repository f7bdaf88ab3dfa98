"""The MLP: each position on its own, with no memory, so it can do no better than the memoryless floor."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from statetrack.models.layers import Embedding, Linear
from statetrack.models.sequence import SequenceModel, Shape, State, whole_numbers


class MLP(SequenceModel):
    """x <- relu(W x + b) for each layer. It keeps nothing, so it streams in constant memory."""

    def __init__(self, *, inputs: int, outputs: int, layers: int = 4, hidden: int = 128) -> None:
        super().__init__(inputs, outputs)
        whole_numbers(layers=layers, hidden=hidden)
        self.embedding = Embedding(inputs, hidden)
        self.layers = nn.ModuleList([Linear(hidden, hidden) for _ in range(layers)])
        self.head = Linear(hidden, outputs)

    def state_shapes(self) -> list[Shape]:
        return []

    def forward_from(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        x = self.embedding(ids)
        for layer in self.layers:
            x = F.relu(layer(x))
        return self.head(x), ()
