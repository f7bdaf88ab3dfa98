"""Mamba-2's recurrence in chunks: matrix products inside a chunk, a step from chunk to chunk.

With s_t the running sum of log decay inside the chunk, u_t = dt_t x_t, and h the state before the chunk:

    y_i = sum_{j <= i} exp(s_i - s_j) (c_i . b_j) u_j  +  exp(s_i) h c_i
    h'  = exp(s_last) h + sum_j exp(s_last - s_j) u_j b_j^T

A decay may be negative: its sign is carried as a running product of signs, which is its own inverse.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

# By measurement on a CPU; elsewhere fewer and larger products are better.
CHUNK, CHUNK_ON_CPU = 64, 16


def ssd_chunked(
    x: Tensor, dt: Tensor, log_decay: Tensor, sign: Tensor | None, b: Tensor, c: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """The shapes of ssd_reference; the decay is sign * exp(log_decay), both (B,T,H)."""
    batch, steps, heads, p = x.shape
    size = min(CHUNK_ON_CPU if x.device.type == "cpu" else CHUNK, steps)
    short = -steps % size
    # Padded steps write nothing and keep the state as it is: u = 0, log decay = 0, sign = 1.
    u = in_chunks(pad(x * dt[..., None], (0, 0, 0, 0, 0, short)), size)
    b, c = (in_chunks(pad(side, (0, 0, 0, 0, 0, short)), size) for side in (b, c))
    total = in_chunks(pad(log_decay, (0, 0, 0, short)), size).cumsum(-1)
    future = torch.ones(size, size, dtype=torch.bool, device=x.device).triu(1)
    weights = (total[..., :, None] - total[..., None, :]).masked_fill(future, -torch.inf).exp()
    to_end, from_start = (total[..., -1:] - total).exp(), total.exp()
    if sign is not None:
        flips = in_chunks(pad(sign, (0, 0, 0, short), value=1.0), size).cumprod(-1)
        weights = weights * flips[..., :, None] * flips[..., None, :]
        to_end, from_start = to_end * flips * flips[..., -1:], from_start * flips

    repeat = heads // b.shape[2]
    scores = (c @ b.transpose(-1, -2)).repeat_interleave(repeat, dim=2)
    b, c = (side.repeat_interleave(repeat, dim=2) for side in (b, c))
    y = (scores * weights) @ u
    written = (u * to_end[..., None]).transpose(-1, -2) @ b
    before = []
    for chunk in range(u.shape[1]):
        before.append(state)
        state = from_start[:, chunk, :, -1, None, None] * state + written[:, chunk]
    y = y + (c * from_start[..., None]) @ torch.stack(before, dim=1).transpose(-1, -2)
    return y.transpose(2, 3).reshape(batch, -1, heads, p)[:, :steps], state


def in_chunks(sequence: Tensor, size: int) -> Tensor:
    """(B, T, H, ...) -> (B, chunk, H, size, ...)."""
    return sequence.unflatten(1, (-1, size)).transpose(2, 3)
