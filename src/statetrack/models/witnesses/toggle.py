"""A bit that each token keeps or flips, for ever, on one head of E88 with gain.

The bit is the sign of one entry s of the state, and k = q = e_1, so a token does s <- tanh((a - b) s + v):

    keep   a - b = +g, v = +w      flip   a - b = -g, v = -W      with g about 1.9, w = .05, W = .25

With a gain g above 1 the map has two stable points: whatever noise there is, s returns to one of them. The state starts
at 0, between the two, so the first token must choose a side: +w (nothing flipped) or -W (flipped). From tanh(-W) a keep
must not lead back, and does not: tanh(W) = .24 lies beyond the unstable point near w / (g - 1) = .06.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from statetrack.errors import BadInput
from statetrack.models.build import model
from statetrack.models.sequence import SequenceModel
from statetrack.models.witnesses.setting import SATURATED, Table, classes, cleared, one_hot_inputs, table

GAIN = 3.0  # 2 sigmoid(3) = 1.905 and 4 sigmoid(3) = 3.81, so a - b is +1.905 or -1.905
KEEP, FLIP = 0.05, -0.25
HEADS, N = 4, 8


def toggle(
    delta: Table, answers: Sequence[int] | NDArray[np.integer] = (0, 1), *, outputs: int | None = None
) -> SequenceModel:
    """delta[state][token] for the states 0 (the start) and 1, where every token keeps both or swaps them.

    >>> parity = toggle([[0, 1], [1, 0]])
    >>> parity(torch.tensor([[1, 0, 1, 1]])).argmax(-1).tolist()
    [[1, 1, 0, 1]]
    """
    moves = table("delta", delta, below=2)
    if len(moves) != 2 or (moves[0] == moves[1]).any():
        raise BadInput("delta must have two states, and every token must keep both or swap them")
    answer, count = classes(answers, 2, outputs)
    tokens = moves.shape[1]
    # One dimension for each token, and one for the answer.
    made = model("e88-gain-1l-small", inputs=tokens, outputs=count, heads=HEADS, n_state=N, dim=max(64, tokens + 1))
    w = cleared(made)
    one_hot_inputs(w)
    set_head(w, torch.from_numpy(moves[0] == 1))
    read_sign(w, answer)
    return made


def set_head(w: dict[str, Tensor], flips: Tensor) -> None:
    """Head 0: q = k = e_1; v_1 and b by the token; the same a for all."""
    tokens = len(flips)
    q, k, v = w["mixers.0.project.weight"].view(3, HEADS, N, -1)[:, 0, 0, :tokens]
    q.fill_(1.0)
    k.fill_(1.0)
    v.copy_(torch.where(flips, silu_inverse(FLIP), silu_inverse(KEEP)))
    w["mixers.0.decay.project.bias"].fill_(GAIN)
    w["mixers.0.beta.project.weight"][0, :tokens] = torch.where(flips, GAIN, -SATURATED)
    w["mixers.0.out.weight"][-1, 0] = 1.0


def read_sign(w: dict[str, Tensor], answer: list[int]) -> None:
    """The last dimension holds s alone: s > 0 says answer[0], s < 0 answer[1], and no other class comes near."""
    w["head.bias"].fill_(-1e4)
    for sign, own in zip((1.0, -1.0), answer):
        w["head.bias"][own] = 0.0
        w["head.weight"][own, -1] += sign


def silu_inverse(y: float) -> float:
    """The z with z sigmoid(z) = y, for y above the minimum of -.278 that it has at z = -1.278; by halving."""
    low, high = -1.278, 50.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if middle / (1 + math.exp(-middle)) < y else (low, middle)
    return low
