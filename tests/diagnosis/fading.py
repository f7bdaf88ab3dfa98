"""A model whose fate is known: the sign of one number is the parity, and every step shrinks it by a known factor.

    a_t = gain (1 - 2 x_t) a_{t-1},   u_t = u_{t-1} / 2 + (x_t - 1/2),   logit of class 1 = -(a_t + noise u_t + bias)

With `heal` the number is pulled back to +-1 after every step. u is uniform on (-1, 1): with noise the accuracy is 1 up
to gain^t = noise and (1 + gain^t / noise) / 2 beyond, .9 at gain^t = .8 noise. With a bias it falls at once, from 1 to
1/2, where gain^t = bias: negative numbers are then read as positive.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from statetrack.models.sequence import SequenceModel, Shape, State


class Fading(SequenceModel):
    def __init__(self, gain: float, noise: float, heal: bool = False, bias: float = 0.0) -> None:
        super().__init__(2, 2)
        self.gain, self.noise, self.heal, self.bias = gain, noise, heal, bias
        self.first = nn.Parameter(torch.ones(1))

    def state_shapes(self) -> list[Shape]:
        return [(2,)]

    def initial_state(self, batch: int, device: torch.device | str | None = None) -> State:
        return (torch.tensor([[1.0, 0.0]]).repeat(batch, 1),)

    def forward_from(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        a, u = state[0][:, 0], state[0][:, 1]
        said = []
        for t in range(ids.shape[1]):
            x = ids[:, t].float()
            a = self.gain * (1 - 2 * x) * a * self.first
            if self.heal:
                a = torch.tanh(3 * a)
            u = u / 2 + (x - 0.5)
            said.append(-(a + self.noise * u + self.bias))
        logit = torch.stack(said, dim=1)
        return torch.stack([torch.zeros_like(logit), logit], dim=-1), (torch.stack([a, u], dim=1),)
