"""Mamba-2's recurrence on an NVIDIA GPU, step by step: it is E88 without a nonlinearity and without a delta rule.

With S = h^T, k = b, q = c and v = x, h_t = decay h + dt x b^T is S_t = decay S + dt k v^T, the form "ssd" of
statetrack/ops/e88/step.cuh. At a state of 16 numbers per channel the steps are so few operations that reading x and
writing y takes longer than they do, so chunks would only add traffic. Columns of S never meet, so a head wider than 32
is run as several heads.
"""

from __future__ import annotations

from torch import Tensor

from statetrack.ops.e88.cuda import SIZES, E88OnCUDA
from statetrack.ops.e88.kernels import in_sizes

WIDEST = SIZES[-1]


def ssd_cuda(x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, c: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """The shapes of ssd_reference; x, b and c may be bfloat16, the rest is float32."""
    heads, p = x.shape[2:]
    parts = p // WIDEST if p > WIDEST else 1
    x = x.unflatten(3, (parts, -1)).flatten(2, 3)
    columns = state.unflatten(2, (parts, -1)).flatten(1, 2).transpose(-1, -2)
    if parts > 1:
        dt, decay = dt.repeat_interleave(parts, dim=2), decay.repeat_interleave(parts, dim=2)
    # Contiguous before the call, so that the backward pass finds them so and does not copy again.
    c, b, x, decay, dt = (tensor.contiguous() for tensor in (c, b, x, decay, dt))
    y, last = in_sizes(SIZES, E88OnCUDA.apply, c, b, x, decay, dt, columns, "ssd", False, None, (0, 0))
    y = y.unflatten(2, (heads, parts)).flatten(3, 4)
    return y, last.transpose(-1, -2).unflatten(1, (heads, parts)).flatten(2, 3)
