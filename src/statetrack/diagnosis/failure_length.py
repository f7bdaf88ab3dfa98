"""How far a model gets: the lengths at which its accuracy passes below levels, and how often a step goes wrong.

Accuracy is taken to fall with the position. The falling curve that is nearest in squares (isotonic regression) is at
or above a level up to the position T at which right answers, less those that the level allows for, are most:

    T = argmax over t of sum over s <= t of (right answers at s - level * questions at s)

No window is averaged over, so a network that fails at once fails where it does. The interval holds every T at which
neither the positions just behind it are surely above the level nor those just before it surely below, by Wilson's
interval over rows: positions of one row depend on each other, rows do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.diagnosis.trajectories import Bools, Floats, grid
from statetrack.intervals import Z95, wilson, worth

POINTS = 96
WIDTH = 8  # accuracy in the figure at t is over the positions t - t/8 .. t + t/8
SIDE = 32  # the interval of T looks at T/32 positions on either side
AHEAD = 16  # positions at least within which a fall may be made good; else as many as went before
LEVEL = 0.9
MOST_HALF = 0.98  # where the floor is nearly 1, halfway to it would be one error in thousands

NOTHING_SAID: dict[str, Any] = {"length": None, "low": None, "high": None, "beyond": None}


@dataclass(frozen=True)
class Curve:
    """Right answers and questions by row in windows around positions whose ratio is constant: what a figure shows."""

    position: NDArray[np.int64]
    hits: NDArray[np.int64]  # (rows, points)
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, right: Bools, asked: Bools) -> Curve:
        length = right.shape[1]
        position = np.array(grid(1, length, POINTS))
        first = np.maximum(position - position // WIDTH, 1) - 1
        last = np.minimum(position + position // WIDTH, length)
        hits, counts = _summed(right & asked), _summed(asked)
        return cls(position, hits[:, last] - hits[:, first], counts[:, last] - counts[:, first])

    def accuracy(self) -> Floats:
        """Over all rows; NaN where nothing was asked."""
        hits, counts = self.hits.sum(0), self.counts.sum(0)
        return np.divide(hits, counts, out=np.full(len(hits), np.nan), where=counts > 0)

    def intervals(self) -> list[tuple[float, float]]:
        """Wilson's interval over rows, since the positions of one row are not independent."""
        return [wilson(share * len(self.hits), len(self.hits)) if np.isfinite(share) else (0.0, 1.0)
                for share in self.accuracy()]  # fmt: skip


def _summed(part: Bools) -> NDArray[np.int64]:
    """Sums over the first 0, 1, 2, ... positions of every row."""
    return np.concatenate([np.zeros((len(part), 1), np.int64), np.cumsum(part, axis=1)], axis=1)


def passes_below(right: Bools, asked: Bools, level: Floats | float) -> dict[str, Any]:
    """The last position at which accuracy is at or above the level, with its interval; `level` may vary by position.

    A fall that is made good again before the length has doubled is none.

    >>> right = np.repeat([[True] * 40 + [False] * 60], 50, axis=0)
    >>> passes_below(right, np.ones_like(right), 0.9)
    {'length': 40.0, 'low': 40.0, 'high': 40.0, 'beyond': None}
    """
    told = np.flatnonzero(asked.any(0))
    if not len(told):
        return reach(None, np.inf, np.inf, right.shape[1])
    levels = np.broadcast_to(np.asarray(level, float), right.shape[1])[told]
    hits, counts = _summed((right & asked)[:, told]), _summed(asked[:, told])
    excess = np.concatenate([[0.0], np.cumsum(np.diff(hits.sum(0)) - levels * np.diff(counts.sum(0)))])
    cut = last_above(excess)
    low, high = bounds(hits, counts, levels)
    at = np.concatenate([told[:1], told]) + 1.0  # of a cut before the first question: that question's position
    length = None if cut == len(told) else float(at[cut])
    low, high = min(low, cut), max(high, cut)
    return reach(length, np.inf if low == len(told) else float(at[low]),
                 np.inf if high == len(told) else float(at[high]), right.shape[1])  # fmt: skip


def last_above(excess: Floats) -> int:
    """The first place whose excess is not surpassed before the length has doubled.

    >>> last_above(np.array([0, 1, 2, 1, 3, 2, 1, 0, -1]))
    4
    """
    place = 0
    while True:
        further = int(excess[place : max(2 * place, place + AHEAD) + 1].argmax())
        if further == 0:
            return place
        place += further


def bounds(hits: NDArray[np.int64], counts: NDArray[np.int64], levels: Floats) -> tuple[int, int]:
    """The lowest and the highest cut that the answers around it leave room for.

    From the first cut on, the positions behind each are surely above the level until those of the lowest are not;
    from the last cut back, those before each are surely below until those of the highest are not.
    """
    length = len(levels)
    cuts = np.arange(length)
    side = np.maximum(1, cuts // SIDE)
    behind = surely(hits, counts, levels, cuts, np.minimum(cuts + side, length))
    before = surely(hits, counts, levels, np.maximum(cuts + 1 - side, 0), cuts + 1)
    low = int((behind <= Z95).argmax()) if (behind <= Z95).any() else length
    not_below = np.flatnonzero(before >= -Z95)
    return low, int(not_below[-1]) + 1 if len(not_below) else 0


def surely(
    hits: NDArray[np.int64], counts: NDArray[np.int64], levels: Floats, first: NDArray[Any], last: NDArray[Any]
) -> Floats:
    """By how many deviations of the level (Wilson's score) the accuracy over first..last lies above the level."""
    right, asked = (each[:, last] - each[:, first] for each in (hits, counts))
    level = levels[np.minimum(last, len(levels)) - 1]
    share = right.sum(0) / np.maximum(asked.sum(0), 1)
    deviation = np.sqrt(level * (1 - level) / np.maximum(worth(right.astype(float), asked.astype(float)), 1e-9))
    return (share - level) / np.maximum(deviation, 1e-12)


def reach(length: float | None, low: float, high: float, looked: int) -> dict[str, Any]:
    """A length with its interval; infinite bounds are written as null."""
    return {
        "length": length,
        "low": low if np.isfinite(low) else None,
        "high": high if np.isfinite(high) else None,
        "beyond": looked if length is None else None,
    }


def halfway(floor: Floats) -> Floats:
    """The level halfway between the floor and 1."""
    return np.minimum((1 + floor) / 2, MOST_HALF)


def crossing(position: NDArray[Any], accuracy: Floats, level: Floats) -> float | None:
    """Where a curve first goes below a level for two points, between points by a straight line in log t.

    >>> round(crossing(np.array([1, 2, 4, 8]), np.array([1, 1, 0.5, 0.5]), np.full(4, 0.75)), 3)
    2.828
    """
    told = np.isfinite(accuracy)
    position, above = position[told], (accuracy - level)[told]
    below = above < 0
    for i in range(len(below)):
        if below[i] and (i + 1 == len(below) or below[i + 1]):
            if i == 0:
                return float(position[0])
            share = above[i - 1] / (above[i - 1] - above[i])
            return float(np.exp(np.log(position[i - 1]) + share * np.log(position[i] / position[i - 1])))
    return None


def first_errors(right: Bools, asked: Bools) -> tuple[int, int]:
    """(rows that erred, steps before and at the first error of every row): their ratio is the error rate of a step.

    >>> first_errors(np.array([[True, True, False, True], [True, True, True, True]]), np.ones((2, 4), bool))
    (1, 7)
    """
    wrong = asked & ~right
    erred = wrong.any(1)
    until = np.where(erred, wrong.argmax(1) + 1, right.shape[1])
    at_risk = (asked & (np.arange(right.shape[1]) < until[:, None])).sum()
    return int(erred.sum()), int(at_risk)


def step_rate(right: Bools, asked: Bools) -> dict[str, Any]:
    """The chance that a step brings the first error, with Wilson's interval."""
    errors, steps = first_errors(right, asked)
    low, high = wilson(errors, steps)
    return {"step_rate": errors / steps if steps else 0.0, "low": low, "high": high, "errors": errors, "steps": steps}
