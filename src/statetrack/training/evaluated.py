"""What evaluating gives back: for each length a row with its floor and interval, and a text to be read."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import Any

from statetrack.display import Card, Measured, Table
from statetrack.formatting import fixed, plural, without_hash
from statetrack.results import EvaluatedRecord, TrainingRecord
from statetrack.results.evaluations import OnRows, OnStream
from statetrack.results.long_table import Row, long_rows
from statetrack.results.networks import HasEvaluations, Tested, said_of_rows
from statetrack.tasks import Task
from statetrack.training.floors import end_floor
from statetrack.training.further import UNTOLD

HEADERS = ("of", "length", "rows", "accuracy", "95 %", "floor", "last 32", "floor there", "solved")


@dataclass(frozen=True, repr=False)
class Evaluated(Measured):
    """Weights that were tested; nothing was trained."""

    record: EvaluatedRecord
    task: Task

    drawn_first = ("brought",)

    @property
    def rows(self) -> list[Row]:
        """A row for each length tested, on rows or along a stream, and one for hard words, with the columns of the long
        table (`results/long_table.py`).
        """
        return rows_of(self.record, self.task)

    @property
    def broken_by(self) -> str:
        """The shortest word after which it answers wrong, - where none was found, nothing where none was tried."""
        return self.record.broken_by

    def to_dict(self) -> dict[str, Any]:
        """As `statetrack evaluate --json` prints it."""
        return told(self.record, self.task) | {"weights": asdict(self.record.weights)}

    def card(self) -> Card:
        below = [*reasons(self.rows), on_words(self.record, self.rows)]
        return Card(about(self.record), [Table(HEADERS, lengths_shown(self.rows))], below=below)

    def contents(self) -> tuple[list[EvaluatedRecord], list[Any]]:
        return [self.record], []


def about(record: EvaluatedRecord) -> str:
    """What was tested, in one line that does not read like a training."""
    weights = record.weights
    size = plural(weights.parameters, "parameter")
    said = f"; the file says: trained as {without_hash(weights.trained_as)}" if weights.trained_as else ""
    named = f"{without_hash(record.cell.task)}, {without_hash(record.cell.subject)}, weights {weights.sha256[:8]}"
    return f"{named} ({size}): evaluated, nothing was trained{said}"


def rows_of(record: TrainingRecord | EvaluatedRecord, the_task: Task) -> list[Row]:
    """The rows of the long table of one record, with floors, and with every mark of a stream."""
    floor = functools.partial(end_floor, the_task, record.cell.length or UNTOLD)

    def tests(held: HasEvaluations) -> list[Tested]:
        return held.tested(floor, every_mark=True)

    return long_rows([record], tests)


def told(record: TrainingRecord | EvaluatedRecord, the_task: Task) -> dict[str, Any]:
    """What a record says of its network's tests, as plain data."""
    cell = record.cell
    same = {"key": cell.key, "task": cell.task, "model": cell.subject, "trained": cell.length or None}
    numbers = ("of", "tested", "rows", "n", "accuracy", "low", "high", "floor", "end_accuracy", "end_low", "end_high",
               "end_floor", "solved", "wrong", "broken_by", "reason")  # fmt: skip
    rows = [{name: row[name] for name in numbers} for row in rows_of(record, the_task) if row["case"] is None]
    return same | {"seed": cell.seed, "rows": rows, "hard_words": record.on_words}


def lengths_shown(rows: list[Row]) -> list[list[str]]:
    """Those that are of a length and have numbers, under HEADERS."""
    return [_shown(row) for row in rows if row["of"] in (OnRows.kind, OnStream.kind) and not row["reason"]]


def _shown(row: Row) -> list[str]:
    numbers = [number(row[name]) for name in ("floor", "end_accuracy", "end_floor")]
    if row["of"] == OnStream.kind:  # all that is known of it is about its last positions
        numbers = [number(row["end_floor"]), "", ""]
    between = f"{number(row['low'])} to {number(row['high'])}"
    return [row["of"], f"{row['tested']:,}", f"{row['rows']:,}", number(row["accuracy"]), between, *numbers,
            "yes" if row["solved"] else "no"]  # fmt: skip


def on_words(record: TrainingRecord | EvaluatedRecord, rows: list[Row]) -> str:
    """What it did on hard words; where one of them breaks it, beside how far random rows found it right."""
    ended = sorted((row["tested"], row["solved"]) for row in rows if row["of"] in (OnRows.kind, OnStream.kind)
                   and row["end_accuracy"] is not None and row["tested"] >= record.cell.length)  # fmt: skip
    right = [length for length, _ in takewhile(lambda each: each[1], ended)]
    if right and record.broken:
        return said_of_rows(right[-1], ended[-1][0], record.broken.said)
    return record.on_words_alone


def reasons(rows: list[Row]) -> list[str]:
    """Why something gave no number, a line for each."""
    failed = [row for row in rows if row["reason"]]
    lengths = [f" of {row['tested']:,}" if row["tested"] else "" for row in failed]
    return [f"no {row['of']}{length}: {row['reason']}" for row, length in zip(failed, lengths)]


def number(value: float | None) -> str:
    return "-" if value is None else fixed(value, 4)
