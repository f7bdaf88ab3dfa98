"""Where results come from: the command lines that make them again, versions, seeds, devices."""

from __future__ import annotations

import platform
import shlex
from collections import Counter
from typing import Any

from statetrack.errors import BadInput
from statetrack.reports.folder import Folder
from statetrack.results import Cell, Store
from statetrack.results import plans as plan
from statetrack.results.standing import ORDER
from statetrack.sweeps import Sweep, shipped
from statetrack.sweeps.kinds import KINDS
from statetrack.version import __version__

MOST = 20  # command lines
APART = ("name", "rates", "stream")  # of a protocol: they have options of their own


def lines(folder: Folder, command: str) -> list[tuple[str, str]]:
    """What stands at the end of the page, each with its name."""
    counts = folder.status.counts
    made_by = ", ".join(f"{version} ({count})" for version, count in sorted(folder.versions.items()))
    return [
        ("this page", command),
        *(("results", line) for line in commands(folder)),
        ("cells", ", ".join(f"{counts[name]} {name}" for name in ORDER) + f", {len(folder.status.damaged)} damaged"),
        ("seeds", ", ".join(map(str, folder.seeds)) or "none"),
        ("devices", _counted(folder, "device")),
        ("statetrack", f"{__version__} made this page; results by version {made_by or 'none'}"),
        ("torch", _counted(folder, "torch")),
        ("Python", platform.python_version()),
    ]


def _counted(folder: Folder, name: str) -> str:
    found = Counter(str(record[name]) for record in folder.cells if record.get(name))
    return ", ".join(f"{value} ({count})" for value, count in sorted(found.items())) or "none said"


def commands(folder: Folder) -> list[str]:
    """The sweeps of the folder, then each training that is of no sweep."""
    try:
        sweeps = list(plan.saved(Store.existing(folder.path)))
    except BadInput:  # its plan is damaged, which the page says elsewhere
        sweeps = []
    made = [_sweep(each, folder) for each in sweeps]
    made += _trainings(folder, {cell.key for sweep in sweeps for cell in sweep.cells})
    if len(made) > MOST:
        return [*made[:MOST], f"and {len(made) - MOST} more; every cell is in the table"]
    return made


def _sweep(sweep: Sweep, folder: Folder) -> str:
    name = sweep.name if sweep.name in shipped() else f"{sweep.name}.yaml"
    asked = [entry.cell.subject for entry in sweep.entries if entry.kind == KINDS["ask"] and " " in entry.cell.subject]
    models = [f"--model {shlex.quote(model)}" for model in dict.fromkeys(each.rpartition(" ")[0] for each in asked)]
    return " ".join(["statetrack sweep", shlex.quote(name), *models, "--out", shlex.quote(str(folder.path))])


def _trainings(folder: Folder, planned: set[str]) -> list[str]:
    groups: dict[str, list[Cell]] = {}
    for run in folder.runs:
        cell = Cell(**run.record["cell"])
        if cell.key not in planned:
            groups.setdefault(Cell(cell.task, cell.subject, cell.length, 0, cell.protocol).key, []).append(cell)
    return [line for cells in groups.values() for line in _training(cells, folder)]


def _training(cells: list[Cell], folder: Folder) -> list[str]:
    """One line for each stretch of seeds that follow one another."""
    seeds = sorted(cell.seed for cell in cells)
    starts = [seed for seed in seeds if seed - 1 not in seeds]
    first, rules = cells[0], cells[0].protocol
    settings = [f"--set {key}={value}" for key, value in rules.items() if key not in APART]
    words = [
        "statetrack train", shlex.quote(first.task), shlex.quote(first.subject), f"--length {first.length}",
        f"--protocol {shlex.quote(str(rules.get('name', '')))}", *_optional(rules), *settings,
        f"--out {shlex.quote(str(folder.path))}",
    ]  # fmt: skip
    return [f"{' '.join(words)} --seed {start} --seeds {_stretch(seeds, start)}" for start in starts]


def _optional(rules: dict[str, Any]) -> list[str]:
    rates = ",".join(map(str, rules.get("rates", [])))
    return [*([f"--lr {rates}"] if rates else []), *([f"--stream {rules['stream']}"] if rules.get("stream") else [])]


def _stretch(seeds: list[int], start: int) -> int:
    count = 1
    while start + count in seeds:
        count += 1
    return count
