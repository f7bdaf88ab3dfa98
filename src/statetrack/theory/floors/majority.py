"""Floors of the running majority: exact sums over binomial laws, for an up that comes with probability p.

U_t, the number of ups among t inputs, is binomial, and y_t = 1 iff U_t >= ceil(t/2). The last w inputs say only how
many of them were ups: with j of w, y_t = 1 iff U_{t-w} >= ceil(t/2) - j, where U_{t-w} and j are independent.
"""

from __future__ import annotations

import math

import numpy as np

from statetrack.theory.floors.markov import Floats


def up_probability(t: int, p: float) -> Floats:
    """P(U_t = u), u = 0..t, by logarithms of factorials, so that no length is too long.

    >>> up_probability(2, 0.5).round(3).tolist()
    [0.25, 0.5, 0.25]
    """
    ups = np.arange(t + 1)
    if p in (0.0, 1.0):
        return (ups == t * p).astype(float)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, t + 1)))])
    choose = factorials[t] - factorials - factorials[::-1]
    return np.exp(choose + ups * math.log(p) + (t - ups) * math.log1p(-p))


def answer_one(length: int, p: float) -> Floats:
    """P(y_t = 1), t = 1..length."""
    return np.array([up_probability(t, p)[(t + 1) // 2 :].sum() for t in range(1, length + 1)])


def from_window(length: int, p: float, width: int) -> Floats:
    """The best accuracy from the last `width` inputs and t, t = 1..length."""
    window = up_probability(width, p)
    best = np.ones(length)
    for t in range(width + 1, length + 1):
        before = up_probability(t - width, p)
        at_least = np.append(np.cumsum(before[::-1])[::-1], 0.0)  # P(U >= u), u = 0..t-width+1
        needed = np.clip((t + 1) // 2 - np.arange(width + 1), 0, t - width + 1)
        one = at_least[needed]
        best[t - 1] = window @ np.maximum(one, 1 - one)
    return best
