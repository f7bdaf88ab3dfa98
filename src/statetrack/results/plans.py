"""A sweep, expanded: every cell with what is known of it before it runs. The folder keeps it, so that `status` can say
what is missing without building anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statetrack.errors import BadInput
from statetrack.files import write_whole
from statetrack.results.cell import Cell
from statetrack.results.store import Store
from statetrack.sweeps.kinds import KINDS, kind_of


@dataclass(frozen=True)
class Entry:
    """A cell of a sweep. `resources` are what Ray is asked for: cpus, gpus, memory_gb, or a name of the cluster's."""

    cell: Cell
    kind: str
    cost: float = 1.0
    note: str = ""
    resources: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Sweep:
    """A name and its cells, each once."""

    name: str
    about: str
    entries: tuple[Entry, ...]

    @property
    def cells(self) -> list[Cell]:
        return [entry.cell for entry in self.entries]

    def part(self, number: int, of: int) -> Sweep:
        """Every so-many-th group of equal (task, subject, length, protocol), so that seeds stay together."""
        if not 1 <= number <= of:
            raise BadInput(f"part {number}/{of} should be one of 1/{of} to {of}/{of}")
        groups: dict[str, int] = {}
        for entry in self.entries:
            groups.setdefault(siblings(entry.cell), len(groups))
        kept = tuple(entry for entry in self.entries if groups[siblings(entry.cell)] % of == number - 1)
        return Sweep(self.name, self.about, kept)


def sweep_of(name: str, cells: Iterable[Cell], kinds: Mapping[str, str] = KINDS) -> Sweep:
    """A sweep from cells that are there already, each of the same cost."""
    unique = dict.fromkeys(cells)
    return Sweep(name, "", tuple(Entry(cell, kind_of(cell.subject, kinds)) for cell in unique))


def siblings(cell: Cell) -> str:
    """The same for cells that differ in their seed alone."""
    return Cell(cell.task, cell.subject, cell.length, 0, cell.protocol).key


def save(store: Store, sweep: Sweep) -> None:
    """Note in the folder what the sweep consists of; a sweep of the same name takes the place of the old one."""
    protocols: dict[str, int] = {}
    rows = []
    for entry in sweep.entries:
        cell = entry.cell
        protocol = protocols.setdefault(json.dumps(cell.protocol, sort_keys=True), len(protocols))
        rows.append(
            [cell.key, cell.task, cell.subject, cell.length, cell.seed, protocol, entry.cost, entry.note, entry.kind]
        )
    plan = {
        "name": sweep.name,
        "about": sweep.about,
        "protocols": [json.loads(text) for text in protocols],
        "cells": rows,
    }
    path = _path(store, sweep.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(plan, separators=(",", ":")).encode())


def saved(store: Store) -> Iterator[Sweep]:
    """The sweeps of a folder."""
    for path in sorted((store.hidden / "plans").glob("*.json")):
        yield _read(path)


def entries(store: Store) -> dict[str, Entry]:
    """All cells of the folder's sweeps, by key."""
    return {entry.cell.key: entry for sweep in saved(store) for entry in sweep.entries}


def _path(store: Store, name: str) -> Path:
    return store.hidden / "plans" / f"{name}.json"


def _read(path: Path) -> Sweep:
    try:
        plan: dict[str, Any] = json.loads(path.read_bytes())
        protocols = plan["protocols"]
        rows = tuple(
            Entry(_keyed(key, Cell(task, subject, length, seed, protocols[protocol])), kind, cost, note)
            for key, task, subject, length, seed, protocol, cost, note, kind in plan["cells"]
        )
        return Sweep(plan["name"], plan["about"], rows)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise BadInput(f"{path} is damaged; remove it, and the next sweep into the folder writes it anew") from error


def _keyed(key: str, cell: Cell) -> Cell:
    """The cell with its key already known: hashing ten thousand takes longer than reading them."""
    vars(cell)["key"] = key
    return cell
