"""Parity on E88 as published, whose every step contracts: the state shrinks, and its sign is still the parity.

The state is one entry s, and v = 0. Its key is e_0, and a step multiplies what lies along the key by d - 1, all else
by d:

    token 0, key e_1   s <- tanh(d s)          the sign stays
    token 1, key e_0   s <- tanh((d - 1) s)    the sign flips

Any two states come closer under every input, and yet in exact arithmetic the sign is right at every length: the answer
is read at a margin that goes to 0. In float32 s ends among the smallest numbers there are, which round back to
themselves for the decays given here. Any error of fixed size in the steps ends it.
"""

from __future__ import annotations

import math

import torch

from statetrack.models import model
from statetrack.models.sequence import SequenceModel
from statetrack.models.witnesses.setting import cleared, one_hot_inputs
from statetrack.models.witnesses.toggle import HEADS, N

LARGE = 1e6  # a key before it is made a unit vector, so that the 1e-6 in the divisor is lost in rounding


def sign(keep: float = 0.9, flip: float = 0.1) -> SequenceModel:
    """Parity by the sign of a state that shrinks; `keep` and `flip` are the decays of the tokens 0 and 1.

    >>> sign()(torch.tensor([[1, 0, 1, 1]])).argmax(-1).tolist()
    [[1, 1, 0, 1]]
    """
    made = model("e88-published-1l-small", inputs=2, outputs=2, learned_start=True)
    w = cleared(made)
    one_hot_inputs(w)
    q, k, _ = w["mixers.0.project.weight"].view(3, HEADS, N, -1)[:, 0]
    q[0, :2] = LARGE
    k[1, 0] = k[0, 1] = LARGE
    w["mixers.0.decay.project.weight"][0, :2] = torch.tensor([decay_input(keep), decay_input(flip)])
    w["start.0"][0, 0, 0] = 1.0
    w["mixers.0.out.weight"][-1, 0] = 1.0
    w["head.weight"][:, -1] = torch.tensor([1.0, -1.0])
    return made


def decay_input(decay: float) -> float:
    """The z with exp(-softplus(z)) = decay.

    >>> round(math.exp(-math.log1p(math.exp(decay_input(0.9)))), 9)
    0.9
    """
    dt = -math.log(decay)
    return dt + math.log(-math.expm1(-dt))
