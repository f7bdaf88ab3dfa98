"""Mamba-2's recurrence, one step after the other, for autograd to differentiate."""

from __future__ import annotations

import torch
from torch import Tensor


def ssd_reference(x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, c: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """x (B,T,H,P), dt and decay (B,T,H), b and c (B,T,G,N) with G dividing H, state (B,H,P,N).

    h_t = decay_t h_{t-1} + dt_t x_t b_t^T,   y_t = h_t c_t
    """
    heads_per_group = x.shape[2] // b.shape[2]
    outputs = []
    for t in range(x.shape[1]):
        b_t = b[:, t].repeat_interleave(heads_per_group, dim=1)
        c_t = c[:, t].repeat_interleave(heads_per_group, dim=1)
        write = (dt[:, t, :, None] * x[:, t])[..., :, None] * b_t[..., None, :]
        state = decay[:, t, :, None, None] * state + write
        outputs.append(torch.einsum("bhpn,bhn->bhp", state, c_t))
    return torch.stack(outputs, dim=1), state
