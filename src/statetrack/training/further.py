"""More evaluations of weights that are there: a record's list of them grows, and nothing else in it changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from statetrack.models import SequenceModel
from statetrack.results import Cell
from statetrack.results.evaluations import Evaluation, OnWords
from statetrack.results.networks import HasEvaluations
from statetrack.results.store import Network
from statetrack.tasks import Task
from statetrack.training.breaking import on_words
from statetrack.training.evaluate import Evaluator
from statetrack.training.floors import with_floors

UNTOLD = 64  # stands in for the length trained on where nobody says it

Tick = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """What is to be measured: rows of these lengths, streams of so many steps, hard words of so many tokens (0: none;
    None: as many as is usual on the device).

    >>> bool(Wanted()), bool(Wanted(words=None))
    (False, True)
    """

    lengths: tuple[int, ...] = ()
    streams: tuple[int, ...] = ()
    words: int | None = 0

    def __bool__(self) -> bool:
        return bool(self.lengths or self.streams or self.words != 0)

    def lacking_in(self, record: HasEvaluations) -> Wanted:
        """What of it a record holds no numbers of."""
        rows, streams = record.rows, [stream for stream in record.streams if not stream.reason]
        tried = [each.budget for each in record.of(OnWords) if not each.reason]
        held = bool(tried) if self.words is None else max(tried, default=0) >= self.words
        return Wanted(
            tuple(length for length in self.lengths if length not in rows or rows[length].accuracy is None),
            tuple(steps for steps in self.streams if not any(stream.covers(steps) for stream in streams)),
            0 if held else self.words,
        )


def measured(
    task: Task, model: SequenceModel, cell: Cell, wanted: Wanted, tick: Tick = lambda _: None
) -> list[Evaluation]:
    """One evaluation for each that is wanted, with floors. Rows are those of the test split, chosen by the cell's seed;
    what cannot be run has a reason and no number.
    """
    length = cell.length or min(wanted.lengths, default=UNTOLD)
    evaluator = Evaluator(task, model, length, cell.seed)
    found: list[Evaluation] = []
    for each in wanted.lengths:
        tick(f"rows of {each:,}")
        found.append(evaluator.at_length() if each == length else evaluator.beyond(each))
    found += [evaluator.stream(steps, tick) for steps in wanted.streams]
    if wanted.words != 0:
        found.append(on_words(task, model, cell.length or UNTOLD, cell.seed, wanted.words, tick))
    return [with_floors(task, each, length) for each in found]


def grown(record: Network, more: Sequence[Evaluation], began: float) -> Network:
    """The record with these evaluations, which were begun at this moment of the clock."""
    took = (record.evaluation_seconds or 0.0) + time.monotonic() - began
    return replace(record.with_evaluations(more), evaluation_seconds=took)
