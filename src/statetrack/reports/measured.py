"""From records to the rows that figures and tables show: one function for each thing that is shown.

A row is a plain dict; its keys are the columns of the CSV file beside the figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np

from statetrack.formatting import shown
from statetrack.intervals import wilson
from statetrack.reports.folder import Run
from statetrack.verdicts.measured import SOLVED, most, recorded_end_floor

Row = dict[str, Any]
BINS = 48  # points of a position curve


def at_length(runs: Iterable[Run]) -> list[Row]:
    """One row a cell: the accuracy over all positions at the length trained on."""
    return [
        {
            "model": run.model, "length": run.trained, "seed": run.seed, "accuracy": run.record["accuracy"],
            "low": run.record["interval"][0], "high": run.record["interval"][1], "floor": run.record["floor"],
            "last_quarter": run.record.get("tail_accuracy"), "solved": bool(run.record.get("solved")),
            "rows": run.record.get("rows"), "status": run.record.get("status", "done"),
        }
        for run in runs
    ]  # fmt: skip


def tested(runs: Iterable[Run]) -> list[Row]:
    """One row for each cell and length tested: the accuracy at the end of a row, beside the floor there.

    At the length trained on and its multiples the end is the last 32 positions (all of a shorter row); along a stream
    it is the last positions before the mark, at most 1,024.
    """
    return [row for run in runs for row in _tested(run)]


def _tested(run: Run) -> Iterator[Row]:
    shared = {"model": run.model, "trained": run.trained, "seed": run.seed}
    entries = {run.trained: run.record, **by_length(run.record.get("length_generalisation"))}
    for length, entry in sorted(entries.items()):
        accuracy = entry.get("last_32_accuracy")
        if accuracy is not None:
            low, high = entry.get("last_32_interval") or (None, None)
            yield {
                **shared, "tested": length, "accuracy": accuracy, "low": low, "high": high,
                "floor": recorded_end_floor(run.record, length), "of": "rows", "rows": entry.get("rows"),
            }  # fmt: skip
    stream = run.record.get("stream") or {}
    for length, accuracy in by_length(stream.get("accuracy")).items():
        if accuracy is not None and length not in entries:
            low, high = wilson(accuracy * stream["rows"], stream["rows"])
            yield {
                **shared, "tested": length, "accuracy": accuracy, "low": low, "high": high,
                "floor": recorded_end_floor(run.record, length), "of": "stream", "rows": stream["rows"],
            }  # fmt: skip


def by_length(entries: Any) -> dict[int, Any]:
    return {int(length): entry for length, entry in entries.items()} if isinstance(entries, dict) else {}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None and not math.isnan(value)]
    return float(np.mean(known)) if known else None


def positions(runs: Iterable[Run]) -> list[Row]:
    """The accuracy by position: the median over seeds, their extremes, and the floor; long rows in geometric bins."""
    groups: dict[tuple[str, int], list[Run]] = {}
    for run in runs:
        if run.record.get("accuracy_by_position"):
            groups.setdefault((run.model, run.trained), []).append(run)
    return [row for (model, trained), same in groups.items() for row in _positions(model, trained, same)]


def _positions(model: str, trained: int, runs: list[Run]) -> Iterator[Row]:
    edges = bins(trained)
    for begin, end in pairwise(edges):
        seen = [value for run in runs if (value := _mean(run.record["accuracy_by_position"][begin:end])) is not None]
        if seen:
            floor = _mean((runs[0].record.get("floor_by_position") or [])[begin:end])
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


def off_distribution(runs: Iterable[Run]) -> list[Row]:
    """The accuracy off the data trained on, case by case, as a median over seeds; `worst` is of each seed's worst."""
    groups: dict[tuple[str, int, str], list[float]] = {}
    for run in runs:
        found = run.record.get("off_distribution")
        if not found:
            continue
        cases = {"worst": found.get("worst"), "as trained": run.record["accuracy"], **found["accuracy"]}
        for case, accuracy in cases.items():
            if accuracy is not None:
                groups.setdefault((run.model, run.trained, case), []).append(accuracy)
    return [
        {"model": model, "trained": trained, "case": case, "accuracy": median(seen), "seeds": len(seen)}
        for (model, trained, case), seen in groups.items()
    ]


def heat(runs: Iterable[Run]) -> list[Row]:
    """Model by length: the median over seeds and how far it is from the floor to 1.

    With several lengths trained on, each stands for itself; with one, the lengths tested beyond it are shown.
    """
    held = list(runs)
    if len({run.trained for run in held}) > 1:
        rows = [{**row, "tested": row["length"]} for row in at_length(held)]
    else:
        rows = [row for row in tested(held) if row["of"] == "rows"]
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["model"], row["tested"]), []).append(row)
    several = any(len(same) > 1 for same in groups.values())
    return [_heat(model, length, same, several) for (model, length), same in groups.items()]


def _heat(model: str, length: int, rows: list[Row], mark_alone: bool) -> Row:
    middle = median(row["accuracy"] for row in rows)
    known = [row["floor"] for row in rows if row["floor"] is not None]
    floor = median(known) if known else None
    return {
        "model": model, "length": length, "accuracy": middle, "floor": floor, "skill": skill(middle, floor),
        "seeds": len(rows), "shown": shown(middle) + ("*" if mark_alone and len(rows) == 1 else ""),
    }  # fmt: skip


def skill(accuracy: float, floor: float | None) -> float | None:
    """How much of the way from the floor to 1 is made, at least 0; None where there is no way or no floor."""
    if floor is None or floor > 0.9999:
        return None
    return min(1.0, max(0.0, (accuracy - floor) / (1 - floor)))


def reach(runs: Sequence[Run]) -> Row:
    """How far one model keeps track: the longest length at whose end most seeds are at .99 or above.

    Seeds of one length trained on are counted together; where several lengths were trained on, the best of them counts.
    `longest` is the longest that it was tested at, `lost_at` the first beyond the reach, 0 and None where there is
    none; `easy` says that at the length reached a guess scores as much.
    """
    lengths = sorted({run.trained for run in runs})
    found = [_reach([run for run in runs if run.trained == trained]) for trained in lengths]
    return max(found, key=lambda row: (row["reach"], row["longest"]))


def _reach(runs: Sequence[Run]) -> Row:
    rows = tested(runs)
    lengths = sorted({row["tested"] for row in rows})
    solved = [n for n in lengths if most([row["accuracy"] >= SOLVED for row in rows if row["tested"] == n])]
    best = max(solved, default=0)
    floor = [row["floor"] for row in rows if row["tested"] == best and row["floor"] is not None]
    return {
        "model": runs[0].model, "reach": best, "longest": max(lengths, default=0), "trained": runs[0].trained,
        "lost_at": next((n for n in lengths if best and n > best), None), "seeds": len({run.seed for run in runs}),
        "easy": bool(floor) and min(floor) >= SOLVED,
    }  # fmt: skip


def cost(runs: Iterable[Run]) -> list[Row]:
    """One row a cell: what it took, and the accuracy at the end of the longest rows tested."""
    rows = []
    for run in runs:
        record = run.record
        ends = [row for row in _tested(run) if row["of"] == "rows"]
        seconds, speed = record.get("train_seconds"), record.get("tokens_per_second")
        replicas = record.get("replicas") or 1
        rows.append({
            "model": run.model, "trained": run.trained, "seed": run.seed, "parameters": record.get("parameters"),
            "state": record.get("state_size"), "seconds": seconds / replicas if seconds else None,
            "tokens": seconds * speed / replicas if seconds and speed else None, "steps": record.get("steps"),
            "tested": ends[-1]["tested"] if ends else None, "accuracy": ends[-1]["accuracy"] if ends else None,
            "device": record.get("device"),
        })  # fmt: skip
    return rows
