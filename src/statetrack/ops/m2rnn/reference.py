"""M2RNN, one step after the other, for autograd to differentiate: slow, and right by inspection."""

from __future__ import annotations

import torch
from torch import Tensor

from statetrack.ops.noise import Noise


def m2rnn_reference(
    q: Tensor, k: Tensor, v: Tensor, f: Tensor, W: Tensor, state: Tensor, noise: Noise | None = None
) -> tuple[Tensor, Tensor]:
    """q, k (B,T,H,N), v (B,T,H,V), f (B,T,H), W (R,H,V,V), state (B,H,N,V), all of one dtype; R divides B.

    Noise comes between the steps; the last state has none.
    """
    W = W.repeat_interleave(len(q) // len(W), dim=0)
    outputs = []
    # Unbound once: the gradient of each step's slice would be as long as the sequence, and the cost quadratic.
    for t, (q_t, k_t, v_t, f_t) in enumerate(zip(q.unbind(1), k.unbind(1), v.unbind(1), f.unbind(1))):
        if noise is not None and t > 0:
            state = noise.moved(state, t - 1)
        Z = torch.tanh(state @ W + k_t.unsqueeze(-1) * v_t.unsqueeze(-2))
        keep = f_t[..., None, None]
        state = keep * state + (1 - keep) * Z
        outputs.append((q_t.unsqueeze(-2) @ state).squeeze(-2))
    return torch.stack(outputs, dim=1), state
