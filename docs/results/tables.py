"""Write the tables of docs/results.md again from the packed cells beside this file: python docs/results/tables.py

A table stands between a line `<!-- archive: table -->` and a line `<!-- end -->`. Most are those of the report.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any

from statetrack.formatting import shown
from statetrack.reports import page_of
from statetrack.reports.table import Table
from statetrack.results import Store, TrainingRecord, unpack

HERE = Path(__file__).parent
PAGE = HERE.parent / "results.md"
PLACE = re.compile(r"(<!-- ([a-z-]+): ([a-z0-9_-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
WORK = tempfile.TemporaryDirectory(prefix="results-")


@cache
def folder(archive: str) -> Path:
    place = Path(WORK.name) / archive
    unpack(HERE / f"{archive}.tar.gz", place)
    return place


@cache
def records(archive: str) -> list[TrainingRecord]:
    return [record for record in Store(folder(archive)).records() if isinstance(record, TrainingRecord)]


def alike(archive: str, *keys: str, **wanted: Any) -> list[tuple[list[str], list[TrainingRecord]]]:
    """The records whose cells have what is wanted, by what their cells have under the keys, in order."""
    groups: dict[tuple[str, ...], list[TrainingRecord]] = {}
    for record in records(archive):
        cell = record.cell.to_dict() | {"protocol": record.cell.protocol["name"]}
        if all(cell[key] == value for key, value in wanted.items()):
            groups.setdefault(tuple(cell[key] for key in keys), []).append(record)
    return [(list(of), found) for of, found in sorted(groups.items())]


@cache
def reported(archive: str) -> dict[str, Table]:
    page = page_of(folder(archive))
    return {table.key: table for table in page.tables}


def spread(accuracies: list[float | None]) -> str:
    known = [accuracy for accuracy in accuracies if accuracy is not None]
    if not known:
        return ""
    low, high = shown(min(known)), shown(max(known))
    return low if low == high else f"{shown(median(known))} ({low}–{high})"


def costs(archive: str) -> Table:
    """Seconds that the cells of a model took, while others ran beside them."""
    took = [(*of, len(found), sum(each.seconds or 0.0 for each in found)) for of, found in alike(archive, "subject")]
    total = sum(seconds for *_, seconds in took)
    costliest = sorted(took, key=lambda row: -row[-1])
    rows = [[model, cells, round(seconds), f"{seconds / total:.0%}"] for model, cells, seconds in costliest]
    return Table("costs", "", "", ["model", "cells", "seconds", "share"], rows)


def ends(found: list[TrainingRecord], length: int) -> str:
    """The last 32 positions of rows of a length."""
    return spread([each.rows[length].last_32_accuracy for each in found])


def beyond(archive: str, task: str, trained: int) -> Table:
    """The last 32 positions of longer rows than were trained on, under `design`."""
    held = alike(archive, "subject", task=task, length=trained, protocol="design")
    lengths = [times * trained for times in (2, 4, 8, 16)]

    rows = [[*of, *(ends(found, length) for length in lengths)] for of, found in held]
    return Table("beyond", "", "", ["model", *(f"{length:,}" for length in lengths)], rows)


def streams(archive: str) -> Table:
    """The last quarter at the length trained on, the end of rows of 1,024, and the end of a stream at each mark."""
    marks = [4**power for power in range(6, 11)]
    rows = [
        [
            *of,
            spread([each.at_length.tail_accuracy for each in found]),
            ends(found, 1024),
            *(spread([(each.streams[0].accuracy or {})[str(mark)] for each in found]) for mark in marks),
        ]
        for of, found in alike(archive, "task", "subject")
    ]
    return Table("streams", "", "", ["task", "model", "trained", "1,024", *(f"{mark:,}" for mark in marks)], rows)


def models(archive: str) -> Table:
    """What each model has to learn with, and to remember with; the first depends on the task."""

    def sizes(found: list[TrainingRecord], key: str) -> str:
        low, high = (f"{extreme(getattr(each.training, key) for each in found):,}" for extreme in (min, max))
        return low if low == high else f"{low}–{high}"

    found = alike(archive, "subject")
    rows = [[*of, sizes(same, "parameters"), sizes(same, "state_size")] for of, same in found]
    return Table("models", "", "", ["model", "parameters", "numbers in the state"], rows)


OWN: dict[str, Callable[[str], Table]] = {
    "costs": costs,
    "models": models,
    "streams": streams,
    "beyond-txc-64": partial(beyond, task="txc", trained=64),
    "beyond-rtc-64": partial(beyond, task="rtc", trained=64),
}


def table(archive: str, key: str) -> str:
    made = OWN[key](archive) if key in OWN else reported(archive).get(key)
    if made is None:
        sys.exit(f"{archive} has no table {key!r}; it has {', '.join([*reported(archive), *OWN])}")
    return made.markdown()


def filled(text: str) -> str:
    return PLACE.sub(lambda found: f"{found[1]}\n{table(found[2], found[3])}\n\n{found[4]}", text)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
