"""What became of a prediction: confirmed, refuted or undecided. The one function that every page and command asks.

Rules have a version (docs/claims.md): 2 are in force, 1 are kept to show what was said under them. A plan keeps the
version under which it was made, and where the two verdicts differ both are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from statetrack.errors import BadInput
from statetrack.results import AskedRecord, TrainingRecord
from statetrack.results.plans import FIRST_RULES, RULES
from statetrack.theory.predictions.predict import Prediction
from statetrack.verdicts import document_rules, permutations, rules_1, rules_2
from statetrack.verdicts.documents import COMPARED, DocumentPrediction
from statetrack.verdicts.measurements import Measurement, from_record
from statetrack.verdicts.outcomes import Verdict

Result = Measurement | TrainingRecord | AskedRecord | Mapping[str, Any]


@dataclass(frozen=True)
class BothVerdicts:
    """The verdict by the rules in force, and that of the rules under which the cells were planned, where it differs."""

    now: Verdict
    before: Verdict | None = None


def verdict(prediction: Prediction | DocumentPrediction, results: Iterable[Result], rules: int = RULES) -> Verdict:
    """Judge a prediction by results: the records that training and asking write, or plain ones with model, task,
    length, seed, accuracy, n, low, high, floor and solved. Results of other tasks may be among them: controls are.
    """
    held = list(results)
    asked = list({result.cell.key: result for result in held if isinstance(result, AskedRecord)}.values())
    records = [measured for result in held if not isinstance(result, AskedRecord) for measured in _read(result)]
    if rules == FIRST_RULES:
        return rules_1.judge(prediction, records)
    if rules != RULES:
        raise BadInput(f"rules {rules} should be {FIRST_RULES} or {RULES}")
    if isinstance(prediction, Prediction):
        return rules_2.judge(prediction, records)
    if prediction.judged_by == COMPARED:
        return permutations.judge(prediction, records, asked)
    return document_rules.judge(prediction, records)


def both(prediction: Prediction | DocumentPrediction, results: Iterable[Result], made_under: int) -> BothVerdicts:
    """The verdict now and, for cells planned under older rules, the one by those where its outcome differs."""
    held = list(results)
    now = verdict(prediction, held)
    if made_under == now.rules:
        return BothVerdicts(now)
    before = verdict(prediction, held, made_under)
    return BothVerdicts(now, before if before.outcome != now.outcome else None)


def _read(result: Measurement | TrainingRecord | Mapping[str, Any]) -> list[Measurement]:
    if isinstance(result, Measurement):
        return [result]
    if isinstance(result, TrainingRecord) or "cell" in result:
        return from_record(result)
    return [Measurement.read(result)]
