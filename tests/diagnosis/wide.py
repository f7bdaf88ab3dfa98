"""A model that holds parity, or does not, beside very many numbers that tell nothing, and reads none of it out.

    a_t = (1 - 2 x_t) a_{t-1}    parity, if it is held;    c_t: a chaotic number in (0, 1), moved by the inputs;
    the others are cos(w_i c_t) with w_i so large that they are as good as independent;    logits: c_t and 1 - c_t

With `product` the parity is hidden in two numbers: a sign that c_t chooses, and that sign times a_t.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from statetrack.models.sequence import SequenceModel, Shape, State


class Wide(SequenceModel):
    def __init__(self, others: int, held: bool = True, product: bool = False) -> None:
        super().__init__(2, 2)
        self.others, self.held, self.product = others, held, product
        self.register_buffer("w", 3e4 * torch.randn(others, generator=torch.Generator().manual_seed(0)))
        self.first = nn.Parameter(torch.ones(1))

    def state_shapes(self) -> list[Shape]:
        return [(self.others + 3,)]

    def initial_state(self, batch: int, device: torch.device | str | None = None) -> State:
        return (torch.cat([torch.tensor([1.0, 1.0, 0.3]), torch.zeros(self.others)]).repeat(batch, 1),)

    def forward_from(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        a, c = state[0][:, 0] * state[0][:, 1], state[0][:, 2]
        sign = torch.ones_like(a)
        said = []
        for t in range(ids.shape[1]):
            x = ids[:, t].float()
            if self.held:
                a = a * (1 - 2 * x)
            c = (3.9 * c * (1 - c) + 0.37 * x) % 1.0 * 0.98 + 0.01
            if self.product:
                sign = torch.where((1e4 * c) % 1 < 0.5, 1.0, -1.0)
            said.append(torch.stack([c, 1 - c], dim=-1) * self.first)
        numbers = torch.cat([torch.stack([a * sign, sign, c], dim=1), torch.cos(self.w * c[:, None])], dim=1)
        return torch.stack(said, dim=1), (numbers,)
