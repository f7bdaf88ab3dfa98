"""What is handed to a worker: cells that differ in their seed alone, run together. The order is longest first."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property

from statetrack.results.cell import Cell
from statetrack.results.plans import PlannedCell
from statetrack.sweeps.kinds import code_of

BUSY, MEMORY, LOST = "busy", "out of memory", "lost"


@dataclass(frozen=True)
class Outcome:
    """What became of a cell: a status of the store, or BUSY (another runner has it), MEMORY (it did not fit), LOST (its
    worker died, or its GPU failed).
    """

    status: str
    seconds: float = 0.0
    reason: str = ""


@dataclass(frozen=True)
class Unit:
    """One piece of work. `alone` is for what did not fit beside others; `tries` counts workers that died of it. `block`
    are the cells that it was cut from, some of which may be done: they share a checkpoint.
    """

    kind: str
    cells: tuple[Cell, ...]
    cost: float
    resources: dict[str, float] = field(default_factory=dict)
    alone: bool = False
    tries: int = 0
    streams: tuple[int, ...] = ()
    words: int | None = None
    block: tuple[Cell, ...] = ()
    cell_seconds: float | None = None  # that each of its cells may take

    @property
    def seconds(self) -> float | None:
        """That it may take: cells that are run together share what each of them has."""
        return None if self.cell_seconds is None else self.cell_seconds * len(self.cells)

    @cached_property
    def name(self) -> str:
        return self.cells[0].key

    @property
    def length(self) -> int:
        return self.cells[0].length

    @property
    def ladder(self) -> str:
        """The same for units that differ in their length alone."""
        first = self.cells[0]
        return Cell(first.task, first.subject, 0, 0, first.protocol).key

    @property
    def code(self) -> list[str]:
        """The addresses of code that it runs. Its runner has asked whether that may be, before it was sent anywhere."""
        return code_of([PlannedCell(self.cells[0], self.kind)])

    def of(self, cells: Iterable[Cell], **changes: object) -> Unit:
        """The same work for some of the cells."""
        chosen = tuple(cells)
        share = self.cost * len(chosen) / len(self.cells)
        return dataclasses.replace(self, cells=chosen, cost=share, **changes)  # type: ignore[arg-type]


def units_of(
    entries: Iterable[PlannedCell], together: int, done: Collection[str] = (), cell_seconds: float | None = None
) -> list[Unit]:
    """Seeds of one (task, subject, length, protocol), at most `together` in a unit; the costliest first. Cells whose
    keys are `done` are left out.
    """
    groups: dict[object, list[PlannedCell]] = {}
    for entry in entries:
        alike = (entry.cell.siblings, entry.streams, entry.words)
        groups.setdefault(alike if together > 1 else entry.cell.key, []).append(entry)
    units = []
    for group in groups.values():
        for begin in range(0, len(group), together):
            block = group[begin : begin + together]
            some = [entry for entry in block if entry.cell.key not in done]
            if some:
                cells, whole = (tuple(entry.cell for entry in each) for each in (some, block))
                cost, first = sum(entry.cost for entry in some), some[0]
                units.append(
                    Unit(first.kind, cells, cost, first.resources, streams=first.streams, words=first.words,
                         block=whole, cell_seconds=cell_seconds)
                )  # fmt: skip
    return sorted(units, key=lambda unit: (-unit.cost, unit.name))
