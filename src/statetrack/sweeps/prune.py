"""Cells that a shorter length has made pointless. The rule, for one task, subject and protocol:

    a length is skipped when at the next shorter one in the folder every seed was measured, none solved it, and either
    no seed was above its floor, or theory says that no weights solve the task at every length.

So lengths are run from short to long; each skipped cell keeps its reason, and a run without --prune does it after all.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from statetrack.errors import BadInput
from statetrack.formatting import plural
from statetrack.results.cell import Cell
from statetrack.results.records import SKIPPED, TrainingRecord
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
        if len(trained) < len(present) or any(record.solved for record in trained):
            return None
        length = shorter[0].length
        if not any(record.above_floor for record in trained):
            return f"at length {length} no seed was above the floor ({len(present)} of {plural(len(present), 'seed')})"
        why = impossible(unit.cells[0].subject, unit.cells[0].task)
        return f"at length {length} no seed solved it, and theory: {why}" if why else None

    def before(self, unit: Unit) -> list[Cell]:
        """The cells of the next shorter length."""
        lengths = self.ladders.get(unit.ladder, {})
        shorter = [length for length in lengths if length < unit.length]
        return lengths[max(shorter)] if shorter else []


@functools.cache
def impossible(subject: str, task_text: str) -> str | None:
    """Theory's reason why no weights of this model solve the task at every length: a proof that random rows test."""
    from statetrack import theory
    from statetrack.tasks import task

    try:
        prediction = theory.predict(subject, task(task_text))
    except BadInput:  # a model of somebody's own: nothing is known of it
        return None
    said = prediction.outcome == "cannot" and prediction.status == "proved" and not prediction.rows_forget
    return prediction.why if said else None
