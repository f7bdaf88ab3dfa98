"""How a folder stands: what is done, running, failed, skipped and missing, and how long the rest may take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from statetrack.results import claims, plans
from statetrack.results.checkpoints import Checkpoint, under_way
from statetrack.results.pace import CostBySubject, Pace
from statetrack.results.plans import Sweep
from statetrack.results.records import DIVERGED, DONE, FAILED, FINISHED, SKIPPED, Record
from statetrack.results.store import Damage, Store

RUNNING, MISSING = "running", "missing"
ORDER = (DONE, DIVERGED, RUNNING, FAILED, SKIPPED, MISSING)


@dataclass
class Status:
    """Counts by status, and what they leave to do."""

    counts: dict[str, int]
    sweeps: dict[str, dict[str, int]]
    damaged: list[Damage]
    failures: list[Record]
    skipped: Counter[str]
    workers: int  # units that run now
    seconds_left: float | None
    beyond: int = 0  # results of no sweep of this folder
    foreign: list[str] = field(default_factory=list)  # names of files that are not ours
    still: list[str] = field(default_factory=list)  # holders of a cell that do not move
    checkpoints: list[Checkpoint] = field(default_factory=list)  # of trainings under way, or cut off

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.counts, "damaged": [str(each) for each in self.damaged],
            "failures": [f"{each.cell}: {each.reason}" for each in self.failures],
            "skipped_because": dict(self.skipped), "units_running": self.workers, "seconds_left": self.seconds_left,
            "sweeps": self.sweeps, "of_no_sweep": self.beyond, "not_ours": self.foreign,
            "not_moving": self.still, "checkpoints": [each.described() for each in self.checkpoints],
        }  # fmt: skip


def status(store: Store) -> Status:
    """Read the whole folder once."""
    read = list(plans.found(store))
    sweeps = [plan for plan in read if isinstance(plan, Sweep)]
    broken = [plan for plan in read if isinstance(plan, Damage)]
    planned = plans.entries(sweeps)
    lacking: dict[str, list[int]] = {}
    statuses: dict[str, str] = {}
    damaged, failures, skipped, pace = [], [], Counter[str](), Pace()
    for key, record in store.entries({key: entry.cell for key, entry in planned.items()}):
        if isinstance(record, Damage):
            damaged.append(record)
            continue
        if key in planned and record.finished:
            lacking[key] = record.lacks(planned[key].streams)
        statuses[key] = record.status
        if statuses[key] == FAILED:
            failures.append(record)
        elif statuses[key] == SKIPPED:
            skipped[record.reason] += 1
        elif key in planned and record.seconds:
            pace.add(planned[key].cell.subject, planned[key].cost, record.seconds)
    undone = {key for key in planned if statuses.get(key) not in FINISHED or lacking[key]}
    running = {key: since for key, since in claims.running(store) if key in undone}

    def standing(key: str, streams: Iterable[int]) -> str:
        """By what is asked for: one sweep may ask for a longer stream than another."""
        if key in running:
            return RUNNING
        return MISSING if lacking.get(key) and set(streams) & set(lacking[key]) else statuses.get(key, MISSING)

    standings = {key: standing(key, planned[key].streams if key in planned else ()) for key in {**planned, **statuses}}
    workers = len(set(running.values()))
    left = CostBySubject()
    for key, entry in planned.items():
        if standings[key] in (RUNNING, FAILED, MISSING):
            left.add(entry.cell.subject, entry.cost)
    return Status(
        counts=_count(standings.values()),
        sweeps={
            sweep.title: _count(standing(planned_cell.cell.key, planned_cell.streams) for planned_cell in sweep.entries)
            for sweep in sweeps
        },
        damaged=[*damaged, *broken],
        still=[str(holder) for holder in claims.still(store, [planned[key].cell for key in running])],
        failures=failures,
        skipped=skipped,
        workers=workers,
        seconds_left=pace.seconds_left(left, workers),
        beyond=sum(key not in planned for key in statuses),
        foreign=store.foreign(),
        checkpoints=under_way(store),
    )


def by_reason(failures: list[Record]) -> list[str]:
    """A line for each reason: one fault may fail many cells."""
    reasons: dict[str, list[Record]] = {}
    for failure in failures:
        reasons.setdefault(failure.reason, []).append(failure)
    return [
        f"failed{f' {len(same)}, first' if len(same) > 1 else ':'} {same[0].cell}: {reason}"
        for reason, same in reasons.items()
    ]


def _count(statuses: Any) -> dict[str, int]:
    counts = Counter(statuses)
    return {name: counts[name] for name in ORDER}
