"""Weights that were brought and evaluated, in a table and a sentence. They stand apart from what was trained here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from statetrack.formatting import RULE, shown
from statetrack.reports.figures.view import Row, slug
from statetrack.reports.folder import BroughtCell, Folder
from statetrack.reports.table import Table
from statetrack.verdicts import measurements

APART = "Nothing is said here of how they were trained, so they count in no verdict and in no rate of training."


def tested(cells: Iterable[BroughtCell]) -> list[Row]:
    """One row for each network and length: the accuracy at the end of a row, or before a mark of a stream."""
    return [row for cell in cells for row in _tested(cell)]


def _tested(cell: BroughtCell) -> Iterator[Row]:
    for one in measurements.tested(cell.record):
        if one.end is not None:
            low, high = one.end_interval or (None, None)
            yield {
                "model": cell.model, "trained": cell.record.cell.length or None, "seed": cell.record.cell.seed,
                "tested": one.length, "accuracy": one.end, "low": low, "high": high, "floor": one.end_floor,
                "of": one.of, "rows": one.rows,
            }  # fmt: skip


def table(folder: Folder, task: str) -> Table | None:
    """A line for each network and length tested."""
    lines = [line for cell in folder.brought_on(task) for line in _lines(cell)]
    headers = ["model", "trained at", "seed", "tested", "of", "rows", "accuracy", "95 %", "floor", "last 32", "solved",
               "broken by"]  # fmt: skip
    caption = (
        f"Weights that were brought here and tested. {APART} `trained at` is what was said of them, if anything, the "
        "seed is that of the test rows. The accuracy on rows is over all positions, along a stream over the last "
        f"1,024; intervals are over rows. Shares are {RULE}."
    )
    title = f"{task}: weights that were only evaluated"
    return Table(f"{slug(task)}-brought", title, caption, headers, lines, download=True) if lines else None


def _lines(cell: BroughtCell) -> Iterator[list[Any]]:
    record = cell.record
    for one in measurements.tested(record):
        low, high = one.interval
        floor = one.end_floor if one.of == "stream" else one.floor
        yield [
            cell.model, record.cell.length or None, record.cell.seed, one.length, one.of, one.rows, shown(one.accuracy),
            f"{shown(low)} to {shown(high)}", None if floor is None else shown(floor),
            None if one.end is None or one.of == "stream" else shown(one.end), one.solved, record.broken_by,
        ]  # fmt: skip
    for each in record.evaluations:
        if each.reason and not each.other_weights:
            length = getattr(each, "length", getattr(each, "steps", None))
            yield [
                cell.model,
                record.cell.length or None,
                record.cell.seed,
                length,
                each.kind,
                None,
                each.reason,
                *[None] * 5,
            ]


def sentence(folder: Folder, task: str) -> str:
    """How far each network was right that was brought."""
    parts = [f"{cell.model} {_far(cell)}" for cell in folder.brought_on(task)]
    return f"On {task}, not trained here: {'; '.join(parts)}." if parts else ""


def _far(cell: BroughtCell) -> str:
    """As far as every length tested is solved; and the word that breaks it all the same."""
    told = sorted(measurements.tested(cell.record), key=lambda one: one.length)
    word = f", and broken by the word {cell.record.broken.word}" if cell.record.broken else ""
    if not told:
        return f"gave no number{word}"
    wrong = next((one.length for one in told if not one.solved), None)
    if wrong is None:
        return f"is right to {told[-1].length:,}, the longest tested{word}"
    right = [one.length for one in told if one.length < wrong]
    return f"loses it by {wrong:,}{word}" if right else f"does not solve it at {wrong:,}{word}"
