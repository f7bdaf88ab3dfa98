"""How far apart true states stay: the distance between their means, against the spread around them, by position.

For a true state k after the last input x, m_kx is the mean of the network's state over rows, and c_x the mean of the
m_kx over k: what x itself does to the state is not counted as telling states apart. On two halves of the rows, A and B,

    distance   sqrt(mean over k, x of (m_kx - c_x)_A . (m_kx - c_x)_B)     chance cancels: without separation it is 0
    spread     the deviation of rows of B from m_kx along the direction of (m_kx - c_x)_A
    separation distance / spread: with normal noise and two states, 1.28 of it is 90 % told apart

A distance that fades by a constant factor a step is a straight line in the logarithm, and its slope is measured before
anything fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.diagnosis.trajectories import Bools, Floats, Trajectories

Ints = NDArray[np.integer[Any]]

FEW = 4  # rows that a mean is taken over at least
CONTEXTS = 4  # symbols up to which means are taken for each last input on its own
RESAMPLES = 100
MEASURE = (
    "distance of the means of true states from their centre, for each last input on its own, over the spread of rows "
    "along that direction; means of one half of the rows against those of the other"
)


@dataclass(frozen=True)
class Groups:
    """Rows by true state and, where symbols are few, by last input."""

    label: Ints  # of each row: context * states + true state
    states: int
    count: int

    @classmethod
    def of(cls, truth: Ints, inputs: Ints, states: int, symbols: int) -> Groups:
        """Of true states and last inputs, one a row."""
        contexts = symbols if symbols <= CONTEXTS else 1
        context = inputs if contexts > 1 else np.zeros_like(inputs)
        return cls(context.astype(int) * states + truth, states, contexts * states)

    def take(self, rows: Ints | slice) -> Groups:
        return Groups(self.label[rows], self.states, self.count)

    def means(self, x: Floats) -> tuple[Floats, Ints]:
        """The mean of each group, and how many rows it has."""
        sizes = np.bincount(self.label, minlength=self.count)
        indicator = np.zeros((self.count, len(x)), np.float32)
        indicator[self.label, np.arange(len(x))] = 1
        return (indicator @ x) / np.maximum(sizes, 1)[:, None], sizes

    def offsets(self, x: Floats, good: Bools) -> Floats:
        """m - c for every good group: means less the centre of the good means of the same last input."""
        means, _ = self.means(x)
        shaped = means.reshape(-1, self.states, x.shape[1])
        use = good.reshape(-1, self.states, 1)
        centre = (shaped * use).sum(1, keepdims=True) / np.maximum(use.sum(1, keepdims=True), 1)
        return ((shaped - centre) * use).reshape(means.shape)


def told_apart(a: Groups, b: Groups) -> Bools:
    """The groups with rows enough in both halves, where at least two true states share a last input."""
    sizes = np.minimum(np.bincount(a.label, minlength=a.count), np.bincount(b.label, minlength=b.count))
    good = (sizes >= FEW).reshape(-1, a.states)
    return (good & (good.sum(1, keepdims=True) >= 2)).ravel()


def squared_distance(xa: Floats, a: Groups, xb: Floats, b: Groups) -> float:
    """The mean of (m - c)_A . (m - c)_B; NaN where nothing can be told apart."""
    good = told_apart(a, b)
    if not good.any():
        return float("nan")
    return float((a.offsets(xa, good) * b.offsets(xb, good)).sum(1)[good].mean())


def spread(xa: Floats, a: Groups, xb: Floats, b: Groups) -> float:
    """The root mean square deviation of rows of B from their mean, along their group's direction in A."""
    good = told_apart(a, b)
    if not good.any():
        return float("nan")
    direction = a.offsets(xa, good)
    direction = direction / np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-30)
    means, _ = b.means(xb)
    rows = good[b.label]
    along = ((xb - means[b.label]) * direction[b.label]).sum(1)[rows]
    return float(np.sqrt((along**2).mean()))


@dataclass(frozen=True)
class Apart:
    """Distance and spread at every stop, and what is needed to ask again on other rows."""

    stops: Ints
    distance: Floats  # NaN where nothing can be told apart, 0 where chance gave less than none
    spread: Floats
    halves: list[tuple[Floats, Groups, Floats, Groups]]

    @classmethod
    def of(cls, walk: Trajectories) -> Apart:
        assert walk.states is not None
        rows, window = walk.plan.rows, walk.plan.window
        halves = []
        for stop, states in zip(walk.plan.stops, walk.states):
            seen = slice(stop - window, stop)
            flat = states.reshape(-1, states.shape[-1])
            groups = Groups.of(walk.truth[:, seen].ravel(), walk.inputs[:, seen].ravel(), walk.truth_of.classes,
                               walk.truth_of.task.inputs)  # fmt: skip
            cut = rows * window
            halves.append((flat[:cut], groups.take(slice(cut)), flat[cut:], groups.take(slice(cut, None))))
        return cls.between(np.array(walk.plan.stops), halves)

    @classmethod
    def between(cls, stops: Ints, halves: list[tuple[Floats, Groups, Floats, Groups]]) -> Apart:
        distance = np.sqrt(np.maximum([squared_distance(*half) for half in halves], 0.0))
        return cls(stops, distance, np.array([spread(*half) for half in halves]), halves)

    @property
    def separation(self) -> Floats:
        return np.divide(self.distance, self.spread, out=np.full(len(self.stops), np.nan), where=self.spread > 0)

    def fade(self, first: int, last: int) -> Fade | None:
        """The slope of the log of the distance over the stops from first to last, with its interval over rows."""
        chosen = [i for i, stop in enumerate(self.stops) if first <= stop <= last]
        rate = _slope(self.stops[chosen], self.distance[chosen])
        if rate is None:
            return None
        draws = np.random.default_rng(0)
        again = [_slope(self.stops[chosen], self._resampled(chosen, draws)) for _ in range(RESAMPLES)]
        found = [each for each in again if each is not None]
        low, high = np.quantile(found, [0.025, 0.975]) if found else (np.nan, np.nan)
        return Fade(rate, float(low), float(high), first, last, tuple(found))

    def _resampled(self, chosen: list[int], draws: np.random.Generator) -> Floats:
        xa, _, xb, _ = self.halves[chosen[0]]
        one, two = (draws.integers(0, len(x), len(x)) for x in (xa, xb))  # the same rows at all stops
        squares = [
            squared_distance(xa[one], a.take(one), xb[two], b.take(two))
            for xa, a, xb, b in (self.halves[i] for i in chosen)
        ]
        return np.sqrt(np.maximum(squares, 0.0))


@dataclass(frozen=True)
class Fade:
    """The distance shrinks as exp(-rate t): the rate with its 95 % interval, and the resampled rates behind it."""

    rate: float
    low: float
    high: float
    first: int
    last: int
    again: tuple[float, ...]


def _slope(stops: Ints, distance: Floats) -> float | None:
    good = np.isfinite(distance) & (distance > 0)
    if good.sum() < 3:
        return None
    return float(-np.polyfit(stops[good], np.log(distance[good]), 1)[0])
