"""The cells of a folder of results, one diagnosis each, and what compares them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statetrack.diagnosis.examine import diagnose
from statetrack.errors import BadInput
from statetrack.results import Cell, Store
from statetrack.results import diagnosis as files
from statetrack.sweeps.work import one_line
from statetrack.training.weights import cell_of, load
from statetrack.verdicts.comparison import compared, left_out, refused


@dataclass(frozen=True)
class Wanted:
    """Which cells, how far, and whether what is there is done again."""

    keys: tuple[str, ...] = ()  # beginnings of keys; none: all
    most: int | None = None
    length: int | None = None
    stream: int | None = None
    again: bool = False


@dataclass
class Tally:
    """How a run over a folder stands."""

    total: int = 0
    done: int = 0
    found: int = 0  # were there before
    now: str = ""
    part: str = ""
    left_out: list[files.LeftOut] = field(default_factory=list)


Show = Callable[[Tally], None]


def diagnose_folder(folder: Path, wanted: Wanted = Wanted(), show: Show = lambda _: None) -> dict[str, Any]:  # noqa: B008
    """Diagnose the cells of a folder whose weights are kept, and write what compares them.

    A diagnosis that is there is not made again, unless of another length or if asked for. What cannot be diagnosed is
    named in `left_out`, and nothing of it stops the others.
    """
    store = Store.existing(folder)
    cells, tally = readable(store, wanted)
    tally.total = len(cells)
    for cell in cells:
        tally.now = str(cell)
        try:
            _one(store, cell, wanted, tally, show)
        except Exception as error:  # somebody's own model may raise anything; the other cells go on
            tally.left_out.append(left_out(cell, one_line(error)))
        tally.done += 1
        show(tally)
    whole = compared(store, tally.left_out)
    files.write(files.folder_of(folder) / files.COMPARISON, whole)
    return whole


def _one(store: Store, cell: Cell, wanted: Wanted, tally: Tally, show: Show) -> None:
    path = files.path_of(store.folder, cell.key)
    held = files.of_cell(store.folder, cell)
    kept = held and wanted.length in (None, held["length"]) and not wanted.again
    if kept or (held and not store.path(cell, "safetensors").exists()):  # without weights it cannot be done again
        tally.found += 1
        return

    def tick(part: str) -> None:
        tally.part = part
        show(tally)

    far = {} if wanted.stream is None else {"stream": wanted.stream}
    found = diagnose(
        cell.task, load(store, cell), length=wanted.length, trained=cell.length, seed=cell.seed, tick=tick, **far
    )
    files.write(path, found | {"key": cell.key, "cell": cell.to_dict()})


def readable(store: Store, wanted: Wanted) -> tuple[list[Cell], Tally]:
    """The cells to be diagnosed, and those that cannot be, with the reason."""
    cells, tally = [], Tally()
    matched: set[str] = set()
    for key, entry in store.entries():
        begins = [begin for begin in wanted.keys if key.startswith(begin)]
        matched.update(begins)
        why = refused(store, key, entry)
        if why is not None:
            tally.left_out.append(left_out(entry, why))
        elif isinstance(entry, dict) and (begins or not wanted.keys):
            cells.append(cell_of(entry))
    for begin in wanted.keys:
        if begin not in matched:
            raise BadInput(f"no cell of {store.folder} has a key that begins with {begin!r}")
    return cells[: wanted.most], tally
