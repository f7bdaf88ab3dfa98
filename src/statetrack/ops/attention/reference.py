"""The attention as its equation."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def attention_reference(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """softmax(q k^T / sqrt(D)) v over the positions up to each one."""
    steps = q.shape[-2]
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    later = torch.ones(steps, steps, dtype=torch.bool, device=q.device).triu(1)
    return scores.masked_fill(later, -math.inf).softmax(-1) @ v
