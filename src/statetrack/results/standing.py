"""How a folder stands: what is done, running, failed, skipped and missing, and how long the rest may take."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from statetrack.results import claims
from statetrack.results import plans as plan
from statetrack.results.cell import Cell
from statetrack.results.pace import Pace, Work
from statetrack.results.store import DIVERGED, DONE, FAILED, FINISHED, SKIPPED, Damage, Store

RUNNING, MISSING = "running", "missing"
ORDER = (DONE, DIVERGED, RUNNING, FAILED, SKIPPED, MISSING)


@dataclass
class Status:
    """Counts by status, and what they leave to do."""

    counts: dict[str, int]
    sweeps: dict[str, dict[str, int]]
    damaged: list[Damage]
    failures: list[str]
    skipped: Counter[str]
    workers: int  # units that run now
    seconds_left: float | None
    beyond: int = 0  # results of no sweep of this folder

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.counts,
            "damaged": [str(each) for each in self.damaged],
            "failures": self.failures,
            "skipped_because": dict(self.skipped),
            "units_running": self.workers,
            "seconds_left": self.seconds_left,
            "sweeps": self.sweeps,
            "of_no_sweep": self.beyond,
        }


def status(store: Store) -> Status:
    """Read the whole folder once."""
    sweeps = list(plan.saved(store))
    planned = {entry.cell.key: entry for sweep in sweeps for entry in sweep.entries}
    held: dict[str, str] = {}
    damaged, failures, skipped, pace = [], [], Counter[str](), Pace()
    for key, record in store.entries({key: entry.cell for key, entry in planned.items()}):
        if isinstance(record, Damage):
            damaged.append(record)
            continue
        held[key] = record.get("status", DONE)
        if held[key] == FAILED:
            failures.append(f"{Cell(**record['cell'])}: {record['reason']}")
        elif held[key] == SKIPPED:
            skipped[record["reason"]] += 1
        elif key in planned and record.get("seconds"):
            pace.add(planned[key].cell.subject, planned[key].cost, record["seconds"])
    running = {key: since for key, since in claims.running(store) if held.get(key) not in FINISHED}
    of = {key: RUNNING if key in running else held.get(key, MISSING) for key in {**planned, **held}}
    workers = len(set(running.values()))
    left = Work()
    for key, entry in planned.items():
        if of[key] in (RUNNING, FAILED, MISSING):
            left.add(entry.cell.subject, entry.cost)
    return Status(
        counts=_count(of.values()),
        sweeps={each.name: _count(of[cell.key] for cell in each.cells) for each in sweeps},
        damaged=damaged,
        failures=failures,
        skipped=skipped,
        workers=workers,
        seconds_left=pace.seconds_left(left, workers),
        beyond=sum(key not in planned for key in held),
    )


def by_reason(failures: list[str]) -> list[str]:
    """A line for each reason: one fault may fail many cells.

    >>> by_reason(["txc, mlp, length 8, seed 0: ValueError: x", "txc, mlp, length 8, seed 1: ValueError: x", "a: y"])
    ['failed 2, first txc, mlp, length 8, seed 0: ValueError: x', 'failed: a: y']
    """
    reasons: dict[str, list[str]] = {}
    for failure in failures:
        cell, _, reason = failure.partition(": ")
        reasons.setdefault(reason, []).append(cell)
    return [
        f"failed{f' {len(cells)}, first' if len(cells) > 1 else ':'} {cells[0]}: {reason}"
        for reason, cells in reasons.items()
    ]


def _count(statuses: Any) -> dict[str, int]:
    counts = Counter(statuses)
    return {name: counts[name] for name in ORDER}
