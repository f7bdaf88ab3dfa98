"""How far a model gets: the lengths at which its accuracy passes below levels, and how often a step goes wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.diagnosis.trajectories import Bools, Floats, grid
from statetrack.intervals import wilson

POINTS = 96
RESAMPLES = 200
WIDTH = 8  # accuracy at t is over the positions t - t/8 .. t + t/8
LEVEL = 0.9
MOST_HALF = 0.98  # where the floor is nearly 1, halfway to it would be one error in thousands

NOTHING_SAID: dict[str, Any] = {"length": None, "low": None, "high": None, "beyond": None}


@dataclass(frozen=True)
class Curve:
    """Right answers and questions by row in windows around positions whose ratio is constant."""

    position: NDArray[np.int64]
    hits: NDArray[np.int64]  # (rows, points)
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, right: Bools, asked: Bools) -> Curve:
        length = right.shape[1]
        position = np.array(grid(1, length, POINTS))
        first = np.maximum(position - position // WIDTH, 1) - 1
        last = np.minimum(position + position // WIDTH, length)
        zero = np.zeros((len(right), 1), np.int64)
        hits, counts = (
            np.concatenate([zero, np.cumsum(part, axis=1)], axis=1) for part in (right & asked, asked.astype(bool))
        )
        return cls(position, hits[:, last] - hits[:, first], counts[:, last] - counts[:, first])

    def accuracy(self, rows: NDArray[Any] | slice = slice(None)) -> Floats:
        """Over the rows given; NaN where nothing was asked."""
        hits, counts = self.hits[rows].sum(0), self.counts[rows].sum(0)
        return np.divide(hits, counts, out=np.full(len(hits), np.nan), where=counts > 0)

    def intervals(self) -> list[tuple[float, float]]:
        """Wilson's interval over rows, since the positions of one row are not independent."""
        return [wilson(share * len(self.hits), len(self.hits)) if np.isfinite(share) else (0.0, 1.0)
                for share in self.accuracy()]  # fmt: skip

    def passes(self, level: Floats | float) -> dict[str, Any]:
        """The length at which accuracy passes below the level, and stays so at the next point."""
        levels = np.broadcast_to(np.asarray(level, float), self.position.shape)
        found = crossing(self.position, self.accuracy(), levels)
        draws = np.random.default_rng(0)
        rows = len(self.hits)
        picks = draws.integers(0, rows, (RESAMPLES, rows))
        again = [crossing(self.position, self.accuracy(pick), levels) for pick in picks]
        low, high = np.quantile([np.inf if each is None else each for each in again], [0.025, 0.975], method="nearest")
        return reach(found, float(low), float(high), int(self.position[-1]))


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
