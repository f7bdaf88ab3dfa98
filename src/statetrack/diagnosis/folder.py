"""The cells of a folder of results, one diagnosis each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from statetrack import trust
from statetrack.diagnosis.examine import diagnose, measurements
from statetrack.errors import BadInput, one_line, show_cause
from statetrack.results import Cell, Damage, Store, TrainingRecord
from statetrack.results import diagnosis as files
from statetrack.results.diagnosis import ERROR, LeftOut, left_out, why_not
from statetrack.tasks import trusted_task
from statetrack.training.weights import load


@dataclass(frozen=True)
class Selection:
    """Which cells, how far, and whether what is there is done again."""

    keys: tuple[str, ...] = ()  # beginnings of keys; none: all
    most: int | None = None
    length: int | None = None
    stream: int | None = None
    again: bool = False


@dataclass
class FolderProgress:
    """How a run over a folder stands."""

    total: int = 0
    done: int = 0
    found: int = 0  # were there before
    now: str = ""
    part: str = ""
    left_out: list[LeftOut] = field(default_factory=list)


Show = Callable[[FolderProgress], None]


def diagnose_folder(
    folder: Path, wanted: Selection = Selection(), show: Show = lambda _: None, trust_code: bool = False
) -> FolderProgress:
    """Diagnose the cells of a folder whose weights are kept; `statetrack.verdicts.comparison` compares them.

    A diagnosis that is there is not made again, unless of another length, without a section that would be measured
    now, or if asked for. Code that a record names is run only where `statetrack.trust` allows it, or with `trust_code`.
    What cannot be diagnosed is named in `left_out`, and nothing of it stops the others.
    """
    store = Store.existing(folder)
    cells, tally = readable(store, wanted)
    files.try_folder(store)
    tally.total = len(cells)
    for cell in cells:
        tally.now = str(cell)
        try:
            with trust.trusting(everything=trust_code):
                _one(store, cell, wanted, tally, show)
        except Exception as error:  # somebody's own model may raise anything; the other cells go on
            show_cause(error)
            tally.left_out.append(left_out(cell, one_line(error), ERROR))
        tally.done += 1
        show(tally)
    return tally


def _one(store: Store, cell: Cell, wanted: Selection, tally: FolderProgress, show: Show) -> None:
    held = files.of_cell(store, cell)
    whole = held and measurements().keys() <= held.sections.keys()
    kept = held and whole and wanted.length in (None, held.length) and not wanted.again
    if kept or (held and store.weights(cell) is None):  # without weights it cannot be done again
        tally.found += 1
        return

    def tick(part: str) -> None:
        tally.part = part
        show(tally)

    far: dict[str, Any] = {} if wanted.stream is None else {"stream": wanted.stream}
    found = diagnose(
        trusted_task(cell.task), load(store, cell), length=wanted.length, trained=cell.length, seed=cell.seed,
        tick=tick, progress=False, word=_known_word(store, cell), **far,
    )  # fmt: skip
    files.write(store, replace(files.of_dict(found), cell=cell))


def _known_word(store: Store, cell: Cell) -> str | None:
    """The shortest word that the record of a cell knows to break its network."""
    record = store.read(cell)
    return record.broken.word if isinstance(record, TrainingRecord) and record.broken else None


def readable(store: Store, wanted: Selection) -> tuple[list[Cell], FolderProgress]:
    """The cells to be diagnosed, and those that cannot be, with the reason."""
    cells, tally = [], FolderProgress()
    matched: set[str] = set()
    for key, entry in store.entries():
        begins = [begin for begin in wanted.keys if key.startswith(begin)]
        matched.update(begins)
        why = why_not(store, entry)
        if why is not None:
            tally.left_out.append(why)
        elif not isinstance(entry, Damage) and (begins or not wanted.keys):
            cells.append(entry.cell)
    for begin in wanted.keys:
        if begin not in matched:
            raise BadInput(f"no cell of {store.folder} has a key that begins with {begin!r}")
    return cells[: wanted.most], tally
