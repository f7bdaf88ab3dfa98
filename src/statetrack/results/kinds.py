"""The kinds of cells: how one is described, what it costs, how it is run. A kind is a module with five functions.

    describe(task, subject, length, seed, protocol, settings) -> CellRequest   refuses what cannot be run (BadInput)
    cost(wanted) -> float                                how much work it is, compared with others of its kind
    took(record) -> Measured | None                      what one took that is finished, for forecasts
    step(cell) -> int                                    the tokens of its largest step; 0 where nothing is trained
    run(work, store, scratch) -> Iterator[Record]        does cells that differ in their seed alone

`run` keeps every record in the store as soon as it has it, the files that go with it before it, and then yields it.
What it finds there of these cells (a result that lacks an evaluation, a dialogue that was cut off) it goes on from.
What it keeps in the folder `scratch` is there again when the same cells are run again after a kill.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from statetrack.errors import BadInput
from statetrack.results.cell import Cell
from statetrack.results.history import Measured
from statetrack.results.records import Record
from statetrack.results.store import Store


@dataclass(frozen=True)
class CellRequest:
    """A cell, the lengths of the streams and the tokens of hard words on which it is to be evaluated as well (None: the
    usual number, when it is trained).
    """

    cell: Cell
    streams: tuple[int, ...] = ()
    words: int | None = None


@dataclass(frozen=True)
class SeedGroup:
    """Cells that differ in their seed alone, to be done in one go."""

    cells: tuple[Cell, ...]
    streams: tuple[int, ...] = ()
    device: str = "auto"
    weights: bool = True  # whether those that are trained are kept
    words: int | None = None


class Kind(Protocol):
    """What a kind's module offers."""

    def describe(
        self, task: str, subject: str, length: int, seed: int, protocol: str, settings: dict[str, Any]
    ) -> CellRequest: ...

    def cost(self, wanted: CellRequest) -> float: ...

    def took(self, record: Record) -> Measured | None: ...

    def step(self, cell: Cell) -> int: ...

    def run(self, work: SeedGroup, store: Store, scratch: Path) -> Iterator[Record]: ...


class WrongPart(BadInput):
    """What is wrong, and in which part of a block: tasks, subjects, lengths, seeds, protocol or settings."""

    def __init__(self, part: str, message: str) -> None:
        super().__init__(message)
        self.part = part


@contextmanager
def checking(part: str) -> Iterator[None]:
    """Say of a refusal inside which part of a block it speaks of."""
    try:
        yield
    except BadInput as error:
        raise WrongPart(part, str(error)) from error
