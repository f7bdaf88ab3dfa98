"""Floors by simulation, for streams whose states are too many to sum over.

The best answers are chosen on the rows of the training split and scored on those of the validation split: choosing
and scoring on the same rows would flatter the guess. So the score is that of a strategy that exists, and its interval
is honest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.intervals import wilson
from statetrack.tasks.base import Batch, Task
from statetrack.theory.laws import Floats

ROWS = 4000
VALUES = 2**22  # at most this many positions in each half


@dataclass(frozen=True)
class Scored:
    """The accuracy of a strategy on `rows` rows, by position and over all."""

    by_position: Floats
    average: float
    rows: int

    @property
    def interval(self) -> tuple[float, float]:
        """Rows are independent, the positions of a row are not: the interval counts rows."""
        return wilson(self.average * self.rows, self.rows)


def strategies(task: Task, length: int, seed: int = 0) -> dict[str, Scored]:
    """The strategies that know nothing, the position, or the input."""
    rows = max(100, min(ROWS, VALUES // length))
    chosen = task.sample(length, rows, seed, "train")
    scored = task.sample(length, rows, seed, "validation")
    positions = np.arange(length)
    sight = {
        "constant": lambda batch: np.zeros_like(batch.inputs),
        "position": lambda batch: np.broadcast_to(positions, batch.inputs.shape),
        # 1, 2-3, 4-7, ... share their answers: single positions would see too few rows for every symbol
        "input": lambda batch: np.floor(np.log2(positions + 1)).astype(np.int64) * task.inputs + batch.inputs,
    }
    return {name: _score(see(chosen), chosen, see(scored), scored, task.outputs) for name, see in sight.items()}


def _score(seen: NDArray[Any], chosen: Batch, shown: NDArray[Any], scored: Batch, classes: int) -> Scored:
    """Choose the most frequent answer for everything seen, and score it where the same is shown."""
    asked = chosen.mask.astype(bool)
    kinds = int(max(seen.max(), shown.max())) + 1
    counts = np.bincount(seen[asked] * classes + chosen.targets[asked], minlength=kinds * classes)
    guess = counts.reshape(kinds, classes).argmax(axis=1)
    asked = scored.mask.astype(bool)
    right = (guess[shown] == scored.targets) & asked
    per_position = asked.sum(axis=0)
    by_position = np.divide(
        right.sum(axis=0), per_position, out=np.full(right.shape[1], np.nan), where=per_position > 0
    )
    return Scored(by_position, float(right.sum() / max(1, asked.sum())), len(right))
