"""M2RNN (Mishra et al. 2026): a matrix state that is multiplied by a learned matrix inside a tanh, with a forget gate.

Z_t = tanh(H_{t-1} W + k_t v_t^T),   H_t = f_t H_{t-1} + (1 - f_t) Z_t,   y_t = H_t^T q_t + w_r * v_t
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from statetrack import ops
from statetrack.models.layers import Linear, Rate, per_row, unit, xavier
from statetrack.models.sequence import MatrixMixer, Stack, State, whole_numbers


class M2RNNMixer(MatrixMixer):
    """q, k, v as in E88; f = sigmoid(W_f x + bias) one number per head; W starts at the identity, w_r at one."""

    takes_noise = True

    def __init__(self, dim: int, heads: int, n_state: int) -> None:
        super().__init__(heads, n_state)
        self.project = xavier(Linear(dim, 3 * heads * n_state, bias=False))
        self.forget = Rate(dim, heads, 0, 1)
        self.W = nn.Parameter(torch.eye(n_state).repeat(heads, 1, 1))
        self.w_r = nn.Parameter(torch.ones(heads, n_state))
        self.out = xavier(Linear(heads * n_state, dim, bias=False))

    def forward(self, x: Tensor, state: State, noise: ops.Noise | None = None) -> tuple[Tensor, State]:
        q, k, v = F.silu(self.project(x)).unflatten(-1, (3, self.heads, self.n_state)).unbind(-3)
        y, last = ops.m2rnn_scan(unit(q), unit(k), v, self.forget(x), self.W, state=state[0], noise=noise)
        y = y + per_row(self.w_r, 2, len(x)).unsqueeze(1) * v
        return self.out(y.flatten(-2)), (last,)


class M2RNN(Stack):
    """Blocks of RMSNorm, M2RNN and a residual, in the size of the small E88."""

    def __init__(
        self, *, inputs: int, outputs: int, layers: int = 1, heads: int = 4, n_state: int = 8, dim: int = 64,
        learned_start: bool = False,
    ) -> None:  # fmt: skip
        whole_numbers(inputs=inputs, layers=layers, heads=heads, n_state=n_state, dim=dim)
        mixers = [M2RNNMixer(dim, heads, n_state) for _ in range(layers)]
        super().__init__(inputs, outputs, dim, mixers, learned_start)
