"""The maps of a network's columns under each token, and the regions that they make of regions, in intervals.

What a proof needs of a map is the box that holds the image of a box, and where columns turn also how far the image of a
ball reaches. Columns of a tanh RNN and of E88 with gain move by s' = tanh(A s + c); those of gates are in gated.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from statetrack.certificates.checker.rounding import Floats, Interval, outward, up


class Maps(Protocol):
    """How each column of a state moves, whatever the others do."""

    @property
    def tokens(self) -> int: ...

    @property
    def start(self) -> Interval:
        """(heads, n, columns)."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Heads, numbers of a column, columns of a head."""

    def box(self, column: tuple[int, int], token: int, centres: Floats, radii: Floats) -> Interval:
        """Boxes (regions, n) that hold the images of boxes."""

    def ball(self, column: tuple[int, int], token: int, centres: Floats, radii: Floats) -> tuple[Interval, Floats]:
        """The images of the centres of balls, and how far those of the balls reach from there (regions,)."""


@dataclass(frozen=True)
class Affine:
    """s' = tanh(A s + c): A (tokens, heads, n, n), c (tokens, heads, n, columns), the start (heads, n, columns)."""

    matrix: Interval
    constant: Interval
    start: Interval

    @property
    def tokens(self) -> int:
        return self.matrix.lo.shape[0]

    @property
    def shape(self) -> tuple[int, int, int]:
        heads, n, columns = self.start.lo.shape
        return heads, n, columns

    def box(self, column: tuple[int, int], token: int, centres: Floats, radii: Floats) -> Interval:
        a, c = self._of(column, token)
        middle = Interval.of(centres) @ a.turned() + c
        spread = (Interval.of(radii) @ Interval.of(a.size).turned()).hi
        return outward(middle.lo - spread, middle.hi + spread, 0.0).tanh()

    def ball(self, column: tuple[int, int], token: int, centres: Floats, radii: Floats) -> tuple[Interval, Floats]:
        """The reach is the radius times the largest slope of tanh on the ball and the norm of A."""
        a, c = self._of(column, token)
        middle = Interval.of(centres) @ a.turned() + c
        rows = (Interval.of(a.size) * Interval.of(a.size)).total().sqrt().hi[:, 0]
        least = np.maximum(middle.lo, -middle.hi) - up(radii[:, None] * rows)
        flat = Interval.of(np.maximum(least, 0)).tanh()
        slope = (Interval.of(1.0) - flat * flat).hi.max(axis=1)
        size = Interval.of(float(self.norms[token, column[0]]))
        return middle.tanh(), (Interval.of(slope) * size * Interval.of(radii)).hi

    @cached_property
    def norms(self) -> Floats:
        """(tokens, heads), which all columns of a head share."""
        tokens, heads = self.matrix.lo.shape[:2]
        return np.array([[norm(self.matrix[token, head]) for head in range(heads)] for token in range(tokens)])

    def _of(self, column: tuple[int, int], token: int) -> tuple[Interval, Interval]:
        head, place = column
        return self.matrix[token, head], self.constant[token, head, :, place]


def norm(a: Interval) -> float:
    """At least the 2-norm of a matrix: the trace of a power of A A^T is above that power of its largest eigenvalue."""
    power = a @ a.turned()
    for _ in range(7):
        power = power @ power
    return float((np.trace(power.hi) * (1 + 1e-12)) ** (1 / 256) * (1 + 1e-12))
