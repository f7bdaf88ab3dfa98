"""Parity on four layers of Mamba-2, whose decays are positive: it counts the ones, and float32 rounds to even numbers.

    layer 1   n <- n + x, with a decay that rounds to 1; the count goes to two dimensions, n and m
    layer 2   m <- m + c        with c about 1.25 * 2^24, where float32 has the even numbers only
    layer 3   m <- m - c        so m is n for an even n, and n + 1 or n - 1 for an odd one
    layer 4   |n - m| - 1/2, by two gates

The answer is the sign of that. It is right while the count has all its bits, up to about 2^22 ones; after 2^24 one more
is lost. So it refutes that such weights cannot do parity for a million steps, not that they cannot at every length.

All numbers on the way are powers of two, or scaled by a norm that one large constant decides, so that they are exact.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from statetrack.models import model
from statetrack.models.sequence import SequenceModel
from statetrack.models.witnesses.setting import cleared

ONE_HOT, CONSTANT, LARGE, COUNT, EVEN_COUNT, ANSWER = slice(0, 2), 2, 3, 4, 5, 6  # dimensions of the residual stream
HUGE = 2.0**40  # of the dimension LARGE: it decides every norm, sqrt(HUGE^2 / 64) = 2^37
SURE = 32.0  # silu(32) and softplus(32) are exactly 32 in float32
EVEN = 1.25 * 2.0**24
COUNTED, STEADY = 0, 16  # channels of the first head, which counts, and of the second, which forgets at once
CHANNELS, STATE = 128, 16
Z, X, B, C = 0, CHANNELS, 2 * CHANNELS, 2 * CHANNELS + STATE  # rows of the input projection


def even_counter() -> SequenceModel:
    """Parity for about four million ones.

    >>> even_counter()(torch.tensor([[1, 0, 1, 1]])).argmax(-1).tolist()
    [[1, 1, 0, 1]]
    """
    made = model("mamba2-4l", inputs=2, outputs=2)
    w = cleared(made)
    w["embedding.weight"][:, ONE_HOT] = torch.eye(2)
    w["embedding.weight"][:, CONSTANT] = 1.0
    w["embedding.weight"][:, LARGE] = HUGE
    for layer in range(4):
        prepare(w, layer)
    count(w)
    for layer, sign in ((1, 1.0), (2, -1.0)):
        steady(w, layer, SURE)
        # One channel alone is sqrt(128) after the norm.
        w[f"mixers.{layer}.out_proj.weight"][EVEN_COUNT, STEADY] = sign * EVEN / math.sqrt(CHANNELS)
    compare(w)
    w["final_norm.weight"][ANSWER] = HUGE / 8
    w["head.weight"][1, ANSWER] = 1.0
    return made


def prepare(w: dict[str, Tensor], layer: int) -> None:
    """Norms that undo the large constant, a convolution that does nothing, and a second head without memory."""
    w[f"norms.{layer}.weight"][[0, 1, CONSTANT, COUNT, EVEN_COUNT]] = HUGE / 8
    w[f"mixers.{layer}.conv.weight"][:, -1] = 1.0
    w[f"mixers.{layer}.norm.weight"].fill_(1.0)
    w[f"mixers.{layer}.A_log"][1] = 10.0
    w[f"mixers.{layer}.dt_bias"][1] = 1.0
    w[f"mixers.{layer}.D"][1] = 1.0


def steady(w: dict[str, Tensor], layer: int, value: float) -> None:
    """A constant in the first channel of the second head."""
    inputs = w[f"mixers.{layer}.in_proj.weight"]
    inputs[X + STEADY, CONSTANT] = value
    inputs[Z + STEADY, CONSTANT] = SURE


def count(w: dict[str, Tensor]) -> None:
    """h <- h + dt x B = h + 2^15 at a one, read as h C silu(z) = 2^25 n. A constant of 2^60 decides the norm behind."""
    inputs = w["mixers.0.in_proj.weight"]
    inputs[X + COUNTED, 1] = SURE
    inputs[[B, C, Z + COUNTED], CONSTANT] = SURE
    w["mixers.0.dt_bias"][0] = SURE
    w["mixers.0.A_log"][0] = -100.0
    steady(w, 0, 2.0**45)
    dt = math.log1p(math.e)
    constant = 2.0**45 * SURE * (dt * SURE * SURE + 1)  # x silu(z) (dt B C + D)
    one = 2.0**25 / (constant / math.sqrt(CHANNELS))
    w["mixers.0.out_proj.weight"][[COUNT, EVEN_COUNT], COUNTED] = 1 / one


def compare(w: dict[str, Tensor]) -> None:
    """silu(K (n - m)) + silu(K (m - n)) - silu(K / 2), each in a channel of its own; the norm keeps the sign."""
    inputs, large = w["mixers.3.in_proj.weight"], 1024.0
    inputs[X + STEADY, [COUNT, EVEN_COUNT]] = torch.tensor([large, -large])
    inputs[X + STEADY + 1, [COUNT, EVEN_COUNT]] = torch.tensor([-large, large])
    inputs[X + STEADY + 2, CONSTANT] = large / 2
    inputs[Z + STEADY : Z + STEADY + 3, CONSTANT] = SURE
    w["mixers.3.out_proj.weight"][ANSWER, STEADY : STEADY + 3] = torch.tensor([1.0, 1.0, -1.0])
