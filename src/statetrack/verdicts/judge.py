"""What theory and the documents said, judged over records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from statetrack.errors import BadInput
from statetrack.results import Cell, TrainingRecord
from statetrack.tasks import task
from statetrack.theory import Prediction, predict
from statetrack.theory.predictions.families import has_family
from statetrack.theory.predictions.predict import UNKNOWN
from statetrack.verdicts.document_rules import as_designed
from statetrack.verdicts.documents import DESIGN, AccuracyTest, DocumentPrediction, predictions
from statetrack.verdicts.measurements import Measurement, from_record
from statetrack.verdicts.outcomes import Verdict
from statetrack.verdicts.rules import verdict

ABOUT = ("weights", "training")


@dataclass(frozen=True)
class JudgedPredictions:
    """One model on one task: what theory says of the weights that exist and of those that training finds, and what
    became of it. Nothing where theory does not know the model, or the task is not at hand.
    """

    predictions: dict[str, Prediction]  # by what they are about
    verdicts: dict[str, Verdict]


@dataclass(frozen=True)
class JudgedSentence:
    """A sentence of a document with its verdict."""

    prediction: DocumentPrediction
    verdict: Verdict

    @property
    def measured(self) -> bool:
        """Whether results stand beside it."""
        return self.verdict.seeds > 0


def results(records: Iterable[TrainingRecord]) -> tuple[list[Measurement], dict[Cell, BadInput]]:
    """What verdicts rest on, and of which cells the numbers cannot be judged.

    Records of models that no theory speaks of are left out: they need no verdict.
    """
    made: list[Measurement] = []
    refused: dict[Cell, BadInput] = {}
    for record in records:
        if has_family(record.cell.subject):
            try:
                made += from_record(record)
            except BadInput as error:
                refused[record.cell] = error
    return made, refused


def judge(subject: str, name: str, results: list[Measurement]) -> JudgedPredictions:
    """A model on the task of this name, by the results on it."""
    said = {about: found for about in ABOUT if (found := _predict(subject, name, about)) is not None}
    return JudgedPredictions(said, {about: verdict(prediction, results) for about, prediction in said.items()})


def _predict(subject: str, name: str, about: str) -> Prediction | None:
    if not has_family(subject):
        return None
    try:
        return predict(subject, task(name), about)
    except BadInput:  # a task of somebody's own that is not at hand
        return None


def counts(rows: Iterable[JudgedPredictions]) -> Counter[str]:
    """How often each verdict was given, over predictions that say something."""
    said = ((row, about) for row in rows for about, each in row.predictions.items() if each.outcome != UNKNOWN)
    return Counter(row.verdicts[about].outcome for row, about in said)


def sentences(results: list[Measurement]) -> list[JudgedSentence]:
    """What the documents say that these results concern, and that they or an argument decide."""
    designed = as_designed(results)
    return [
        JudgedSentence(prediction, verdict(prediction, results))
        for prediction in predictions()
        if _concerns(prediction, designed if prediction.document == DESIGN else results)
    ]


def _concerns(prediction: DocumentPrediction, results: list[Measurement]) -> bool:
    """Whether there are results of what a sentence speaks of.

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


def _named(document: str) -> list[AccuracyTest]:
    return [each.test for each in predictions() if each.document == document and each.test is not None]
