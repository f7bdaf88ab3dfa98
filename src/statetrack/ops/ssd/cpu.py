"""Mamba-2's recurrence on a CPU: E88's kernel without a nonlinearity and without a delta rule.

With S = h^T, k = b, q = c and v = dt x, h_t = decay h + dt x b^T is S_t = decay S + k v^T. Step by step it keeps a
state every so often; chunks keep the products of all their steps with one another, which outgrow the cache.
"""

from __future__ import annotations

from torch import Tensor

from statetrack.ops.e88.cpu import e88_cpu


def ssd_cpu(x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, c: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """The shapes of ssd_reference."""
    each = x.shape[2] // b.shape[2]  # heads that share one b and c
    k, q = (side.repeat_interleave(each, dim=2) for side in (b, c))
    columns = state.transpose(-1, -2)
    v = dt.unsqueeze(-1) * x
    y, last = e88_cpu(q, k.unsqueeze(2), v.unsqueeze(2), decay, None, columns, "identity")
    return y, last.transpose(-1, -2)
