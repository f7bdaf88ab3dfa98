"""Mamba-2: a causal convolution, then a matrix state per head that decays by exp(dt A) and is written to.

    [z, x, B, C, dt] = W_in u;   x, B, C <- silu(conv(x, B, C));   dt <- softplus(dt + dt_bias);   A = -exp(A_log)
    h_t = exp(dt A) h_{t-1} + dt x_t B_t^T,   y_t = h_t C_t + D x_t,   out = W_out RMSNorm(y silu(z))

The decay exp(dt A) lies in (0, 1). With `negative` it is 2 exp(dt A) - 1, in (-1, 1), and a sign can flip.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from statetrack import ops
from statetrack.errors import BadInput
from statetrack.models.layers import Linear, RMSNorm, at_least_float32, inverse_softplus_dt, log_uniform_A, per_row
from statetrack.models.sequence import Mixer, Shape, Stack, State, whole_numbers


class CausalConv(nn.Module):
    """Each channel's own filter over the last `width` steps, with a bias: y_t = sum_j w_j x_{t - width + 1 + j} + b."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.weight = nn.Parameter(torch.empty(channels, width).uniform_(-(width**-0.5), width**-0.5))
        self.bias = nn.Parameter(torch.empty(channels).uniform_(-(width**-0.5), width**-0.5))

    def forward(self, x: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """x (B, T, C) and the width - 1 inputs before it (B, width - 1, C) -> y, and the inputs to keep."""
        steps = x.shape[1]
        window = torch.cat([before.to(x.dtype), x], dim=1)
        weight = per_row(self.weight, 2, len(x)).unsqueeze(1)
        y = per_row(self.bias, 1, len(x)).unsqueeze(1)
        for j in range(self.width):
            y = torch.addcmul(y, weight[..., j], window[:, j : j + steps])
        return y, window[:, steps:].to(before.dtype)


class Mamba2Mixer(Mixer):
    """The block's work along time; the state is the convolution's window and the matrices h."""

    def __init__(self, dim: int, d_state: int, head_dim: int, expand: int, width: int, negative: bool) -> None:
        super().__init__()
        self.inner, self.d_state, self.head_dim, self.negative = expand * dim, d_state, head_dim, negative
        self.heads = self.inner // head_dim
        channels = self.inner + 2 * d_state
        self.in_proj = Linear(dim, self.inner + channels + self.heads, bias=False)
        self.conv = CausalConv(channels, width)
        self.A_log = nn.Parameter(log_uniform_A(self.heads, low=1.0))
        self.dt_bias = nn.Parameter(inverse_softplus_dt(self.heads))
        self.D = nn.Parameter(torch.ones(self.heads))
        self.norm = RMSNorm(self.inner)
        self.out_proj = Linear(self.inner, dim, bias=False)

    def state_shapes(self) -> list[Shape]:
        window = (self.conv.width - 1, self.inner + 2 * self.d_state)
        return [window, (self.heads, self.head_dim, self.d_state)]

    def forward(self, u: Tensor, state: State) -> tuple[Tensor, State]:
        z, xBC, dt = self.in_proj(u).split([self.inner, self.inner + 2 * self.d_state, self.heads], dim=-1)
        xBC, window = self.conv(xBC, state[0])
        # Apart in memory, as the scan needs them: where this is compiled they are written so, without a copy.
        split = F.silu(xBC).split([self.inner, self.d_state, self.d_state], dim=-1)
        x, B, C = (part.contiguous() for part in split)
        x = x.unflatten(-1, (self.heads, self.head_dim))
        A_log, dt_bias, D = (per_row(p, 1, len(u)).unsqueeze(1) for p in (self.A_log, self.dt_bias, self.D))
        dt = F.softplus(dt.to(at_least_float32(dt)) + dt_bias)
        y, last = self.scan(x, dt, torch.exp(A_log), B, C, state[1])
        y = (y + D.unsqueeze(-1) * x).flatten(-2)
        return self.out_proj(self.norm(y * F.silu(z))), (window, last)

    def scan(self, x: Tensor, dt: Tensor, a: Tensor, B: Tensor, C: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """The recurrence without D, for A = -a."""
        if self.negative:
            return ops.ssd_scan(x, dt, None, B, C, decay=2 * torch.exp(-dt * a) - 1, state=h)
        if self.A_log.dim() == 1:
            return ops.ssd_scan(x, dt, -a[0, 0], B, C, state=h)
        # The scan takes one A per head, and the rows of replicas have their own. So a moves into dt and out of x, and
        # A is -1: exp(dt A) = exp((a dt) (-1)) and dt x = (a dt) (x / a).
        return ops.ssd_scan(x / a.unsqueeze(-1), dt * a, -torch.ones_like(dt[0, 0]), B, C, state=h)


class Mamba2(Stack):
    """Blocks of RMSNorm, Mamba-2 and a residual; no MLP between them."""

    def __init__(
        self, *, inputs: int, outputs: int, layers: int = 4, d_model: int = 64, d_state: int = 16, head_dim: int = 16,
        expand: int = 2, conv_width: int = 4, negative: bool = False, learned_start: bool = False,
    ) -> None:  # fmt: skip
        whole_numbers(layers=layers, d_model=d_model, d_state=d_state, head_dim=head_dim)
        whole_numbers(expand=expand, conv_width=conv_width)
        if expand * d_model % head_dim:
            raise BadInput(f"head_dim {head_dim} does not divide expand x d_model = {expand * d_model}")
        mixers = [Mamba2Mixer(d_model, d_state, head_dim, expand, conv_width, negative) for _ in range(layers)]
        super().__init__(inputs, outputs, d_model, mixers, learned_start)
