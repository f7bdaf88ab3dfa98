"""From records to the rows that figures and tables show: one function for each thing that is shown.

A row is a plain dict; its keys are the columns of the CSV file beside the figure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np

from statetrack.formatting import shown
from statetrack.reports.folder import TrainedCell
from statetrack.results.evaluations import BROKEN, PROVED, OnRows
from statetrack.verdicts import measurements

Row = dict[str, Any]
BINS = 48  # points of a position curve


def at_length(runs: Iterable[TrainedCell]) -> list[Row]:
    """One row a cell: the accuracy over all positions at the length trained on."""
    return [_at_length(run) for run in runs]


def _at_length(run: TrainedCell) -> Row:
    here = run.record.at_length
    low, high = here.interval or (None, None)
    return {
        "model": run.model, "length": run.trained, "seed": run.seed, "accuracy": here.accuracy, "low": low,
        "high": high, "floor": here.floor, "last_quarter": here.tail_accuracy, "solved": run.record.solved,
        "rows": here.rows, "status": run.record.status,
    }  # fmt: skip


def tested(runs: Iterable[TrainedCell]) -> list[Row]:
    """One row for each cell and length tested: the accuracy at the end of a row, beside the floor there.

    At the length trained on and its multiples the end is the last 32 positions (all of a shorter row); along a stream
    it is the last positions before the mark, at most 1,024.
    """
    return [row for run in runs for row in _tested(run)]


def _tested(run: TrainedCell) -> Iterator[Row]:
    for one in measurements.tested(run.record):
        if one.end is not None:
            low, high = one.end_interval or (None, None)
            yield {
                "model": run.model, "trained": run.trained, "seed": run.seed, "tested": one.length,
                "accuracy": one.end, "low": low, "high": high, "floor": one.end_floor, "of": one.of, "rows": one.rows,
            }  # fmt: skip


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None and not math.isnan(value)]
    return float(np.mean(known)) if known else None


def positions(runs: Iterable[TrainedCell]) -> list[Row]:
    """The accuracy by position: the median over seeds, their extremes, and the floor; long rows in geometric bins."""
    told = (run for run in runs if run.record.at_length.accuracy_by_position)
    groups = measurements.grouped(told, lambda run: (run.model, run.trained))
    return [row for (model, trained), same in groups.items() for row in _positions(model, trained, same)]


def _positions(model: str, trained: int, runs: list[TrainedCell]) -> Iterator[Row]:
    curves = [run.record.at_length.accuracy_by_position or [] for run in runs]
    floors = runs[0].record.at_length.floor_by_position or []
    for begin, end in pairwise(bins(trained)):
        seen = [value for curve in curves if (value := _mean(curve[begin:end])) is not None]
        if seen:
            floor = _mean(floors[begin:end])
            yield {
                "model": model, "trained": trained, "position": (begin + 1 + end) / 2, "accuracy": median(seen),
                "least": min(seen), "most": max(seen), "floor": floor, "seeds": len(seen),
            }  # fmt: skip


def bins(length: int, most_bins: int = BINS) -> list[int]:
    """Edges of at most so many ranges of positions, each position alone while there are few.

    >>> bins(4), bins(1000, 5)
    ([0, 1, 2, 3, 4], [0, 4, 16, 63, 251, 1000])
    """
    if length <= most_bins:
        return list(range(length + 1))
    marks = np.unique(np.round(np.geomspace(1, length, most_bins + 1)).astype(int))
    return [0, *marks[1:].tolist()]


def off_distribution(runs: Iterable[TrainedCell]) -> list[Row]:
    """The accuracy off the data trained on, case by case, as a median over seeds; `worst` is of each seed's worst."""
    groups: dict[tuple[str, int, str], list[float]] = {}
    for run in runs:
        found = run.record.off_data
        if not found:
            continue
        cases = {"worst": found.worst, "as trained": run.record.at_length.accuracy, **found.accuracy}
        for case, accuracy in cases.items():
            if accuracy is not None:
                groups.setdefault((run.model, run.trained, case), []).append(accuracy)
    return [
        {"model": model, "trained": trained, "case": case, "accuracy": median(seen), "seeds": len(seen)}
        for (model, trained, case), seen in groups.items()
    ]


def wrong_elsewhere(runs: Iterable[TrainedCell]) -> tuple[int, list[tuple[float, str, TrainedCell]]]:
    """How many of the networks solved random rows and were tried on rows that training never showed; and those of them
    that are below 99 % there, with the accuracy on the worst kind of row and its name, the lowest first.
    """
    tried = [(run, found) for run in runs if run.record.solved and (found := run.record.off_data)]
    wrong = [(*worst, run) for run, found in tried if (worst := found.failing)]
    return len(tried), sorted(wrong, key=lambda each: each[0])


def heat(runs: Iterable[TrainedCell]) -> list[Row]:
    """Model by length: the median over seeds and how far it is from the floor to 1.

    With several lengths trained on, each stands for itself; with one, the lengths tested beyond it are shown.
    """
    held = list(runs)
    if len({run.trained for run in held}) > 1:
        rows = [{**row, "tested": row["length"]} for row in at_length(held)]
    else:
        rows = [row for row in tested(held) if row["of"] == OnRows.kind]
    groups = measurements.grouped(rows, lambda row: (row["model"], row["tested"]))
    several = any(len(same) > 1 for same in groups.values())
    known = measurements.grouped(held, lambda run: (run.model, run.trained))
    alone = len({run.trained for run in held}) == 1

    def standings(model: str, length: int) -> list[str]:
        """Of the networks behind a cell: what is known at every length is known wherever they are tested."""
        return [run.record.standing for run in known[model, held[0].trained if alone else length]]

    return [_heat(model, length, same, several, standings(model, length)) for (model, length), same in groups.items()]


def _heat(model: str, length: int, rows: list[Row], mark_alone: bool, standings: Sequence[str]) -> Row:
    middle = median(row["accuracy"] for row in rows)
    known = [row["floor"] for row in rows if row["floor"] is not None]
    floor = median(known) if known else None
    return {
        "model": model, "length": length, "accuracy": middle, "floor": floor, "skill": skill(middle, floor),
        "seeds": len(rows), "shown": shown(middle) + ("*" if mark_alone and len(rows) == 1 else ""),
        **for_ever_of(standings),
    }  # fmt: skip


def for_ever_of(standings: Sequence[str]) -> Row:
    """What is known at every length of the networks of one cell of the heat map; nothing where nobody looked.

    >>> for_ever_of(["proved as trained", "broken by a word"])
    {'mark': 'broken by a word', 'for_ever': '1 of 2 broken by a word, 1 of 2 proved as trained'}
    """
    counts = Counter(each for each in standings if each)
    if not counts:
        return {}
    told = ", ".join(f"{counts[each]} of {len(standings)} {each}" for each in sorted(counts))
    mark = BROKEN if counts[BROKEN] else PROVED if counts[PROVED] == len(standings) else ""
    return {"mark": mark or None, "for_ever": told}


def skill(accuracy: float, floor: float | None) -> float | None:
    """How much of the way from the floor to 1 is made, at least 0; None where there is no way or no floor."""
    if floor is None or floor > 0.9999:
        return None
    return min(1.0, max(0.0, (accuracy - floor) / (1 - floor)))


def middle(runs: Iterable[TrainedCell]) -> Row:
    """Of seeds of one model and length: the median accuracy over all positions, the floor, and the way between."""
    here = [run.record.at_length for run in runs]
    accuracy = median(each.accuracy for each in here if each.accuracy is not None)
    floors = [each.floor for each in here if each.floor is not None]
    floor = median(floors) if floors else None
    return {"accuracy": accuracy, "floor": floor, "skill": skill(accuracy, floor)}


def cost(runs: Iterable[TrainedCell]) -> list[Row]:
    """One row a cell: what it took, and the accuracy at the end of the longest rows tested."""
    rows = []
    for run in runs:
        took = run.record.training
        ends = [row for row in _tested(run) if row["of"] == OnRows.kind]
        seconds, speed, replicas = took.train_seconds, took.tokens_per_second, took.replicas or 1
        rows.append({
            "model": run.model, "trained": run.trained, "seed": run.seed, "parameters": took.parameters,
            "state": took.state_size, "seconds": seconds / replicas if seconds else None,
            "tokens": seconds * speed / replicas if seconds and speed else None, "steps": took.steps,
            "tested": ends[-1]["tested"] if ends else None, "accuracy": ends[-1]["accuracy"] if ends else None,
            "device": took.device,
        })  # fmt: skip
    return rows
