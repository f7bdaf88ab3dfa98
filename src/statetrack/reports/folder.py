"""A folder of results as the report reads it: what was trained, what was asked, what was diagnosed, what went wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statetrack.asking.rules import Rules
from statetrack.errors import BadInput
from statetrack.formatting import plural, told_apart, verb, without_hash
from statetrack.reports.series import HOW, Series, series_of
from statetrack.results import Store
from statetrack.results.standing import ORDER
from statetrack.results.store import DIVERGED, DONE, FINISHED
from statetrack.sweeps import Status, status
from statetrack.version import __version__

Record = dict[str, Any]
FORCED = "teacher_forced"
ASKED = "ask"  # the protocol's name of cells in which a language model was asked
DIAGNOSIS = "diagnosis"  # the folder of what `statetrack diagnose` writes
FORMAT = 1  # of those files
PARTS = (
    "key", "task", "model", "trained", "seed", "positions", "gradient", "probe", "portrait", "separation", "error",
    "eigenvalues", "automaton", "conclusion", "sentences",
)  # fmt: skip
BOTH = ("ablations", "patterns", "left_out")
NEEDED = ("accuracy", "interval", "floor")


@dataclass(frozen=True)
class Run:
    """One trained cell. `model` and `protocol` are written as the page writes them, each the same in every figure."""

    task: str
    model: str
    trained: int
    seed: int
    protocol: str
    record: Record

    @property
    def subject(self) -> str:
        return str(self.record["cell"]["subject"])


@dataclass(frozen=True)
class Episode:
    """One sample that a language model, or a baseline, was asked."""

    task: str
    model: str
    length: int
    sample: int
    protocol: str
    record: Record


@dataclass
class Folder:
    """Everything that the page is made of."""

    path: Path
    status: Status
    runs: list[Run] = field(default_factory=list)
    episodes: list[Episode] = field(default_factory=list)
    series: list[Series] = field(default_factory=list)
    diagnoses: list[Record] = field(default_factory=list)
    comparison: Record | None = None  # the diagnosis of the whole folder
    versions: Counter[str] = field(default_factory=Counter)
    cells: list[Record] = field(default_factory=list)  # every record, whatever its status
    notices: list[str] = field(default_factory=list)

    @property
    def tasks(self) -> list[str]:
        """In the order of the catalogue's first three, then by name."""
        first = {name: place for place, name in enumerate(("txc", "rtc", "fsm"))}
        names = {run.task for run in self.runs} | {episode.task for episode in self.episodes}
        names |= {str(record["cell"]["task"]) for record in self.cells}
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

    def of(self, task: str, protocol: str) -> list[Run]:
        return [run for run in self.runs if run.task == task and run.protocol == protocol]

    def asked(self, task: str) -> list[Episode]:
        return [episode for episode in self.episodes if episode.task == task]

    def drawn(self, labels: Iterable[str]) -> list[Series]:
        """How the models among these labels are drawn, in their fixed order."""
        wanted = set(labels)
        return [one for one in self.series if one.label in wanted]


def read(path: Path) -> Folder:
    """Read the folder once; what is damaged or cannot be read is left out and named."""
    store = Store.existing(path)
    folder = Folder(path, _status(store))
    folder.cells = list(store.records())
    folder.versions = Counter(str(record.get("version", "unknown")) for record in folder.cells)
    if isinstance(folder.status, _Unplanned):
        folder.notices.append(folder.status.why)
    finished = [record for record in folder.cells if record.get("status", DONE) in FINISHED]
    asked = [record for record in folder.cells if is_asked(record) and "outcomes" in record]
    trained = [record for record in finished if not is_asked(record)]
    whole = [record for record in trained if _is_whole(record)]
    left = len(trained) - len(whole)
    if left:
        folder.notices.append(
            f"{plural(left, 'finished cell')} {verb(left, 'holds', 'hold')} no accuracy that this version can read; "
            "left out."
        )
    _name(folder, whole, asked)
    _say_versions(folder)
    diverged = sum(record.get("status") == DIVERGED for record in finished)
    if diverged:
        folder.notices.append(f"{plural(diverged, 'cell')} diverged in training; the weights before it count.")
    silent = sum(map(_falls_silent, whole))
    if silent:
        folder.notices.append(
            f"{plural(silent, 'network')} {verb(silent, 'gives', 'give')} logits that are not numbers at some length "
            "tested; they count as wrong."
        )
    _read_diagnoses(folder)
    return folder


def is_asked(record: Record) -> bool:
    return bool(record["cell"]["protocol"].get("name") == ASKED)


def _is_whole(record: Record) -> bool:
    accuracy = record.get("accuracy")
    return isinstance(accuracy, int | float) and all(key in record for key in NEEDED)


def _falls_silent(record: Record) -> bool:
    """Whether some position that was tested was left unanswered."""
    beyond = (record.get("length_generalisation") or {}).values()
    streamed = ((record.get("stream") or {}).get("unanswered") or {}).values()
    return any([record.get("unanswered"), *(entry.get("unanswered") for entry in beyond), *streamed])


class _Unplanned(Status):
    """The standing of a folder whose plan is damaged: what is missing is not known."""

    why = ""


def _status(store: Store) -> Status:
    try:
        return status(store)
    except BadInput as error:
        found = Counter(record.get("status", DONE) for record in store.records())
        counts = {name: found[name] for name in ORDER}
        known = _Unplanned(counts, {}, list(store.damaged()), [], Counter(), 0, None)
        known.why = f"{error}. What is missing is not known."
        return known


def _name(folder: Folder, trained: list[Record], asked: list[Record]) -> None:
    """Give models and protocols the words of the page. How a model was asked is part of what it is called there."""
    protocols = protocol_labels([record["cell"]["protocol"] for record in (*trained, *asked)])
    labels = told_apart(
        {subject: without_hash(subject) for subject in (record["cell"]["subject"] for record in trained)}
    )
    subjects = {label: subject for subject, label in labels.items()}
    for record in trained:
        cell = record["cell"]
        protocol = protocols[_text(cell["protocol"])]
        folder.runs.append(Run(cell["task"], labels[cell["subject"]], cell["length"], cell["seed"], protocol, record))
    for record in asked:
        cell = record["cell"]
        protocol = protocols[_text(cell["protocol"])]
        how = _how(cell["protocol"])
        label = f"{cell['subject']}{HOW}{how}" if how else str(cell["subject"])
        subjects.setdefault(label, label)
        folder.episodes.append(Episode(cell["task"], label, cell["length"], cell["seed"], protocol, record))
    folder.series = series_of(subjects)
    order = {label: place for place, label in enumerate(folder.models)}
    folder.runs.sort(key=lambda run: (run.task, run.protocol, order[run.model], run.trained, run.seed))


def _how(protocol: Mapping[str, Any]) -> str:
    """The rules under which a model was asked that are not the usual ones, in words."""
    given = {key: value for key, value in protocol.items() if key not in ("name", FORCED)}
    try:
        words = Rules(**given).changed
    except (TypeError, ValueError):  # rules of another version
        words = ", ".join(f"{key} {_short(value)}" for key, value in given.items())
    return ", ".join(filter(None, [words, "teacher-forced" if FORCED in protocol else ""]))


def protocol_labels(protocols: list[Mapping[str, Any]]) -> dict[str, str]:
    """The name of each protocol, with what tells it from others of that name.

    >>> a, b = {"name": "design", "batch": 64, "clip": 1.0}, {"name": "design", "batch": 256, "clip": 1.0}
    >>> list(protocol_labels([a, b]).values())
    ['design, batch 64', 'design, batch 256']
    """
    unique = {_text(protocol): protocol for protocol in protocols}
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for protocol in unique.values():
        by_name.setdefault(str(protocol.get("name", "")), []).append(protocol)
    labels = {}
    for text, protocol in unique.items():
        name = str(protocol.get("name", ""))
        same = by_name[name]
        keys = dict.fromkeys(key for each in same for key in each)
        differ = [key for key in keys if len({_text(each.get(key)) for each in same}) > 1]
        settings = [f"{key} {_short(protocol.get(key))}" for key in differ]
        labels[text] = ", ".join([name or "no name", *settings])
    return labels


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _short(value: Any) -> str:
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
            f"({told}); this page was made by version {__version__}. Numbers of different versions may not "
            "be alike."
        )


def _read_diagnoses(folder: Folder) -> None:
    """What `statetrack diagnose` left; a file that cannot be read is named."""
    kept = {_key(record) for record in folder.cells}
    for path in sorted((folder.path / DIAGNOSIS).glob("*.json")):
        try:
            record = json.loads(path.read_bytes())
            if not isinstance(record, dict) or record["format"] != FORMAT:
                raise ValueError(f"it is not of format {FORMAT}")
            lacking = [name for name in (BOTH if path.stem == "folder" else PARTS) if name not in record]
            if lacking:
                raise ValueError(f"it has no {lacking[0]!r}")
            if path.stem == "folder":
                folder.comparison = record
            else:
                folder.diagnoses.append(
                    record | {"label": without_hash(record["model"]), "stale": record["key"] not in kept}
                )
        except (ValueError, KeyError, TypeError, OSError) as error:
            folder.notices.append(f"{DIAGNOSIS}/{path.name} cannot be read ({error}); left out.")
    stale = sum(record["stale"] for record in folder.diagnoses)
    if stale:
        folder.notices.append(
            f"{stale} of {len(folder.diagnoses)} {verb(len(folder.diagnoses), 'diagnosis', 'diagnoses')} "
            f"{verb(stale, 'speaks', 'speak')} of a cell that this folder does not hold."
        )


def _key(record: Record) -> str:
    from statetrack.results import Cell

    return Cell(**record["cell"]).key
