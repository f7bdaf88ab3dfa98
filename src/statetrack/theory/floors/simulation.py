"""Floors by simulation, for streams whose states are too many to sum over.

The best answers are chosen on the rows of the training split and scored on those of the validation split: choosing
and scoring on the same rows would flatter the guess. So the score is that of a strategy that exists, and its interval
is honest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.intervals import wilson
from statetrack.tasks.base import Batch, Task
from statetrack.theory.floors.markov import Floats

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
    """The strategies that know nothing, the position, or the input and the position."""
    rows = max(100, min(ROWS, VALUES // length))
    chosen = task.sample(length, rows, seed, "train")
    scored = task.sample(length, rows, seed, "validation")
    positions = np.arange(length)
    nothing = _Guess(lambda batch: np.zeros_like(batch.inputs), chosen, task.outputs)
    position = _Guess(lambda batch: np.broadcast_to(positions, batch.inputs.shape), chosen, task.outputs)
    # 1, 2-3, 4-7, ... share their answers: single positions would see too few rows for every symbol
    span = np.floor(np.log2(positions + 1)).astype(np.int64)
    symbol = _Guess(lambda batch: span * task.inputs + batch.inputs, chosen, task.outputs)
    return {
        "constant": _score(nothing.right(scored), scored),
        "position": _score(position.right(scored), scored),
        "input": _better(position, symbol, chosen, scored),
    }


class _Guess:
    """The most frequent answer of the chosen rows for everything that is seen."""

    def __init__(self, see: Callable[[Batch], NDArray[Any]], chosen: Batch, classes: int) -> None:
        self.see, seen, asked = see, see(chosen), chosen.mask.astype(bool)
        self.answers = _most_frequent(seen[asked], chosen.targets[asked], int(seen.max()) + 1, classes)

    def right(self, batch: Batch) -> NDArray[np.bool_]:
        """Where the guess is asked for and right; what was never seen gets the answer 0."""
        seen = self.see(batch)
        known = seen < len(self.answers)
        guess = np.where(known, self.answers[np.where(known, seen, 0)], 0)
        right: NDArray[np.bool_] = (guess == batch.targets) & batch.mask.astype(bool)
        return right


def _most_frequent(seen: NDArray[Any], answers: NDArray[Any], kinds: int, classes: int) -> NDArray[Any]:
    """For each kind of what is seen the answer that came most often, the least of several; 0 where none came."""
    pairs = seen.astype(np.int64) * classes + answers
    if kinds * classes <= VALUES:
        return np.bincount(pairs, minlength=kinds * classes).reshape(kinds, classes).argmax(axis=1)
    there, counts = np.unique(pairs, return_counts=True)  # most classes come nowhere: a table would be mostly empty
    last_wins = there[np.lexsort((-there, counts))]
    found = np.zeros(kinds, np.int64)
    found[last_wins // classes] = last_wins % classes
    return found


def _better(position: _Guess, symbol: _Guess, chosen: Batch, scored: Batch) -> Scored:
    """Who sees the input sees the position too: at each position the guess that was right more often where it was
    chosen. Where chance let that one score worse, the position alone is the better strategy.
    """
    takes_symbol = symbol.right(chosen).sum(axis=0) > position.right(chosen).sum(axis=0)
    mixed = _score(np.where(takes_symbol, symbol.right(scored), position.right(scored)), scored)
    alone = _score(position.right(scored), scored)
    return mixed if mixed.average >= alone.average else alone


def _score(right: NDArray[np.bool_], scored: Batch) -> Scored:
    asked = scored.mask.astype(bool)
    per_position = asked.sum(axis=0)
    by_position = np.divide(
        right.sum(axis=0), per_position, out=np.full(right.shape[1], np.nan), where=per_position > 0
    )
    return Scored(by_position, float(right.sum() / max(1, asked.sum())), len(right))
