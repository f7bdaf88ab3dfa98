"""The linear recurrence, one step after the other, for autograd to differentiate."""

from __future__ import annotations

import torch
from torch import Tensor


def linear_reference(a: Tensor, b: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """a (N,N), (N,) or (B,T,N); b (B,T,N); state (B,N): h_t = A h_{t-1} + b_t at every t, and the last h."""
    states = []
    for t in range(b.shape[1]):
        if a.dim() == 2:
            state = state @ a.T + b[:, t]
        else:
            state = (a if a.dim() == 1 else a[:, t]) * state + b[:, t]
        states.append(state)
    return torch.stack(states, dim=1), state
