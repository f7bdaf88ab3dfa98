"""How long a state can be held when every step may be off by up to s: theorems A to D of docs/theory.md.

An s-run adds to every entry of the state, after each step, an error of at most s. A network s-holds a task if every
s-run on every word is answered rightly. A horizon is a number of steps within which errors can make one state of two
that the task keeps apart; so nothing is s-held beyond it. That says nothing of a single implementation, whose errors
are not the worst ones.
"""

from __future__ import annotations

import math


def contraction(factor: float, diameter: float, s: float) -> int:
    """A: two states come closer by `factor` < 1 in every step, and errors take off 2 s more: d <- factor d - 2 s.

    >>> contraction(0.9, 2.0, 0.01)
    23
    """
    return math.ceil(math.log1p(diameter * (1 - factor) / (2 * s)) / -math.log(factor))


def squashing(s: float) -> int:
    """A, where the decay may be 1: |tanh a - tanh b| <= 2 tanh(|a - b| / 2), from 2 apart, and errors take off 2 s.

    It grows like s^(-2/3):

    >>> squashing(0.001), squashing(1e-6)
    (172, 17437)
    """
    apart, steps = 2.0, 0
    while apart > 0:
        apart = 2 * math.tanh(apart / 2) - 2 * s
        steps += 1
    return steps


def monotone(word: int, entries: int, diameter: float, s: float) -> int:
    """B: under a repeated word every entry moves one way only, so in some round none of them moves by more than 2 s.

    >>> monotone(1, 64, 2.0, 0.01)
    6401
    """
    return word * (math.floor(entries * diameter / (2 * s)) + 1)


def symmetric(energy_range: float, s: float) -> int:
    """C: under a repeated letter the energy falls by half of |S'' - S|^2 in each step, until S'' is within 2 s of S.

    >>> symmetric(1.0, 0.01)
    5000
    """
    return math.ceil(energy_range / (2 * s**2))


def nonexpanding(distance: float, s: float, layers: int = 1) -> int:
    """D: steps that bring no two states further apart, as bounded linear ones: errors take off 2 s in each, by layer.

    >>> nonexpanding(1.0, 0.001, layers=4)
    2000
    """
    return layers * math.ceil(distance / (2 * s))
