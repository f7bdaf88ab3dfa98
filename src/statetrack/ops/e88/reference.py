"""E88, one step after the other, for autograd to differentiate: slow, and right by inspection."""

from __future__ import annotations

import torch
from torch import Tensor

from statetrack.ops.noise import Noise


def e88_reference(
    q: Tensor | None, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor, state: Tensor, nonlinearity: str,
    noise: Noise | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """q (B,T,H,N), k (B,T,R,H,N), v (B,T,R,H,V), decay (B,T,H), beta (B,T,R,H), state (B,H,N,V), all of one dtype.

    Without q all of the state is read, (B,T,N,H,V). Noise comes between the steps; the last state has none.
    """
    outputs = []
    for t in range(k.shape[1]):
        if noise is not None and t > 0:
            state = noise.moved(state, t - 1)
        z = decay[:, t, :, None, None] * state + write(state, k[:, t, 0], v[:, t, 0], beta[:, t, 0])
        for j in range(1, k.shape[2]):
            z = z + write(z, k[:, t, j], v[:, t, j], beta[:, t, j])
        state = torch.tanh(z) if nonlinearity == "tanh" else z
        outputs.append(state.transpose(1, 2) if q is None else read(state, q[:, t]))
    return torch.stack(outputs, dim=1), state


def read(state: Tensor, key: Tensor) -> Tensor:
    """S^T k: (B,H,N,V) and (B,H,N) give (B,H,V)."""
    return torch.einsum("bhnv,bhn->bhv", state, key)


def write(state: Tensor, key: Tensor, value: Tensor, beta: Tensor) -> Tensor:
    """k (v - beta S^T k)^T: what a delta rule adds to the state."""
    error = value - beta[..., None] * read(state, key)
    return key[..., :, None] * error[..., None, :]
