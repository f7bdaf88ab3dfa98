"""Where results come from: the command lines that make them again, versions, seeds, devices."""

from __future__ import annotations

import platform
import shlex
from collections import Counter
from collections.abc import Iterable
from typing import Any

from statetrack.asking.external import runs
from statetrack.asking.solvers import split_subject
from statetrack.reports.folder import Folder
from statetrack.results import EvaluatedRecord, Store, Sweep, TrainingRecord, plans
from statetrack.results.cell import ASK, STREAM
from statetrack.results.evaluations import OnWords
from statetrack.results.external import Source
from statetrack.results.folder_status import ORDER
from statetrack.verdicts.measurements import grouped
from statetrack.version import __version__

MOST = 20  # command lines
APART = ("name", "rates", STREAM)  # of a protocol: they have options of their own


def lines(folder: Folder, command: str) -> list[tuple[str, str]]:
    """What stands at the end of the page, each with its name."""
    counts = folder.status.counts
    trainings = [record.training for record in folder.cells if isinstance(record, TrainingRecord)]
    made_by = ", ".join(f"{version} ({count})" for version, count in sorted(folder.versions.items()))
    return [
        ("this page", command),
        *(("results", line) for line in commands(folder)),
        *(("read from", f"{source.file} ({source.by})") for source in _sources(folder)),
        ("cells", ", ".join(f"{counts[name]} {name}" for name in ORDER) + f", {len(folder.status.damaged)} damaged"),
        ("seeds", ", ".join(map(str, folder.seeds)) or "none"),
        ("devices", _counted(training.device for training in trainings)),
        ("statetrack", f"{__version__} made this page; results by version {made_by or 'none'}"),
        ("torch", _counted(training.torch for training in trainings)),
        ("Python", platform.python_version()),
    ]


def _sources(folder: Folder) -> list[Source]:
    """The files of other programs, each once."""
    found = {source.file: source for source in runs.sources(folder.external.scores, folder.external.episodes)}
    return list(found.values())[:MOST]


def _counted(names: Iterable[str]) -> str:
    found = Counter(filter(None, names))
    return ", ".join(f"{value} ({count})" for value, count in sorted(found.items())) or "none said"


def commands(folder: Folder) -> list[str]:
    """The sweeps of the folder, then each training that is of no sweep."""
    sweeps = list(plans.saved(Store.existing(folder.path)))
    made = [line for each in sweeps for line in _sweep(each, folder)]
    made += _trainings(folder, {cell.key for sweep in sweeps for cell in sweep.cells})
    made += [_evaluation(cell.record, folder) for cell in folder.brought]
    if len(made) > MOST:
        return [*made[:MOST], f"and {len(made) - MOST} more; every cell is in the table"]
    return made


def _sweep(sweep: Sweep, folder: Folder) -> list[str]:
    """A line, or one for each of its parts that are here where not all are."""
    name = sweep.name if sweep.shipped else f"{sweep.name}.yaml"
    asked = [split_subject(entry.cell.subject) for entry in sweep.entries if entry.cell.kind == ASK]
    models = [f"--model {shlex.quote(model)}" for model in dict.fromkeys(model for model, _ in asked if model)]
    words = ["statetrack sweep", shlex.quote(name), *models, "--out", shlex.quote(str(folder.path))]
    return [" ".join([*words, *part]) for part in ([["--part", each] for each in sweep.parts] or [[]])]


def _trainings(folder: Folder, planned: set[str]) -> list[str]:
    alone = (run.record for run in folder.runs if run.record.cell.key not in planned)
    groups = grouped(alone, lambda record: record.cell.siblings)
    return [line for records in groups.values() for line in _training(records, folder)]


def _training(records: list[TrainingRecord], folder: Folder) -> list[str]:
    """One line for each stretch of seeds that follow one another."""
    seeds = sorted(record.cell.seed for record in records)
    starts = [seed for seed in seeds if seed - 1 not in seeds]
    first, rules = records[0].cell, records[0].cell.protocol
    steps = max((stream.steps for record in records for stream in record.streams), default=0)
    settings = [f"--set {key}={value}" for key, value in rules.items() if key not in APART]
    words = [
        "statetrack train", shlex.quote(first.task), shlex.quote(first.subject), f"--length {first.length}",
        f"--protocol {shlex.quote(str(rules.get('name', '')))}", *_optional(rules, steps), *settings,
        f"--out {shlex.quote(str(folder.path))}",
    ]  # fmt: skip
    return [f"{' '.join(words)} --seed {start} --seeds {_stretch(seeds, start)}" for start in starts]


def _evaluation(record: EvaluatedRecord, folder: Folder) -> str:
    cell, words = record.cell, max((each.budget for each in record.of(OnWords)), default=0)
    steps = max((stream.steps for stream in record.streams), default=0)
    told = [
        "statetrack evaluate", shlex.quote(cell.task), shlex.quote(record.weights.file or "WEIGHTS"),
        f"--model {shlex.quote(cell.subject)}",
        *([f"--lengths {','.join(map(str, record.rows))}"] if record.rows else []),
        *([f"--stream {steps}"] if steps else []), f"--words {words}",
        *([f"--trained {cell.length}"] if cell.length else []), f"--seed {cell.seed}",
        f"--out {shlex.quote(str(folder.path))}",
    ]  # fmt: skip
    return " ".join(told)


def _optional(rules: dict[str, Any], steps: int) -> list[str]:
    given = rules.get("rates", [])
    rates = ",".join(map(str, given if isinstance(given, list) else [given]))
    return [*([f"--lr {rates}"] if rates else []), *([f"--stream {steps}"] if steps else [])]


def _stretch(seeds: list[int], start: int) -> int:
    count = 1
    while start + count in seeds:
        count += 1
    return count
