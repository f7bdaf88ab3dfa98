"""DeltaNet and its kin: linear in the state, a product of reflections per token, in the block that E88 has.

    S_t = a_t H_R ... H_1 S_{t-1} + writes,   H_j = I - b_j k_j k_j^T,   out_t = S_t^T q_t

DeltaNet has one reflection and a = 1; Gated DeltaNet has a gate a in (0, 1); DeltaProduct has R reflections. The
eigenvalue of H_j along k_j is 1 - b_j: with b in (0, 1) it stays positive, with b in (0, 2) it reaches down to -1.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from statetrack import ops
from statetrack.models.layers import Decay, Linear, Rate, rates_of_scan, unit, xavier
from statetrack.models.sequence import MatrixMixer, Stack, State, whole_numbers


class DeltaMixer(MatrixMixer):
    """Z = a S, then Z <- Z + b_j k_j (v_j - Z^T k_j)^T for j = 1..R, and S = Z."""

    takes_noise = True

    def __init__(self, dim: int, heads: int, n_state: int, reflections: int, gated: bool, negative: bool) -> None:
        super().__init__(heads, n_state)
        self.reflections = reflections
        self.query = xavier(Linear(dim, heads * n_state, bias=False))
        self.project = xavier(Linear(dim, 2 * reflections * heads * n_state, bias=False))
        self.rate = Rate(dim, reflections * heads, 0, 2 if negative else 1)
        self.gate = Decay(dim, heads) if gated else None
        self.out = xavier(Linear(heads * n_state, dim, bias=False))

    def forward(self, x: Tensor, state: State, noise: ops.Noise | None = None) -> tuple[Tensor, State]:
        q = F.silu(self.query(x)).unflatten(-1, (self.heads, self.n_state))
        k, v = F.silu(self.project(x)).unflatten(-1, (2, self.reflections, self.heads, self.n_state)).unbind(2)
        b = self.rate(x).unflatten(-1, (self.reflections, self.heads))
        a = self.gate(x) if self.gate is not None else torch.ones_like(b[:, :, 0])
        q, k, beta = unit(q), unit(k), rates_of_scan(b, a)
        v = b.unsqueeze(-1) * v
        y, last = ops.e88_scan(q, k, v, a, beta, nonlinearity="identity", state=state[0], noise=noise)
        return self.out(y.flatten(-2)), (last,)


class DeltaNet(Stack):
    """DeltaNet, Gated DeltaNet (`gated`) or DeltaProduct (`reflections` above 1); `negative` lets b reach 2."""

    def __init__(
        self, *, inputs: int, outputs: int, layers: int = 1, heads: int = 4, n_state: int = 8, dim: int = 64,
        reflections: int = 1, gated: bool = False, negative: bool = False, learned_start: bool = False,
    ) -> None:  # fmt: skip
        whole_numbers(inputs=inputs, layers=layers, heads=heads, n_state=n_state, dim=dim, reflections=reflections)
        mixers = [DeltaMixer(dim, heads, n_state, reflections, gated, negative) for _ in range(layers)]
        super().__init__(inputs, outputs, dim, mixers, learned_start)
