"""What a folder is to hold: a sweep, expanded into every cell with what is known of it before it runs. The folder keeps
it, so that `status` can say what is missing without building anything.

    DIR/.sweep/plans/demo.json                 the sweep demo
    DIR/.sweep/plans/demo.part-2-of-4.json     what `--part 2/4` runs of it; parts are read as one
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from statetrack.errors import BadInput
from statetrack.files import copy_whole, read_bounded, write_whole
from statetrack.results import seal
from statetrack.results.cell import Cell
from statetrack.results.store import Damage, Store

RULES = 2  # the rules of verdicts that are in force (docs/claims.md); a plan keeps those under which it was made
FIRST_RULES = 1  # of plans that say nothing of it
FOLDER = "plans"
PART = re.compile(r"[1-9]\d{0,8}/[1-9]\d{0,8}")
MOST_PLAN = 2**28  # bytes: some millions of cells
SHIPPED = (  # with 0.1.0, which did not note it
    "demo", "design", "design-full", "groups", "length-generalisation", "permutations", "regular", "track-the-stat",
)  # fmt: skip


@dataclass(frozen=True)
class PlannedCell:
    """A cell of a sweep. `kind` is the module that runs it; `streams` and `words` are how many steps of streams and
    tokens of hard words it is evaluated on; `resources` are what Ray is asked for: cpus, gpus, memory_gb, or a name of
    the cluster's.
    """

    cell: Cell
    kind: str
    cost: float = 1.0
    note: str = ""
    resources: dict[str, float] = field(default_factory=dict)
    streams: tuple[int, ...] = ()
    words: int | None = None


@dataclass(frozen=True)
class Sweep:
    """A name and its cells, each once."""

    name: str
    about: str
    entries: tuple[PlannedCell, ...]
    shipped: bool = False  # whether it comes with statetrack
    rules: int = RULES  # of verdicts, in force when it was made
    parts: tuple[str, ...] = ()  # such as 2/4: which parts of it these cells are; none for the whole
    beside: bool = False  # whether its cells come beside those that a folder has of a sweep of this name

    @property
    def title(self) -> str:
        """
        >>> Sweep("demo", "", ()).title, Sweep("demo", "", (), parts=("1/4", "2/4")).title
        ('demo', 'demo (parts 1/4, 2/4)')
        """
        noun = "part" if len(self.parts) == 1 else "parts"
        return f"{self.name} ({noun} {', '.join(self.parts)})" if self.parts else self.name

    @property
    def cells(self) -> list[Cell]:
        return [entry.cell for entry in self.entries]

    def part(self, number: int, of: int) -> Sweep:
        """Every so-many-th group of equal (task, subject, length, protocol), so that seeds stay together."""
        if not 1 <= number <= of:
            raise BadInput(f"part {number}/{of} should be one of 1/{of} to {of}/{of}")
        groups: dict[str, int] = {}
        for entry in self.entries:
            groups.setdefault(entry.cell.siblings, len(groups))
        kept = tuple(entry for entry in self.entries if groups[entry.cell.siblings] % of == number - 1)
        return replace(self, entries=kept, parts=(f"{number}/{of}",))


def save(store: Store, sweep: Sweep) -> None:
    """Note in the folder what the sweep consists of; a sweep of the same name takes the place of the old one and of its
    parts, a part that of the same part; and it keeps the rules that it was made under. One that comes `beside` others
    takes no place: the cells are those of both.
    """
    before = _of_name(store, sweep.name)
    made = replace(sweep, rules=min([sweep.rules, *map(_rules_at, before)]))
    if sweep.beside:
        there = [held for path in before if isinstance(held := _read(path), Sweep)]
        made = _joined([*there, made]) if there else made
    store.make(FOLDER)
    _write(_path(store, made), made)
    if not sweep.parts:
        for path in before:
            if path != _path(store, made):
                path.unlink(missing_ok=True)


def merge(store: Store, home: Store) -> None:
    """Take the plans of a folder into another. Where both have one of the same name, its cells are those of both."""
    for path in filter(Path.is_file, _paths(store)):
        target = home.hidden / FOLDER / path.name
        there, comes = _read(target) if target.exists() else None, _read(path)
        if isinstance(there, Sweep) and isinstance(comes, Sweep):
            both = _joined([there, comes])
            if both != there:
                _write(target, both)
        elif there is None or isinstance(comes, Sweep):
            home.make(FOLDER)
            copy_whole(path, target)


def _write(path: Path, sweep: Sweep) -> None:
    protocols: dict[str, int] = {}
    rows = []
    for entry in sweep.entries:
        cell = entry.cell
        protocol = protocols.setdefault(json.dumps(cell.protocol, sort_keys=True), len(protocols))
        rows.append(
            [cell.key, cell.task, cell.subject, cell.length, cell.seed, protocol, entry.cost, entry.note, entry.kind,
             list(entry.streams), *([] if entry.words is None else [entry.words])]
        )  # fmt: skip
    plan = {
        "name": sweep.name,
        "about": sweep.about,
        "shipped": sweep.shipped,
        "rules": sweep.rules,
        **({"parts": list(sweep.parts)} if sweep.parts else {}),
        "protocols": [json.loads(text) for text in protocols],
        "cells": rows,
    }
    write_whole(path, seal.seal(plan))


def _rules_at(path: Path) -> int:
    """Those of a plan that is there already. One that is damaged may be as old as any."""
    plan = _read(path)
    return plan.rules if isinstance(plan, Sweep) else FIRST_RULES


def saved(store: Store) -> Iterator[Sweep]:
    """The sweeps of a folder; plans that are damaged are left out."""
    yield from (plan for plan in found(store) if isinstance(plan, Sweep))


def found(store: Store) -> Iterator[Sweep | Damage]:
    """The sweeps of a folder, the parts of one together, or what is wrong with a plan."""
    by_name: dict[str, list[Sweep]] = {}
    for plan in map(_read, _paths(store)):
        if isinstance(plan, Damage):
            yield plan
        else:
            by_name.setdefault(plan.name, []).append(plan)
    yield from (_joined(same) if len(same) > 1 else same[0] for same in by_name.values())


def _joined(same: Sequence[Sweep]) -> Sweep:
    """Plans of one sweep as one: the whole, where one of them is or where their parts make it up."""
    parts = {part: _numbers(part) for each in same for part in each.parts}
    whole = not all(each.parts for each in same) or any(
        all(f"{number}/{of}" in parts for number in range(1, of + 1)) for of, _ in set(parts.values())
    )
    return replace(
        same[0], entries=united(entry for each in same for entry in each.entries),
        parts=() if whole else tuple(sorted(parts, key=_numbers)),
        shipped=all(each.shipped for each in same), rules=min(each.rules for each in same),
    )  # fmt: skip


def _numbers(part: str) -> tuple[int, int]:
    """(4, 2) for 2/4."""
    number, _, of = part.partition("/")
    return int(of), int(number)


def oldest_rules(store: Store) -> int:
    """The rules of verdicts under which the oldest plan of a folder was made; those in force where there is no plan."""
    return min(map(_rules_at, _paths(store)), default=RULES)


def entries(sweeps: Iterable[Sweep]) -> dict[str, PlannedCell]:
    """All cells of sweeps, by key, each with the streams and hard words that any of them asks for."""
    return {entry.cell.key: entry for entry in united(entry for sweep in sweeps for entry in sweep.entries)}


def united(entries: Iterable[PlannedCell]) -> tuple[PlannedCell, ...]:
    """Each cell once, with the streams and hard words of all."""
    made: dict[str, PlannedCell] = {}
    for entry in entries:
        first = made.setdefault(entry.cell.key, entry)
        if (entry.streams, entry.words) != (first.streams, first.words):
            budgets = [each.words for each in (first, entry) if each.words is not None]
            streams = tuple(sorted({*first.streams, *entry.streams}))
            made[entry.cell.key] = replace(first, streams=streams, words=max(budgets, default=None))
    return tuple(made.values())


def _paths(store: Store) -> list[Path]:
    return sorted((store.hidden / FOLDER).glob("*.json"))


def _path(store: Store, sweep: Sweep) -> Path:
    part = "".join(f".part-{part.replace('/', '-of-')}" for part in sweep.parts)
    return store.hidden / FOLDER / f"{sweep.name}{part}.json"


def _of_name(store: Store, name: str) -> list[Path]:
    """The plan of a sweep, and those of its parts."""
    ours = re.compile(rf"{re.escape(name)}(\.part-\d+-of-\d+)?\.json")
    return [path for path in _paths(store) if ours.fullmatch(path.name)]


def _read(path: Path) -> Sweep | Damage:
    try:
        plan: dict[str, Any] = seal.unseal(read_bounded(path, MOST_PLAN))
        protocols = plan["protocols"]
        rows = tuple(
            _entry(_cell(key, task, subject, length, seed, protocols[protocol]), *rest)
            for key, task, subject, length, seed, protocol, *rest in plan["cells"]
        )
        shipped = plan.get("shipped", plan["name"] in SHIPPED)
        parts = tuple(part for part in plan.get("parts", ()) if PART.fullmatch(part))
        return Sweep(plan["name"], plan["about"], united(rows), shipped, int(plan.get("rules", FIRST_RULES)), parts)
    except OSError as error:
        return Damage(path, error.strerror or str(error))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return Damage(path, "a damaged plan; the next run of its sweep into the folder writes it anew")


def _entry(
    cell: Cell, cost: float, note: str, kind: str, streams: list[int] | None = None, words: int | None = None
) -> PlannedCell:
    """0.1.0 had no streams beside a cell, but in it, and modules by other names."""
    if streams is None:
        return PlannedCell(cell.identity, "", cost, note, {}, (cell.steps,) if cell.steps else ())
    return PlannedCell(cell, kind, cost, note, {}, tuple(streams), words)


def _cell(key: str, task: str, subject: str, length: int, seed: int, protocol: dict[str, Any]) -> Cell:
    """A cell as it was saved, its key with it: to check and to hash ten thousand takes longer than to read them."""
    cell = object.__new__(Cell)
    vars(cell).update(key=key, task=task, subject=subject, length=length, seed=seed, protocol=protocol)
    return cell
