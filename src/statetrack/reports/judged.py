"""What theory said and what was seen: predictions of both kinds, judged on the folder's records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from statetrack.errors import BadInput
from statetrack.formatting import plural, shown
from statetrack.reports import measured
from statetrack.reports.folder import Folder, Run
from statetrack.tasks import task
from statetrack.theory import Prediction, predict
from statetrack.theory.families import has_family
from statetrack.theory.sources import SOURCES
from statetrack.verdicts import DocumentPrediction, Measured, Verdict, verdict
from statetrack.verdicts.document_rules import as_designed
from statetrack.verdicts.documents import DESIGN, Measure, predictions
from statetrack.verdicts.measured import from_record

OUTCOMES = ("confirmed", "refuted", "undecided")
ABOUT = ("weights", "training")


@dataclass(frozen=True)
class Judged:
    """One model on one task under one protocol: two predictions, two verdicts, and what was seen in words."""

    task: str
    protocol: str
    model: str
    predictions: dict[str, Prediction]  # by what they are about
    verdicts: dict[str, Verdict]
    seen: tuple[str, str]  # in short, and what it rests on


@dataclass(frozen=True)
class Claim:
    """A sentence of a document with its verdict. `measured` says that results of this folder stand beside it."""

    prediction: DocumentPrediction
    verdict: Verdict
    measured: bool


def judged(folder: Folder) -> list[Judged]:
    """Every model on every task that theory knows, or may know, in the order of the page."""
    made = []
    for name in folder.tasks:
        for protocol in folder.protocols(name):
            runs = folder.of(name, protocol)
            results = _results(folder, runs)
            for model in dict.fromkeys(run.model for run in runs):
                made.append(_judge(name, protocol, [run for run in runs if run.model == model], results))
    return made


def _judge(name: str, protocol: str, runs: list[Run], results: list[Measured]) -> Judged:
    said, found = {}, {}
    for about in ABOUT:
        prediction = _predict(runs[0].subject, name, about)
        if prediction is not None:
            said[about] = prediction
            found[about] = verdict(prediction, results)
    return Judged(name, protocol, runs[0].model, said, found, seen(runs))


def _results(folder: Folder, runs: list[Run]) -> list[Measured]:
    """What theory reads of the records. One of a model that no theory speaks of is left out: it needs no verdict."""
    read: list[Measured] = []
    for run in runs:
        if not has_family(run.subject):
            continue
        try:
            read += from_record(run.record)
        except BadInput as error:
            folder.notices.append(f"{run.task}, {run.model}, seed {run.seed}: not judged, {error}.")
    return read


def _predict(subject: str, name: str, about: str) -> Prediction | None:
    if not has_family(subject):
        return None
    try:
        return predict(subject, task(name), about)
    except BadInput:  # a task of somebody's own that is not at hand
        return None


def seen(runs: list[Run]) -> tuple[str, str]:
    """What was seen: how far it was right, or where it stands at the length trained on; and what that rests on."""
    row = measured.reach(runs)
    seeds = f"{plural(row['seeds'], 'seed')}, trained at {row['trained']:,}"
    if row["reach"]:
        guess = "; a guess scores as much there" if row["easy"] else ""
        if row["lost_at"] is None:
            return f"right to {row['reach']:,}", f"the longest tested{guess}; {seeds}"
        return f"right to {row['reach']:,}, lost at {row['lost_at']:,}", f"{seeds}{guess}"
    ends = [each for each in measured.at_length(runs) if each["length"] == row["trained"]]
    low, high = min(each["accuracy"] for each in ends), max(each["accuracy"] for each in ends)
    spread = shown(low) if low == high else f"{shown(low)} to {shown(high)}"
    floor = f", floor {shown(ends[0]['floor'])}" if ends[0]["floor"] is not None else ""
    return f"not solved: {spread}{floor}", seeds


def counts(rows: Iterable[Judged]) -> Counter[str]:
    """How often each verdict was given, over predictions that say something."""
    return Counter(
        row.verdicts[about].outcome
        for row in rows
        for about, prediction in row.predictions.items()
        if prediction.outcome != "unknown"
    )


def claims(folder: Folder) -> list[Claim]:
    """The documents' sentences that concern the folder and that results or an argument decide."""
    results = _results(folder, folder.runs)
    designed = as_designed(results)
    made = []
    for prediction in predictions():
        if _concerns(prediction, designed if prediction.document == DESIGN else results):
            found = verdict(prediction, results)
            made.append(Claim(prediction, found, found.seeds > 0))
    return made


def _concerns(prediction: DocumentPrediction, results: list[Measured]) -> bool:
    """Whether the folder holds what a sentence speaks of.

    That is its model on its task, at one of its lengths; at any length if an argument refutes it. A sentence that names
    no model speaks of all that its document names.
    """
    tests = [prediction.test] if prediction.test else _named(prediction.document) if prediction.false else []
    here = {(each.model.lower(), each.task, each.length) for each in results}
    return any(
        (model, task) == (test.model, test.task) and (prediction.false or length in test.lengths)
        for test in tests
        for model, task, length in here
    )


def _named(document: str) -> list[Measure]:
    return [each.test for each in predictions() if each.document == document and each.test is not None]


def source(prediction: Prediction) -> str:
    return SOURCES[prediction.source]


def plain(rows: Iterable[Judged]) -> list[dict[str, Any]]:
    """For the CSV file of the verdicts."""
    return [
        {
            "task": row.task, "protocol": row.protocol, "model": row.model, "about": about,
            "theory": prediction.outcome, "why": prediction.why, "status": prediction.status,
            "source": source(prediction), "seen": "; ".join(row.seen), "verdict": row.verdicts[about].outcome,
            "because": row.verdicts[about].why, "seeds": row.verdicts[about].seeds,
        }
        for row in rows
        for about, prediction in row.predictions.items()
    ]  # fmt: skip
