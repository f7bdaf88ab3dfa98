"""How a folder stands: what is done, running, failed, skipped and missing, and how long the rest may take."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from statetrack.sweep import claims, plan
from statetrack.sweep.cell import Cell
from statetrack.sweep.plan import Entry
from statetrack.sweep.store import DIVERGED, DONE, FAILED, FINISHED, SKIPPED, Damage, Store

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


@dataclass
class Pace:
    """Seconds for a unit of cost, by subject where it was measured, else over all."""

    seconds: Counter[str] = field(default_factory=Counter)
    costs: Counter[str] = field(default_factory=Counter)

    def add(self, entry: Entry, seconds: float) -> None:
        for name in (entry.cell.subject, ""):
            self.seconds[name] += seconds  # type: ignore[assignment]
            self.costs[name] += entry.cost  # type: ignore[assignment]

    def guess(self, entry: Entry) -> float:
        name = entry.cell.subject if self.costs[entry.cell.subject] else ""
        return entry.cost * self.seconds[name] / self.costs[name]


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
            pace.add(planned[key], record["seconds"])
    running = {key: since for key, since in claims.running(store) if held.get(key) not in FINISHED}
    of = {key: RUNNING if key in running else held.get(key, MISSING) for key in {**planned, **held}}
    workers = len(set(running.values()))
    left = [planned[key] for key in planned if of[key] in (RUNNING, FAILED, MISSING)]
    return Status(
        counts=_count(of.values()),
        sweeps={each.name: _count(of[cell.key] for cell in each.cells) for each in sweeps},
        damaged=damaged,
        failures=failures,
        skipped=skipped,
        workers=workers,
        seconds_left=_left(left, pace, max(1, workers)),
        beyond=sum(key not in planned for key in held),
    )


def _left(entries: list[Entry], pace: Pace, workers: int) -> float | None:
    if not entries:
        return 0.0
    if not pace.costs[""]:
        return None
    return sum(pace.guess(entry) for entry in entries) / workers


def _count(statuses: Any) -> dict[str, int]:
    counts = Counter(statuses)
    return {name: counts[name] for name in ORDER}


def duration(seconds: float | None) -> str:
    """
    >>> duration(59), duration(3600), duration(None)
    ('59 s', '60 min', 'unknown')
    """
    if seconds is None:
        return "unknown"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 2 * 3600 else f"{seconds / 3600:.1f} h"
