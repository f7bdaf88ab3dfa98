"""Cells that a shorter length has made pointless. The rule, for one task, subject and protocol:

    a length is skipped when at the next shorter one in the folder every seed was trained, none diverged, none solved
    it, and no seed was above its floor.

What theory says has no part in it: a cell that theory calls hopeless is the one that could refute it. So lengths are
run from short to long; each skipped cell keeps its reason, and a run without --prune does it after all.
"""

from __future__ import annotations

from collections.abc import Iterable

from statetrack.formatting import plural
from statetrack.results.cell import Cell
from statetrack.results.records import DIVERGED, SKIPPED, TrainingRecord
from statetrack.results.store import Store
from statetrack.sweeps.units import Unit


class Pruner:
    """Knows the ladder of lengths of every (task, subject, protocol) in a sweep."""

    def __init__(self, store: Store, cells: Iterable[Cell]) -> None:
        self.store = store
        self.ladders: dict[str, dict[int, list[Cell]]] = {}
        for cell in cells:
            lengths = self.ladders.setdefault(Unit("", (cell,), 0).ladder, {})
            lengths.setdefault(cell.length, []).append(cell)

    def reason(self, unit: Unit) -> str | None:
        """Why this unit is pointless, or None."""
        shorter = self.before(unit)
        if not shorter:
            return None
        records = [self.store.record(cell) for cell in shorter]
        if any(record is None for record in records):
            return None
        present = [record for record in records if record is not None]
        skipped = [record for record in present if record.status == SKIPPED]
        if skipped:
            return skipped[0].reason
        trained = [record for record in present if isinstance(record, TrainingRecord)]
        if len(trained) < len(present) or any(_speaks_against(record) for record in trained):
            return None
        seeds = f"{len(present)} of {plural(len(present), 'seed')}"
        return f"at length {shorter[0].length} no seed was above the floor ({seeds})"

    def before(self, unit: Unit) -> list[Cell]:
        """The cells of the next shorter length."""
        lengths = self.ladders.get(unit.ladder, {})
        shorter = [length for length in lengths if length < unit.length]
        return lengths[max(shorter)] if shorter else []


def _speaks_against(record: TrainingRecord) -> bool:
    """Whether a longer length may still be worth its time: a run that diverged, or took no step, shows no limit."""
    return record.solved or record.above_floor or record.status == DIVERGED or not record.training.steps
