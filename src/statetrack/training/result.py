"""What a training gives back: a record, and the trained model; at a prompt a short table."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from statetrack.display import Card, Measured, Table
from statetrack.errors import BadInput
from statetrack.formatting import plural, short_names, shortened
from statetrack.models import SequenceModel
from statetrack.results import Cell, Store, TrainingRecord
from statetrack.results.long_table import Row, long_rows
from statetrack.results.pace import duration
from statetrack.tasks import trusted_task
from statetrack.training.evaluated import HEADERS, lengths_shown, number, on_words, reasons, rows_of
from statetrack.training.weights import load

SEEDS = ("seed", "accuracy", "95 %", "floor", "solved", "longest", "at its end", "broken by")


@dataclass(frozen=True, repr=False)
class Result(Measured):
    """One cell: its record, and the trained model, which is read from its weights when it is first asked for."""

    record: TrainingRecord
    trained: SequenceModel | None = field(default=None, compare=False)  # where it is at hand
    store: Store | None = field(default=None, compare=False)  # the folder that keeps it
    found: bool = field(default=False, compare=False)  # whether it was there before, and was not trained now

    drawn_first = ("generalisation", "accuracy")

    @cached_property
    def model(self) -> SequenceModel:
        """The trained model; where the class is your own, its `.module` is the object. A cell that was there before
        gives its model back from the weights that were kept; what stands in the way, such as a file of your own that
        has changed since, is said in one line (BadInput).
        """
        if self.trained is not None:
            return self.trained
        if self.store is None:
            raise BadInput(f"the model of {self.cell} is not at hand: its result was kept in no folder")
        return load(self.store, self.cell)

    @property
    def cell(self) -> Cell:
        return self.record.cell

    @property
    def accuracy(self) -> float | None:
        """Over all positions asked for, at the length trained on."""
        return self.record.at_length.accuracy

    @property
    def solved(self) -> bool:
        """At the length trained on, as `OnRows.solved` says it."""
        return self.record.solved

    def to_dict(self) -> dict[str, Any]:
        """Its numbers by name, as `statetrack train --json` prints them."""
        return self.record.flat()

    def card(self) -> Card:
        record = self.record
        made, how = record.training, record.training.train_seconds
        size = f"{plural(made.parameters, 'parameter')}, {made.state_said}"
        took = f"trained in {duration(how)} on {made.device or 'cpu'}" if how is not None else "trained"
        rows = _rows(record)
        return Card(
            f"{_called(record.cell)}, seed {record.cell.seed}: {_verdict(record)}",
            [Table(HEADERS, lengths_shown(rows))], [f"{size}; {took}{', there before' if self.found else ''}"],
            [*reasons(rows), on_words(record, rows)],
        )  # fmt: skip

    def contents(self) -> tuple[list[TrainingRecord], list[Any]]:
        return [self.record], []


class Results(Measured, list[Result]):
    """The results of several trainings: a list, shown as one table."""

    drawn_first = Result.drawn_first

    def card(self) -> Card:
        records = [result.record for result in self]
        alike = {_called(record.cell) for record in records}
        if len(alike) != 1:
            rows = [[_called(record.cell), *_seed(record)] for record in records]
            return Card(plural(len(records), "result"), [Table(("cell", *SEEDS), rows)] if rows else [])
        solved = sum(record.solved for record in records)
        broken = sum(record.solved and record.broken is not None for record in records)
        word = f" on random rows; {broken} of them broken by a word" if broken else ""
        title = f"{alike.pop()}: solved by {solved} of {plural(len(records), 'seed')}{word}"
        return Card(title, [Table(SEEDS, [_seed(record) for record in records])])

    def contents(self) -> tuple[list[TrainingRecord], list[Any]]:
        return [result.record for result in self], []


def _called(cell: Cell) -> str:
    task, model = (short_names([name])[name] for name in (cell.task, cell.subject))
    return f"{task}, {model}, length {cell.length:,}"


def _verdict(record: TrainingRecord) -> str:
    here, diverged = record.at_length, record.training.diverged_at
    if diverged:
        return f"diverged at step {diverged:,}"
    guess = f" (a guess: {number(here.floor)})" if here.floor is not None else ""
    solved = ("solved on random rows" if record.broken else "solved") if record.solved else "not solved"
    word = f"; {record.broken.named}" if record.solved and record.broken else ""
    return f"{solved}, accuracy {number(here.accuracy)}{guess}{word}"


def _rows(record: TrainingRecord) -> list[Row]:
    """What it was tested on; without floors of the end where the task, one of somebody's own, is not at hand."""
    try:
        return rows_of(record, trusted_task(record.cell.task))
    except BadInput:
        return long_rows([record], lambda held: held.tested(every_mark=True))


def _seed(record: TrainingRecord) -> list[str]:
    here, last = record.at_length, max(record.tested(), key=lambda one: one.length, default=None)
    interval = (here.interval[0], here.interval[1]) if here.interval else None
    return [str(record.cell.seed), number(here.accuracy), _between(interval), number(here.floor),
            "yes" if record.solved else "no", f"{last.length:,}" if last else "-", number(last.end if last else None),
            shortened(record.broken_by, 14)]  # fmt: skip


def _between(interval: tuple[float, float] | None) -> str:
    return "-" if interval is None else f"{number(interval[0])} to {number(interval[1])}"
