"""A folder of results as the report reads it: what was trained, what was asked, what was diagnosed, what went wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statetrack.asking import external
from statetrack.asking.engines import LOCAL
from statetrack.asking.episode import SERVER
from statetrack.asking.external import External
from statetrack.asking.external.harness import PROGRAM
from statetrack.asking.metrics import counted
from statetrack.asking.rules import how
from statetrack.asking.solvers import split_subject
from statetrack.formatting import plural, told_apart, verb, without_hash
from statetrack.reports.figures.series import HOW, Series, series_of
from statetrack.results import AskedRecord, EvaluatedRecord, Record, Status, Store, TrainingRecord, plans, status
from statetrack.results.cell import ASK, Cell
from statetrack.results.diagnosis import COMPARISON, FOLDER, Diagnosis, LeftOut, all_of, comparison
from statetrack.results.external import ExternalScores, Source
from statetrack.results.plans import RULES, oldest_rules
from statetrack.results.records import DIVERGED, FAILED, FINISHED, EpisodeRecord
from statetrack.verdicts.ablations import ComparedCell
from statetrack.verdicts.comparison import seen_in
from statetrack.verdicts.measurements import grouped
from statetrack.version import __version__

MOST_TABS = 12  # tasks that nothing here is known of but what a harness scored, and that have a tab each
SHORT = {PROGRAM: "lm-eval"}


@dataclass(frozen=True)
class TrainedCell:
    """One trained cell. `model` and `protocol` are written as the page writes them, each the same in every figure."""

    task: str
    model: str
    trained: int
    seed: int
    protocol: str
    record: TrainingRecord


def by_model(runs: Iterable[TrainedCell]) -> dict[str, list[TrainedCell]]:
    """In their order."""
    return grouped(runs, lambda run: run.model)


@dataclass(frozen=True)
class BroughtCell:
    """Weights that were brought and evaluated, and not trained here. `model` tells them apart by their hash."""

    task: str
    model: str
    record: EvaluatedRecord


@dataclass(frozen=True)
class AskedCell:
    """One sample that a language model, or a baseline, was asked to the end. `source`: by another program."""

    task: str
    model: str
    length: int
    sample: int
    protocol: str
    record: AskedRecord
    source: Source | None = None


@dataclass(frozen=True)
class FailedSample:
    """One sample that has no answers to be counted: the server failed, or the asking was cut off."""

    task: str
    model: str
    length: int
    protocol: str
    by_server: bool
    episode: EpisodeRecord | None = None  # as far as it was answered


@dataclass(frozen=True)
class ScoredElsewhere:
    """One task and one model in the results of another program, which tell shares of right answers and no episodes."""

    task: str
    model: str
    record: ExternalScores


@dataclass(frozen=True)
class DiagnosedCell:
    """One diagnosis, and what the page calls its model. `stale`: the folder does not hold its cell."""

    label: str
    found: Diagnosis
    stale: bool


@dataclass
class Folder:
    """Everything that the page is made of."""

    path: Path
    status: Status
    runs: list[TrainedCell] = field(default_factory=list)
    brought: list[BroughtCell] = field(default_factory=list)
    episodes: list[AskedCell] = field(default_factory=list)
    unanswered: list[FailedSample] = field(default_factory=list)
    elsewhere: list[ScoredElsewhere] = field(default_factory=list)
    external: External = field(default_factory=External)  # what other programs left here
    series: list[Series] = field(default_factory=list)
    diagnoses: list[DiagnosedCell] = field(default_factory=list)
    left_out: list[LeftOut] | None = None  # by the last `statetrack diagnose`; None where there was none
    versions: Counter[str] = field(default_factory=Counter)
    cells: list[Record] = field(default_factory=list)  # every record, whatever its status
    notices: list[str] = field(default_factory=list)
    rules: int = RULES  # of verdicts, under which its oldest plan was made

    @property
    def tasks(self) -> list[str]:
        """In the order of the catalogue's first three, then by name."""
        first = {name: place for place, name in enumerate(("txc", "rtc", "fsm"))}
        names = {run.task for run in self.runs} | {episode.task for episode in self.episodes}
        names |= {record.cell.task for record in self.cells} | {sample.task for sample in self.unanswered}
        scored = {each.task for each in self.elsewhere}
        names |= scored if len(scored - names) <= MOST_TABS else set()
        return sorted(names, key=lambda name: (first.get(name, len(first)), name))

    @property
    def models(self) -> list[str]:
        return [one.label for one in self.series]

    @property
    def seeds(self) -> list[int]:
        return sorted({run.seed for run in self.runs})

    def protocols(self, task: str) -> list[str]:
        """Those under which something of a task was trained, that of most cells first."""
        often = Counter(run.protocol for run in self.runs if run.task == task)
        return sorted(often, key=lambda name: (-often[name], name))

    def of(self, task: str, protocol: str) -> list[TrainedCell]:
        return [run for run in self.runs if run.task == task and run.protocol == protocol]

    def brought_on(self, task: str) -> list[BroughtCell]:
        return [cell for cell in self.brought if cell.task == task]

    def asked(self, task: str) -> list[AskedCell]:
        return [episode for episode in self.episodes if episode.task == task]

    def failed(self, task: str) -> list[FailedSample]:
        return [sample for sample in self.unanswered if sample.task == task]

    def scored(self, task: str) -> list[ScoredElsewhere]:
        return [each for each in self.elsewhere if each.task == task]

    @property
    def seen(self) -> list[ComparedCell]:
        """The trained cells with their diagnoses, as they are compared."""
        return seen_in(self.cells, {each.found.key: each.found for each in self.diagnoses if each.found.key})

    @property
    def models_here(self) -> set[str]:
        """Each model once, however and by whichever program it was asked; without what needs none, such as a guess."""
        trained = {run.model for run in self.runs} | {cell.model for cell in self.brought}
        asked = [each.record.cell.subject for each in self.episodes]
        asked += [sample.model.partition(HOW)[0] for sample in self.unanswered]
        named = {split_subject(subject)[0] for subject in asked} | {each.record.model for each in self.elsewhere}
        return trained | {spelled(model) for model in named if model}

    def drawn(self, labels: Iterable[str]) -> list[Series]:
        """How the models among these labels are drawn, in their fixed order."""
        wanted = set(labels)
        return [one for one in self.series if one.label in wanted]


def read(path: Path) -> Folder:
    """Read the folder once; what is damaged or cannot be read is left out and named."""
    store = Store.existing(path)
    folder = Folder(path, status(store), rules=oldest_rules(store), external=external.read(path))
    folder.status.foreign = folder.external.foreign(folder.status.foreign)
    for plan in (each for each in folder.status.damaged if each.path.parent.name == plans.FOLDER):
        folder.notices.append(f"{plan}. What is missing is not known.")
    _take(folder, store.records())
    _read_diagnoses(folder, store)
    return folder


def of_records(records: Iterable[Record], found: Iterable[Diagnosis] = ()) -> Folder:
    """Records and diagnoses that are at hand, as if they were a folder: for a figure of them."""
    nothing = Status(counts={}, sweeps={}, damaged=[], failures=[], skipped=Counter(), workers=0, seconds_left=None)
    folder = Folder(Path(), nothing)
    _take(folder, records)
    folder.diagnoses = [DiagnosedCell(without_hash(each.model), each, False) for each in found]
    return folder


def _take(folder: Folder, records: Iterable[Record]) -> None:
    """Put every record where the page looks for it, and note what is to be told of them."""
    folder.cells = list(records)
    folder.versions = Counter(record.version for record in folder.cells)
    asked = [record for record in folder.cells if record.cell.kind == ASK and record.status in (*FINISHED, FAILED)]
    trained = [record for record in folder.cells if isinstance(record, TrainingRecord) and record.finished]
    whole = [record for record in trained if record.at_length.accuracy is not None and record.at_length.interval]
    left = len(trained) - len(whole)
    if left:
        folder.notices.append(
            f"{plural(left, 'finished cell')} {verb(left, 'holds', 'hold')} no accuracy that this version can read; "
            "left out."
        )
    _name(folder, whole, asked)
    _say_versions(folder)
    diverged = sum(record.status == DIVERGED for record in folder.cells)
    if diverged:
        folder.notices.append(f"{plural(diverged, 'cell')} diverged in training; the weights before it count.")
    silent = sum(record.falls_silent for record in whole)
    if silent:
        folder.notices.append(
            f"{plural(silent, 'network')} {verb(silent, 'gives', 'give')} logits that are not numbers at some length "
            "tested; they count as wrong."
        )


def _name(folder: Folder, trained: list[TrainingRecord], asked: list[Record]) -> None:
    """Give models and protocols the words of the page. How a model was asked is part of what it is called there."""
    from_logs = [record for log in folder.external.episodes for record in log.records]
    protocols = protocol_labels([record.cell.protocol for record in (*trained, *asked, *from_logs)])
    labels = told_apart({record.cell.subject: without_hash(record.cell.subject) for record in trained})
    subjects = {label: subject for subject, label in labels.items()}
    for training in trained:
        cell = training.cell
        protocol = protocols[_text(cell.protocol)]
        folder.runs.append(TrainedCell(cell.task, labels[cell.subject], cell.length, cell.seed, protocol, training))
    logs = [(sample, log.source) for log in folder.external.episodes for sample in log.records]
    for sample, source in [*((each, None) for each in asked), *logs]:
        cell = sample.cell
        called = label(cell.subject, how(cell.protocol), source)
        subjects.setdefault(called, called)
        protocol = protocols[_text(cell.protocol)]
        if isinstance(sample, AskedRecord) and sample.finished and counted([sample.episode]):
            folder.episodes.append(AskedCell(cell.task, called, cell.length, cell.seed, protocol, sample, source))
        else:
            # An earlier version called an episode done that a fault ended.
            cut_off = isinstance(sample, AskedRecord) and sample.episode.ended != SERVER
            answered = sample.episode if isinstance(sample, AskedRecord) else None
            folder.unanswered.append(FailedSample(cell.task, called, cell.length, protocol, not cut_off, answered))
    for record in (each for each in folder.cells if isinstance(each, EvaluatedRecord) and each.finished):
        cell = record.cell
        called = f"{without_hash(cell.subject)}, weights {record.weights.sha256[:8]}"
        subjects.setdefault(called, cell.subject)
        folder.brought.append(BroughtCell(cell.task, called, record))
    for scores in folder.external.scores:
        called = label(scores.model, scores.how, scores.source)
        subjects.setdefault(called, called)
        folder.elsewhere.append(ScoredElsewhere(scores.task, called, scores))
    folder.series = series_of(subjects)
    order = {label: place for place, label in enumerate(folder.models)}
    folder.runs.sort(key=lambda run: (run.task, run.protocol, order[run.model], run.trained, run.seed))


def label(subject: str, rules: str, source: Source | None = None) -> str:
    """What somebody who was asked is called: with how, and by which other program."""
    program = SHORT.get(source.program, source.program) if source else ""
    return HOW.join(filter(None, [spelled(subject), ", ".join(filter(None, [rules, program]))]))


def spelled(subject: str) -> str:
    """A model of transformers has one name, whether `ask` (hf:net) or another program (hf/net) asked it.

    >>> spelled("hf:net implicit"), spelled("hf/net"), spelled("oracle")
    ('hf/net implicit', 'hf/net', 'oracle')
    """
    return f"hf/{subject.removeprefix(LOCAL)}" if subject.startswith(LOCAL) else subject


def protocol_labels(protocols: list[Mapping[str, Any]]) -> dict[str, str]:
    """The name of each protocol, with what tells it from others of that name.

    >>> a, b = {"name": "design", "batch": 64, "clip": 1.0}, {"name": "design", "batch": 256, "clip": 1.0}
    >>> list(protocol_labels([a, b]).values())
    ['design, batch 64', 'design, batch 256']
    """
    unique = {_text(protocol): protocol for protocol in protocols}
    by_name = grouped(unique.values(), lambda protocol: str(protocol.get("name", "")))
    labels = {}
    for text, protocol in unique.items():
        name = str(protocol.get("name", ""))
        same = by_name[name]
        keys = dict.fromkeys(key for each in same for key in each)
        differ = [key for key in keys if len({_text(each.get(key)) for each in same}) > 1]
        settings = [f"{key} {_short(protocol.get(key))}" for key in differ]
        labels[text] = ", ".join([name or "no name", *settings])
    return labels


def protocols_told_apart(cells: Iterable[Cell]) -> dict[str, str]:
    """By the key of each cell, how it was trained: with the settings in which it differs from a cell that would else
    look the same in a table.
    """
    told: dict[str, str] = {}
    alike = grouped(cells, lambda cell: (cell.task, cell.subject, cell.length, cell.seed))
    for same in alike.values():
        labels = protocol_labels([cell.protocol for cell in same])
        told |= {cell.key: labels[_text(cell.protocol)] for cell in same}
    return told


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _short(value: Any) -> str:
    if isinstance(value, Mapping):  # a prompt of somebody's own
        return str(value.get("sha256", ""))[:8]
    if isinstance(value, list):
        return " ".join(map(_short, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _say_versions(folder: Folder) -> None:
    other = {version: count for version, count in folder.versions.items() if version != __version__}
    if other:
        count = sum(other.values())
        told = ", ".join(f"{cells} by version {version}" for version, cells in sorted(other.items()))
        folder.notices.append(
            f"{count} of {plural(len(folder.cells), 'cell')} {verb(count, 'was', 'were')} made by another version "
            f"({told}); this page was made by version {__version__}. Numbers of different versions may not be alike."
        )


def _read_diagnoses(folder: Folder, store: Store) -> None:
    """What `statetrack diagnose` left; a file that cannot be read is named."""
    kept = {record.cell.key for record in folder.cells}
    for path, found in all_of(store):
        if isinstance(found, Diagnosis):
            folder.diagnoses.append(DiagnosedCell(without_hash(found.model), found, found.key not in kept))
        else:
            folder.notices.append(f"{FOLDER}/{path.name} cannot be read ({found}); left out.")
    try:
        both = comparison(store)
        folder.left_out = both.left_out if both else None
    except (OSError, ValueError) as error:
        folder.notices.append(f"{FOLDER}/{COMPARISON} cannot be read ({error}); left out.")
    stale = sum(each.stale for each in folder.diagnoses)
    if stale:
        folder.notices.append(
            f"{stale} of {len(folder.diagnoses)} {verb(len(folder.diagnoses), 'diagnosis', 'diagnoses')} "
            f"{verb(stale, 'speaks', 'speak')} of a cell that this folder does not hold."
        )
