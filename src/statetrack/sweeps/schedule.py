"""What is still to do, and in which order. Every runner asks it for the next unit and tells it what came of it."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field, replace

from statetrack.results import claims
from statetrack.results.cell import Cell
from statetrack.results.pace import CostBySubject, Pace
from statetrack.results.plans import PlannedCell, Sweep
from statetrack.results.records import FAILED, FINISHED, SKIPPED, AskedRecord, Record, no_result
from statetrack.results.store import Damage, Store, is_complete
from statetrack.sweeps.prune import Pruner
from statetrack.sweeps.units import BUSY, LOST, MEMORY, Outcome, Unit, units_of

AGAIN = 0.5  # seconds until a cell that another runner has is looked at again
MOST_TRIES = 3  # workers that may die of one unit


@dataclass
class SweepProgress:
    """How far a run is."""

    total: int
    counts: Counter[str] = field(default_factory=Counter)
    found: int = 0  # finished before this run began
    left: CostBySubject = field(default_factory=CostBySubject)
    pace: Pace = field(default_factory=Pace)  # of this run
    failures: list[Record] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)  # of each cell that this run finished, by key

    @property
    def finished(self) -> int:
        return sum(self.counts[status] for status in FINISHED)

    @property
    def settled(self) -> int:
        return sum(self.counts.values())

    def seconds_left(self, workers: int) -> float | None:
        """What is left, at the pace of what was done; None before enough was."""
        return self.pace.seconds_left(self.left, workers)


class Schedule:
    """The units of a sweep that are not finished in the folder."""

    def __init__(
        self, sweep: Sweep, store: Store, together: int = 1, prune: bool = False, cell_seconds: float | None = None
    ) -> None:
        self.store = store
        self.cell_seconds = cell_seconds
        self.pruner = Pruner(store, sweep.cells) if prune else None
        self.damaged: list[Damage] = []
        self.tally = SweepProgress(len(sweep.entries))
        self.costs = {entry.cell.key: entry.cost for entry in sweep.entries}
        self.evaluated_again, self.trained_again = (
            0,
            0,
        )  # finished cells that lack an evaluation, with and without weights
        kept = (*FINISHED, SKIPPED) if prune else FINISHED
        done = self._done({entry.cell.key: entry for entry in sweep.entries}, kept)
        self.tally.found = self.tally.settled
        for entry in sweep.entries:
            if entry.cell.key not in done:
                self.tally.left.add(entry.cell.subject, entry.cost)
        self.pending = units_of(sweep.entries, together, done, cell_seconds)
        if prune:
            self.pending.sort(key=lambda unit: (unit.length, -unit.cost, unit.name))
        self.pending.reverse()  # the next one is the last of the list
        self.unsettled = {cell.key for unit in self.pending for cell in unit.cells}
        self.waiting: list[tuple[float, Unit]] = []

    def _done(self, planned: dict[str, PlannedCell], kept: tuple[str, ...]) -> set[str]:
        """The cells of the sweep that need nothing more."""
        done = set()
        for key, record in self.store.entries({key: entry.cell for key, entry in planned.items()}):
            if isinstance(record, Damage):
                self.damaged.append(record)
            elif key in planned and record.status in kept:
                if not record.finished or self._complete(record, planned[key]):
                    done.add(key)
                    self.tally.counts[record.status] += 1
                elif self.store.weights(record.cell):
                    self.evaluated_again += 1
                else:
                    self.trained_again += 1
        return done

    def _complete(self, record: Record, asked: PlannedCell | Unit) -> bool:
        return is_complete(self.store, record, asked.streams, asked.words)

    @property
    def over(self) -> bool:
        return not self.unsettled

    def next(self) -> Unit | None:
        """The next unit, or None while there is none to hand out."""
        while True:
            unit = self._pop()
            if unit is None or self.pruner is None:
                return unit
            reason = self.pruner.reason(unit)
            if reason is None:
                return unit
            self._record(unit, SKIPPED, reason)

    def _pop(self) -> Unit | None:
        for place in range(len(self.pending) - 1, -1, -1):
            if self._ready(self.pending[place]):
                return self.pending.pop(place)
        now = time.monotonic()
        for place, (at, unit) in enumerate(self.waiting):
            if at <= now:
                del self.waiting[place]
                return unit
        return None

    def _ready(self, unit: Unit) -> bool:
        """With pruning, a length waits for the next shorter one."""
        if self.pruner is None:
            return True
        return not any(cell.key in self.unsettled for cell in self.pruner.before(unit))

    def put_back(self, unit: Unit) -> None:
        """Hand this unit out next."""
        self.pending.append(unit)

    def settle(self, unit: Unit, outcomes: dict[str, Outcome]) -> None:
        """Take note of what came of a unit; what was not done is put back."""
        by_status: dict[str, list[Cell]] = {}
        for cell in unit.cells:
            outcome = outcomes[cell.key]
            by_status.setdefault(outcome.status, []).append(cell)
            if outcome.status not in (BUSY, MEMORY, LOST):
                self._count(cell, outcome)
        if BUSY in by_status:
            self.waiting.append((time.monotonic() + AGAIN, unit.of(by_status[BUSY])))
        if MEMORY in by_status:
            self._make_room(unit.of(by_status[MEMORY]), outcomes[by_status[MEMORY][0].key].reason)
        if LOST in by_status:
            self._try_again(unit.of(by_status[LOST], tries=unit.tries + 1), outcomes[by_status[LOST][0].key].reason)

    def fail(self, unit: Unit, reason: str) -> None:
        """Write down that a unit has failed whose worker cannot."""
        self._record(unit, FAILED, reason)

    def look_for(self, unit: Unit) -> None:
        """Take note of what a worker finished before it was ended, and could not tell any more."""
        for cell in unit.cells:
            record = self.store.read(cell)
            if record is not None and self._complete(record, unit) and cell.key in self.unsettled:
                self._count(cell, Outcome(record.status, record.seconds or 0.0))

    def _count(self, cell: Cell, outcome: Outcome) -> None:
        self.unsettled.discard(cell.key)
        cost = self.costs[cell.key]
        self.tally.counts[outcome.status] += 1
        self.tally.left.take(cell.subject, cost)
        if outcome.status in FINISHED and outcome.seconds:  # one that failed at once says nothing of its cost
            self.tally.pace.add(cell.subject, cost, outcome.seconds)
            self.tally.seconds[cell.key] = outcome.seconds
        if outcome.status == FAILED:
            self.tally.failures.append(no_result(cell, FAILED, outcome.reason))

    def _make_room(self, unit: Unit, reason: str) -> None:
        """What did not fit beside others is run alone; then with fewer seeds at a time; then it has failed."""
        if not unit.alone:
            self.pending.insert(0, unit.of(unit.cells, alone=True))
        elif len(unit.cells) > 1:
            half = len(unit.cells) // 2
            self.pending[:0] = [unit.of(unit.cells[:half]), unit.of(unit.cells[half:])]
        else:
            self._record(unit, FAILED, reason)

    def _try_again(self, unit: Unit, reason: str) -> None:
        if unit.tries < MOST_TRIES:
            self.pending.append(unit)
        else:
            self._record(unit, FAILED, f"{reason}, {unit.tries} times")

    def _record(self, unit: Unit, status: str, reason: str) -> None:
        """Write down that there is no result; a cell that another runner has meanwhile is looked at again later."""
        for cell in unit.cells:
            claim = claims.take(self.store, cell)
            if claim is None:
                self.waiting.append((time.monotonic() + AGAIN, unit.of([cell])))
                continue
            with claim:
                record = self.store.record(cell)
                finished = record is not None and record.finished
                if isinstance(record, AskedRecord) and not finished:  # a dialogue that was cut off keeps its replies
                    self.store.write(replace(record, status=status, reason=reason))
                elif record is None or not finished:
                    self.store.write(no_result(cell, status, reason, seconds=0.0))
            self._count(cell, Outcome(record.status if record and finished else status, 0.0, reason))
