"""E88 with gain and several reflections per token: S <- f(a H_R ... H_1 S), H_j = I - b_j k_j k_j^T, b in (0, 2).

With one reflection the map a I - b k k^T is symmetric, and a symmetric tanh network under a repeated input ends in
fixed points or cycles of two: it counts modulo 2 and no further. A product of reflections need not be symmetric. A
reflection along e_i - e_j swaps two entries of every column, and an elementwise tanh with gain (a in (1, 2)) pulls the
entries back to two values, so permutations can be multiplied for ever (see witnesses/permutations.py).

Nothing is written: the state starts as a matrix that marks every place (or a learned one), tokens act on it, and all of
it is read by a small MLP.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from statetrack import ops
from statetrack.errors import BadInput
from statetrack.models.layers import Linear, Rate, rates_of_scan, unit, xavier
from statetrack.models.sequence import MatrixMixer, Stack, State, whole_numbers


class ReflectionMixer(MatrixMixer):
    """k_j = W_j x of length 1, b_j = 2 sigmoid(.), a = 1 + sigmoid(.) with tanh or a = 1 without; y = MLP(S).

    Before training b_j is about `rate`: from 1 a step forgets what lies along k, from nearly 2 it reflects it. And a is
    about `gain`: the nearer to 2, the further from 0 the numbers that s = tanh(a s) keeps, and the harder it pulls.
    """

    takes_noise = True

    def __init__(
        self, dim: int, heads: int, n_state: int, reflections: int, hidden: int, tanh: bool, rate: float = 1.0,
        gain: float = 1.5,
    ) -> None:  # fmt: skip
        super().__init__(heads, n_state)
        self.reflections = reflections
        self.nonlinearity = "tanh" if tanh else "identity"
        self.keys = xavier(Linear(dim, reflections * heads * n_state, bias=False))
        self.rate = Rate(dim, reflections * heads, 0, 2, start=math.log(rate / (2 - rate)))
        self.gain = Rate(dim, heads, 1, 2, start=math.log((gain - 1) / (2 - gain))) if tanh else None
        self.read = Linear(heads * n_state * n_state, hidden)
        self.out = Linear(hidden, dim)

    def forward(self, x: Tensor, state: State, noise: ops.Noise | None = None) -> tuple[Tensor, State]:
        k = unit(self.keys(x).unflatten(-1, (self.reflections, self.heads, self.n_state)))
        b = self.rate(x).unflatten(-1, (self.reflections, self.heads))
        a = self.gain(x) if self.gain is not None else torch.ones_like(b[:, :, 0])
        none = torch.zeros_like(k)
        states, last = ops.e88_scan(
            None, k, none, a, rates_of_scan(b, a), nonlinearity=self.nonlinearity, state=state[0], noise=noise
        )
        return self.out(F.gelu(self.read(states.flatten(2)))), (last,)


class E88Reflections(Stack):
    """Blocks of RMSNorm, reflections with gain and a residual. Without a learned start, S_0 is 0.9 (2 I - 1)."""

    def __init__(
        self, *, inputs: int, outputs: int, layers: int = 1, heads: int = 4, n_state: int = 8, dim: int = 64,
        reflections: int = 2, hidden: int = 128, tanh: bool = True, learned_start: bool = False, rate: float = 1.0,
        gain: float = 1.5,
    ) -> None:  # fmt: skip
        whole_numbers(layers=layers, heads=heads, n_state=n_state, dim=dim, reflections=reflections, hidden=hidden)
        if not 0 < rate < 2:
            raise BadInput(f"rate={rate} should lie between 0 and 2")
        if not 1 < gain < 2:
            raise BadInput(f"gain={gain} should lie between 1 and 2")
        mixers = [ReflectionMixer(dim, heads, n_state, reflections, hidden, tanh, rate, gain) for _ in range(layers)]
        super().__init__(inputs, outputs, dim, mixers, learned_start)

    def initial_state(self, batch: int, device: torch.device | str | None = None) -> State:
        state = super().initial_state(batch, device)
        if self.start is not None:
            return state
        # From zero nothing could ever follow: maps without a constant term keep zero at zero.
        marked = 0.9 * (2 * torch.eye(state[0].shape[-1], dtype=state[0].dtype, device=state[0].device) - 1)
        return tuple(zeros + marked for zeros in state)
