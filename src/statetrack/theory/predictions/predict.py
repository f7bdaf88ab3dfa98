"""What theory predicts for a model on a task, before anything runs.

Outcomes, about the weights that exist ("weights") or about those that training finds ("training"):

    every length      some weights solve the task at every length
    grows with depth  each depth solves it up to some length, more depth further
    fades             it is solved at short lengths and lost at long ones
    cannot            no weights solve it at every length
    unknown           nothing that is known here decides it

What can be known depends on how steps are computed, so there is an answer for each column of precision (see `answers`).

>>> import statetrack as st
>>> parity = predict("mamba2-32l", st.task("txc"))
>>> parity.outcome, parity.precision, parity.row["floats"].outcome
('cannot', 'bounded error', 'cannot')
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from statetrack.errors import BadInput
from statetrack.models.catalogue import ModelEntry, find
from statetrack.tasks.base import Task
from statetrack.theory.predictions import training
from statetrack.theory.predictions.answers import (
    BOUNDED,
    CANNOT,
    COLUMNS,
    EVERY,
    EXACT,
    FADES,
    FLOATS,
    GROWS,
    LOG,
    OUTCOMES,
    UNKNOWN,
    Answer,
    Row,
    same,
    unknown,
)
from statetrack.theory.predictions.features import Features
from statetrack.theory.predictions.rules import RULES
from statetrack.theory.predictions.sources import SOURCES

__all__ = [
    "ABOUT", "BOUNDED", "CANNOT", "COLUMNS", "EVERY", "EXACT", "FADES", "FLOATS", "GROWS", "LOG", "OUTCOMES",
    "UNKNOWN", "Prediction", "predict",
]  # fmt: skip

ABOUT = ("weights", "training")


@dataclass(frozen=True)
class Prediction:
    """One outcome with its reason, and the outcomes of all columns of precision beside it.

    `precision` names the column that the outcome is of. `status` is "proved", "assumed" (it rests on a conjecture),
    "conditional" (on what `conditions` say), "measured" (elsewhere, before) or "open".
    """

    model: str
    task: str
    about: str
    outcome: str
    why: str
    source: str
    precision: str
    status: str
    conditions: tuple[str, ...] = ()
    family: str = ""
    layers: int = 1
    rows_forget: bool = False  # random inputs soon wipe out the past, so being right on rows does not refute it
    row: Mapping[str, Answer] = field(default_factory=dict)  # by column; about weights only

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def text(self) -> str:
        """One line for the headline, and a line for each column."""
        marks = f"{self.about}, {self.status}, {self.precision}"
        lines = [f"{self.outcome}: {self.why}{_if(self.conditions)} [{marks}; {SOURCES[self.source]}]"]
        for column, answer in self.row.items():
            said = f"{answer.outcome} [{answer.status}]"
            reason = "" if column == self.precision else f": {answer.why}{_if(answer.conditions)}"
            lines.append(f"  {column:<15}{said}{reason if answer.decided else f': {answer.why}'}")
        return "\n".join(lines)


def _if(conditions: tuple[str, ...]) -> str:
    return f" (if {'; '.join(conditions)})" if conditions else ""


def predict(model_name: str, task: Task, about: str = "weights") -> Prediction:
    """What theory says of this model on this task: about weights that exist, or about those that training finds."""
    if about not in ABOUT:
        raise BadInput(f"about={about!r} should be {' or '.join(map(repr, ABOUT))}")
    model, features = find(model_name), Features(task)
    row = _row(model, features)
    answer, precision = row[row.headline], row.headline
    if about == "training" and model.family in RULES:
        answer = training.found(model, features, answer)
    told = dataclasses.asdict(answer) | {"precision": precision, "family": model.family, "layers": model.layers}
    if about == "weights":
        told["row"] = {column: row[column] for column in COLUMNS}
    if answer.denies and answer.source != "definition" and features.forgets:
        told |= {"rows_forget": True, "why": f"{answer.why}; but random inputs soon wipe out the past"}
    return Prediction(model.name, task.name, about, **told)


def _row(model: ModelEntry, features: Features) -> Row:
    if model.family not in RULES:
        return same(unknown("nothing is known here of what this model's recurrence can do"), FLOATS)
    if features.rare:
        return same(unknown("some inputs never come here, and what is known is about all inputs"), FLOATS)
    row = RULES[model.family](model, features)
    return row if features.certain else Row({column: _granted(row[column]) for column in COLUMNS}, row.chosen)


def _granted(answer: Answer) -> Answer:
    """Weights that exist, exist; what is denied may be words that never come, or states that are not asked about."""
    if answer.outcome in (EVERY, UNKNOWN):
        return answer
    return unknown("some words never come here or are not asked about, and what is known is about all words")
