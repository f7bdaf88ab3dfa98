"""E88, one step after the other, for autograd to differentiate: slow, and right by inspection."""

from __future__ import annotations

import torch
from torch import Tensor


def e88_reference(
    q: Tensor, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor, state: Tensor, nonlinearity: str
) -> tuple[Tensor, Tensor]:
    """q (B,T,H,N), k (B,T,R,H,N), v (B,T,R,H,V), decay (B,T,H), beta (B,T,R,H), state (B,H,N,V), all of one dtype."""
    outputs = []
    for t in range(q.shape[1]):
        z = decay[:, t, :, None, None] * state + write(state, k[:, t, 0], v[:, t, 0], beta[:, t, 0])
        for j in range(1, k.shape[2]):
            z = z + write(z, k[:, t, j], v[:, t, j], beta[:, t, j])
        state = torch.tanh(z) if nonlinearity == "tanh" else z
        outputs.append(read(state, q[:, t]))
    return torch.stack(outputs, dim=1), state


def read(state: Tensor, key: Tensor) -> Tensor:
    """S^T k: (B,H,N,V) and (B,H,N) give (B,H,V)."""
    return torch.einsum("bhnv,bhn->bhv", state, key)


def write(state: Tensor, key: Tensor, value: Tensor, beta: Tensor) -> Tensor:
    """k (v - beta S^T k)^T: what a delta rule adds to the state."""
    error = value - beta[..., None] * read(state, key)
    return key[..., :, None] * error[..., None, :]
