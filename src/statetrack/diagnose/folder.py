"""The cells of a folder of results, one diagnosis each, and what compares them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import statetrack
from statetrack.diagnose import record as files
from statetrack.diagnose.ablations import Seen, ablations
from statetrack.diagnose.examine import diagnose
from statetrack.diagnose.patterns import patterns
from statetrack.diagnose.weights import cell_of, load
from statetrack.errors import BadInput
from statetrack.sweep import Cell, Store
from statetrack.sweep.kinds import TRAIN, kind_of
from statetrack.sweep.store import FINISHED, Damage
from statetrack.sweep.work import one_line

NOT_YET = "not diagnosed yet"


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
    left_out: list[dict[str, str]] = field(default_factory=list)


Show = Callable[[Tally], None]


def diagnose_folder(folder: Path, wanted: Wanted = Wanted(), show: Show = lambda _: None) -> dict[str, Any]:  # noqa: B008
    """Diagnose the cells of a folder whose weights are kept, and write what compares them.

    A diagnosis that is there is not made again, unless of another length or if asked for. What cannot be diagnosed is
    named in `left_out`, and nothing of it stops the others.
    """
    store = Store.existing(folder)
    cells, tally = readable(store, wanted)
    (files.folder_of(folder)).mkdir(exist_ok=True)
    tally.total = len(cells)
    for cell in cells:
        tally.now = str(cell)
        try:
            _one(store, cell, wanted, tally, show)
        except Exception as error:  # somebody's own model may raise anything; the other cells go on
            tally.left_out.append(_out(cell.key, str(cell), one_line(error)))
        tally.done += 1
        show(tally)
    whole = compared(store, tally.left_out)
    files.write(files.folder_of(folder) / "folder.json", whole)
    return whole


def _one(store: Store, cell: Cell, wanted: Wanted, tally: Tally, show: Show) -> None:
    path = files.path_of(store.folder, cell.key)
    held = files.read(path)
    if held and held["cell"] == cell.to_dict() and wanted.length in (None, held["length"]) and not wanted.again:
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
            tally.left_out.append(_out(key, _named(entry), why))
        elif isinstance(entry, dict) and (begins or not wanted.keys):
            cells.append(cell_of(entry))
    for begin in wanted.keys:
        if begin not in matched:
            raise BadInput(f"no cell of {store.folder} has a key that begins with {begin!r}")
    return cells[: wanted.most], tally


def refused(store: Store, key: str, entry: dict[str, Any] | Damage) -> str | None:
    """Why a cell cannot be diagnosed; None where it can."""
    if isinstance(entry, Damage):
        return f"its record is damaged: {entry.why}"
    if entry.get("status", "done") not in FINISHED:
        return f"it {entry['status'] if entry['status'] == 'failed' else 'was skipped'}: {entry.get('reason', '')}"
    if kind_of(entry["cell"]["subject"]) != kind_of(TRAIN):
        return "a language model that was asked has no state to look at"
    if not (store.folder / f"{key}.safetensors").exists():
        return "no weights are kept"
    return None


def compared(store: Store, left_out: list[dict[str, str]]) -> dict[str, Any]:
    """Ablations and patterns, over all cells of the folder that have a result, diagnosed now or before."""
    seen = sorted(_seen(store), key=lambda one: (one.cell.task, one.cell.length, one.cell.subject, one.cell.seed))
    named = {entry["key"] for entry in left_out}
    waiting = [_out(one.cell.key, str(one.cell), NOT_YET) for one in seen
               if one.diagnosis is None and one.cell.key not in named and refused(store, one.cell.key, one.record)
               is None]  # fmt: skip
    return {
        "format": files.FORMAT,
        "version": statetrack.__version__,
        "cells": [_line(one) for one in seen if one.diagnosis and one.cell.key not in named],
        "left_out": [*left_out, *waiting],
        "ablations": ablations(seen),
        "patterns": patterns(seen),
    }


def _seen(store: Store) -> Iterator[Seen]:
    for key, entry in store.entries():
        if isinstance(entry, dict) and entry.get("status", "done") in FINISHED:
            cell = cell_of(entry)
            held = files.read(files.path_of(store.folder, key))
            yield Seen(cell, entry, held if held and held.get("cell") == cell.to_dict() else None)


def _line(one: Seen) -> dict[str, Any]:
    held = one.diagnosis or {}
    reach = held["error"]["measured"]["at_90"]
    return {
        "key": one.cell.key, "task": one.cell.task, "model": one.cell.subject, "trained": one.cell.length,
        "seed": one.cell.seed, "conclusion": held["conclusion"], "sentence": held["sentences"][0],
        "sentences": held["sentences"],
        "accuracy": one.record.get("accuracy"), "at_90": reach["length"], "streamed": held["error"]["streamed"],
        "predicted_at_90": held["error"]["predicted"]["at_90"]["length"],
        "machine_equal": held["automaton"].get("equal"), "seconds": held["seconds"],
    }  # fmt: skip


def _named(entry: dict[str, Any] | Damage) -> str:
    return entry.path.name if isinstance(entry, Damage) else str(Cell(**entry["cell"]))


def _out(key: str, what: str, why: str) -> dict[str, str]:
    return {"key": key, "what": what, "why": why}
