"""What theory and the documents said, judged over records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from statetrack.errors import BadInput
from statetrack.results import AskedRecord, Cell, TrainingRecord
from statetrack.results.diagnosis import Diagnosis
from statetrack.results.plans import RULES
from statetrack.results.sections import M_EXPLODES
from statetrack.tasks import trusted_task
from statetrack.theory import Prediction, predict
from statetrack.theory.predictions.families import has_family
from statetrack.theory.predictions.predict import UNKNOWN
from statetrack.verdicts.documents import (
    COMPARED,
    DESIGN,
    DIAGNOSIS,
    AccuracyTest,
    DocumentPrediction,
    predictions,
)
from statetrack.verdicts.measurements import Measurement, as_designed, from_record
from statetrack.verdicts.outcomes import Verdict
from statetrack.verdicts.rules import Result, both

ABOUT = ("weights", "training")


@dataclass(frozen=True)
class JudgedPredictions:
    """One model on one task: what theory says of the weights that exist and of those that training finds, and what
    became of it. Nothing where theory does not know the model, or the task is not at hand. `before` has the verdicts by
    the rules that the cells were planned under, where they differ.
    """

    predictions: dict[str, Prediction]  # by what they are about
    verdicts: dict[str, Verdict]
    before: dict[str, Verdict] = field(default_factory=dict)


@dataclass(frozen=True)
class JudgedSentence:
    """A sentence of a document with its verdict, and the one by the rules that the cells were planned under, where it
    differs.
    """

    prediction: DocumentPrediction
    verdict: Verdict
    before: Verdict | None = None

    @property
    def measured(self) -> bool:
        """Whether numbers decide it, or may."""
        return not self.verdict.by_argument


def results(
    records: Iterable[TrainingRecord], diagnoses: Mapping[str, Diagnosis] | None = None
) -> tuple[list[Measurement], dict[Cell, BadInput]]:
    """What verdicts rest on, and of which cells the numbers cannot be judged. Diagnoses, by the keys of cells, name the
    mechanisms of failures.

    Records of models that no theory speaks of are left out: they need no verdict.
    """
    made: list[Measurement] = []
    refused: dict[Cell, BadInput] = {}
    for record in records:
        if has_family(record.cell.subject):
            found = (diagnoses or {}).get(record.cell.key)
            try:
                made += from_record(record, _mechanism(found) if found else "")
            except BadInput as error:
                refused[record.cell] = error
    return made, refused


def _mechanism(found: Diagnosis) -> str:
    """What the diagnosis names: a state that exploded did not fade alone."""
    return M_EXPLODES if found.exploded_at is not None else found.mechanism


def judge(subject: str, name: str, results: list[Measurement], made_under: int = RULES) -> JudgedPredictions:
    """A model on the task of this name, by results, among which may be those of other tasks."""
    said = {about: found for about in ABOUT if (found := _predict(subject, name, about)) is not None}
    given = {about: both(prediction, results, made_under) for about, prediction in said.items()}
    before = {about: each.before for about, each in given.items() if each.before is not None}
    return JudgedPredictions(said, {about: each.now for about, each in given.items()}, before)


def _predict(subject: str, name: str, about: str) -> Prediction | None:
    if not has_family(subject):
        return None
    try:
        return predict(subject, trusted_task(name), about)
    except BadInput:  # a task of somebody's own that is not at hand
        return None


def counts(rows: Iterable[JudgedPredictions]) -> Counter[str]:
    """How often each verdict was given, over predictions that say something."""
    said = ((row, about) for row in rows for about, each in row.predictions.items() if each.outcome != UNKNOWN)
    return Counter(row.verdicts[about].outcome for row, about in said)


def sentences(
    results: list[Measurement], asked: Sequence[AskedRecord] = (), made_under: int = RULES
) -> list[JudgedSentence]:
    """What the documents say that these results concern. Section 6 is judged by diagnoses (`patterns`)."""
    designed = as_designed(results)
    held: list[Result] = [*results, *asked]
    found = []
    for prediction in predictions():
        if prediction.judged_by != DIAGNOSIS and _concerns(prediction, results, designed, asked):
            given = both(prediction, held, made_under)
            found.append(JudgedSentence(prediction, given.now, given.before))
    return found


def _concerns(
    prediction: DocumentPrediction,
    results: list[Measurement],
    designed: list[Measurement],
    asked: Sequence[AskedRecord],
) -> bool:
    """Whether there are results of what a sentence speaks of.

    That is its model on its task, at one of its lengths. A sentence that names no model speaks of all that its document
    names.
    """
    if prediction.judged_by == COMPARED:
        tasks = {each.task for each in results} | {each.cell.task for each in asked}
        return any(name.partition("[")[0].endswith("_composition") for name in tasks)
    tests = [prediction.test] if prediction.test else _named(prediction.document) if prediction.false else []
    here = designed if prediction.document == DESIGN else results
    seen = {(each.model.lower(), each.task, each.length) for each in here}
    return any(
        (model, name) == (test.model, test.task) and (not prediction.test or test.speaks_of(length))
        for test in tests
        for model, name, length in seen
    )


def _named(document: str) -> list[AccuracyTest]:
    return [each.test for each in predictions() if each.document == document and each.test is not None]
