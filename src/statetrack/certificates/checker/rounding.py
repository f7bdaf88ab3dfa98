"""Numbers that are rounded outward: intervals of float64 which hold whatever exact arithmetic gives.

Only the checker of proofs uses this. It relies on numpy's +, -, *, / and sqrt being rounded to the nearest number, on
sums of n products being off by at most n roundings in any order, and on Python's decimal; tanh and the normal
distribution come from tables of its own.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
TANH_FINE, TANH_END, TANH_BEND = 2**10, 20, 0.77  # points between two whole numbers; the end; the largest |f''|
NORMAL_FINE, NORMAL_END, NORMAL_BEND = 2**8, 9, 0.243
GELU_TURN, GELU_LEAST = (-0.751792, -0.751791), -0.169972  # x Phi(x) falls before the turn and rises after it
LIBRARY = 16  # units that float32's exp, tanh and erf may be off by: eight in the last place
TINY = 1e-300


class Refused(ValueError):
    """What does not prove what it says."""


@dataclass(frozen=True)
class Interval:
    """Arrays of numbers between lo and hi. With a `unit`, also what arithmetic of that unit roundoff may give for them.

    >>> (Interval.of(1.0) / Interval.of(3.0)).contains(1 / 3)
    True
    """

    lo: Floats
    hi: Floats
    unit: float = 0.0

    @classmethod
    def of(cls, values: Any, unit: float = 0.0) -> Interval:
        exact = np.asarray(values, np.float64)
        return cls(exact, exact, unit)

    @property
    def middle(self) -> Floats:
        return (self.lo + self.hi) / 2

    @property
    def radius(self) -> Floats:
        """At least the distance from the middle to either end."""
        middle = self.middle
        return up(np.maximum(up(self.hi - middle), up(middle - self.lo)))

    @property
    def size(self) -> Floats:
        return np.maximum(np.abs(self.lo), np.abs(self.hi))

    def contains(self, values: Any) -> bool:
        return bool(((self.lo <= values) & (values <= self.hi)).all())

    def __getitem__(self, index: Any) -> Interval:
        return Interval(self.lo[index], self.hi[index], self.unit)

    def reshape(self, *shape: int) -> Interval:
        return Interval(self.lo.reshape(shape), self.hi.reshape(shape), self.unit)

    def turned(self) -> Interval:
        """The last two dimensions swapped."""
        return Interval(np.swapaxes(self.lo, -1, -2), np.swapaxes(self.hi, -1, -2), self.unit)

    def __neg__(self) -> Interval:
        return Interval(-self.hi, -self.lo, self.unit)

    def __add__(self, other: Interval) -> Interval:
        return outward(self.lo + other.lo, self.hi + other.hi, max(self.unit, other.unit))

    def __sub__(self, other: Interval) -> Interval:
        return self + -other

    def __mul__(self, other: Interval) -> Interval:
        ends = [a * b for a, b in itertools.product((self.lo, self.hi), (other.lo, other.hi))]
        return outward(np.minimum.reduce(ends), np.maximum.reduce(ends), max(self.unit, other.unit))

    def __truediv__(self, other: Interval) -> Interval:
        if (other.lo <= 0).any():
            raise Refused("a divisor may be 0")
        ends = [a / b for a, b in itertools.product((self.lo, self.hi), (other.lo, other.hi))]
        return outward(np.minimum.reduce(ends), np.maximum.reduce(ends), max(self.unit, other.unit))

    def __matmul__(self, other: Interval) -> Interval:
        """Products of matrices: what the middles give, with what the radii and the rounding of n terms can add."""
        n, unit = self.lo.shape[-1], max(self.unit, other.unit)
        a, b = np.abs(self.middle), np.abs(other.middle)
        own, theirs = self.radius, other.radius
        spread = a @ theirs + own @ (b + theirs) + (gamma(n, 2.0**-53) + gamma(n, unit)) * ((a + own) @ (b + theirs))
        spread = spread * (1 + 8 * (n + 8) * 2.0**-53) + TINY
        centre = self.middle @ other.middle
        return outward(centre - spread, centre + spread, unit)

    def sqrt(self) -> Interval:
        return outward(np.sqrt(np.maximum(self.lo, 0)), np.sqrt(self.hi), self.unit)

    def tanh(self) -> Interval:
        return outward(tanh_table().below(self.lo), tanh_table().above(self.hi), LIBRARY * self.unit)

    def sigmoid(self) -> Interval:
        """(1 + tanh(x / 2)) / 2."""
        half = Interval(self.lo / 2, self.hi / 2, self.unit)
        one = half.tanh() + Interval.of(1.0)
        return Interval(np.maximum(one.lo, 0) / 2, one.hi / 2, self.unit)

    def gelu(self) -> Interval:
        """x Phi(x), which falls, turns once and rises."""
        left, right = ((end * normal_table().between(end)) for end in (Interval.of(self.lo), Interval.of(self.hi)))
        least = np.minimum(left.lo, right.lo)
        turns = (self.lo < GELU_TURN[1]) & (self.hi > GELU_TURN[0])
        return outward(np.where(turns, GELU_LEAST, least), np.maximum(left.hi, right.hi), LIBRARY * self.unit)

    def total(self) -> Interval:
        """The sum over the last dimension, kept as a dimension of one."""
        return self @ Interval.of(np.ones((self.lo.shape[-1], 1)))


def up(values: Floats) -> Floats:
    return np.nextafter(values, np.inf)


def down(values: Floats) -> Floats:
    return np.nextafter(values, -np.inf)


def outward(lo: Floats, hi: Floats, unit: float) -> Interval:
    lo, hi = down(lo), up(hi)
    if unit:
        slack = up(2 * unit * np.maximum(np.abs(lo), np.abs(hi))) + 1e-38  # what is smaller may be flushed to 0
        lo, hi = down(lo - slack), up(hi + slack)
    if np.isnan(lo).any() or np.isnan(hi).any():
        raise Refused("a number is not a number")
    return Interval(lo, hi, unit)


def gamma(terms: int, unit: float) -> float:
    """The relative error of a sum of products, in any order."""
    return terms * unit / (1 - terms * unit) * (1 + 2.0**-40)


@dataclass(frozen=True)
class Table:
    """An increasing function f with f(-x) = low + high - f(x), concave for x > 0, by its values at x = i / fine.

    There a chord lies below the curve, by at most bend / 8 times the squared distance of its ends.
    """

    values: Floats  # rounded down
    fine: int
    low: float
    high: float
    bend: float

    def between(self, x: Interval) -> Interval:
        return Interval(self.below(x.lo), self.above(x.hi))

    def below(self, x: Floats) -> Floats:
        return np.where(x >= 0, self._chord(np.abs(x)), down(self.low + self.high - self._bulge(np.abs(x))))

    def above(self, x: Floats) -> Floats:
        return np.where(x >= 0, self._bulge(np.abs(x)), up(self.low + self.high - self._chord(np.abs(x))))

    def _chord(self, x: Floats) -> Floats:
        last = len(self.values) - 1
        place = np.minimum(np.nan_to_num(x, nan=0.0, posinf=float(last)) * self.fine, last - 1e-9)
        index = place.astype(np.int64)
        left, right = self.values[index], self.values[index + 1]
        inside = left + (right - left) * (place - index)
        return np.maximum(np.where(x * self.fine >= last, self.values[last], inside) - 2.0**-50, self.low)

    def _bulge(self, x: Floats) -> Floats:
        """Above the curve: the chord, what its values may be too low by, and the most that the curve bends."""
        above = self._chord(x) + 2.0**-48 + self.bend / 8 / self.fine**2
        return np.where(x * self.fine >= len(self.values) - 1, self.high, np.minimum(above, self.high))


@functools.cache
def tanh_table() -> Table:
    """tanh x = 1 - 2 / (e^2x + 1)."""
    with localcontext() as context:
        context.prec = 40
        step = (Decimal(2) / TANH_FINE).exp()  # one rounding of 40 digits for each of 20,480 factors
        power, values = Decimal(1), []
        for _ in range(TANH_END * TANH_FINE + 1):
            values.append(float(1 - 2 / (power + 1)))
            power *= step
    return Table(down(np.array(values)), TANH_FINE, -1.0, 1.0, TANH_BEND)


@functools.cache
def normal_table() -> Table:
    """Phi(x) = 1/2 + phi(x) (x + x^3/3 + x^5/15 + ...), whose terms are all positive."""
    with localcontext() as context:
        context.prec = 40
        scale = 1 / (2 * Decimal("3.14159265358979323846264338327950288419716939937511")).sqrt()
        values = []
        for index in range(NORMAL_END * NORMAL_FINE + 1):
            x = Decimal(index) / NORMAL_FINE
            term = total = x
            odd = 1
            while term > Decimal("1e-25"):
                odd += 2
                term *= x * x / odd
                total += term
            values.append(float(Decimal("0.5") + scale * (-x * x / 2).exp() * total))
    return Table(down(np.array(values)), NORMAL_FINE, 0.0, 1.0, NORMAL_BEND)
