"""What compares the diagnosed cells of a folder. It needs the diagnoses and no weights, so no torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from statetrack.results import Cell, Store
from statetrack.results import diagnosis as files
from statetrack.results.diagnosis import LeftOut
from statetrack.results.store import FINISHED, Damage
from statetrack.sweeps.kinds import TRAIN, kind_of
from statetrack.verdicts.ablations import Seen, ablations
from statetrack.verdicts.patterns import patterns
from statetrack.version import __version__

NOT_YET = "not diagnosed yet"


def refused(store: Store, key: str, entry: dict[str, Any] | Damage) -> str | None:
    """Why a cell cannot be diagnosed; None where it can."""
    if isinstance(entry, Damage):
        return f"its record is damaged: {entry.why}"
    if entry.get("status", "done") not in FINISHED:
        return f"it {entry['status'] if entry['status'] == 'failed' else 'was skipped'}: {entry.get('reason', '')}"
    if kind_of(entry["cell"]["subject"]) != kind_of(TRAIN):
        return "a language model that was asked has no state to look at"
    if not (store.folder / f"{key}.safetensors").exists() and not files.path_of(store.folder, key).exists():
        return "no weights are kept"
    return None


def compared(store: Store, named: list[LeftOut]) -> dict[str, Any]:
    """Ablations and patterns, over all cells of the folder that have a result, diagnosed now or before."""
    seen = sorted(_seen(store), key=lambda one: (one.cell.task, one.cell.length, one.cell.subject, one.cell.seed))
    keys = {entry["key"] for entry in named}
    waiting = [left_out(one.cell, NOT_YET) for one in seen
               if one.diagnosis is None and one.cell.key not in keys and refused(store, one.cell.key, one.record)
               is None]  # fmt: skip
    return {
        "format": files.FORMAT,
        "version": __version__,
        "cells": [_line(one) for one in seen if one.diagnosis and one.cell.key not in keys],
        "left_out": [*named, *waiting],
        "ablations": ablations(seen),
        "patterns": patterns(seen),
    }


def _seen(store: Store) -> Iterator[Seen]:
    for _, entry in store.entries():
        if isinstance(entry, dict) and entry.get("status", "done") in FINISHED:
            cell = Cell(**entry["cell"])
            yield Seen(cell, entry, files.of_cell(store.folder, cell))


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


def left_out(what: dict[str, Any] | Damage | Cell, why: str) -> LeftOut:
    """An entry for a cell, for the record of one or for a damaged file."""
    if isinstance(what, Damage):
        return {"key": what.path.stem, "what": what.path.name, "why": why}
    cell = what if isinstance(what, Cell) else Cell(**what["cell"])
    return {"key": cell.key, "what": str(cell), "why": why}


def compare_again(store: Store) -> None:
    """Write what compares the cells of a folder anew, from the diagnoses that lie there."""
    refusals = [(entry, refused(store, key, entry)) for key, entry in store.entries()]
    whole = compared(store, [left_out(entry, why) for entry, why in refusals if why is not None])
    files.write(files.folder_of(store.folder) / files.COMPARISON, whole)
