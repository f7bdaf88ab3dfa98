"""What a prediction is made of: an outcome in each column of precision, with its reason, source and conditions.

The columns say what a step computes:

    exact reals    real numbers, without any error
    bounded error  every run in which each entry of the state is off by up to some s > 0 in every step
    log T bits     numbers of O(log T) bits for inputs of length T
    floats         float32 as it is computed here, step after step

They are different questions. What holds in exact reals may rest on a sign that shrinks for ever, which no computer
keeps; what floats do may rest on how they round; what holds under every bounded error is what a proof about trained
weights can show, and its lack says nothing of one float kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

EVERY, GROWS, FADES, CANNOT, UNKNOWN = "every length", "grows with depth", "fades", "cannot", "unknown"
OUTCOMES = (EVERY, GROWS, FADES, CANNOT, UNKNOWN)
EXACT, BOUNDED, LOG, FLOATS = "exact reals", "bounded error", "log T bits", "floats"
COLUMNS = (EXACT, BOUNDED, LOG, FLOATS)
PROVED, ASSUMED, CONDITIONAL, MEASURED, OPEN = "proved", "assumed", "conditional", "measured", "open"


@dataclass(frozen=True)
class Answer:
    """An outcome in one column. `status` says how far it is known: see `predict.Prediction`."""

    outcome: str
    why: str
    source: str = "here"
    status: str = PROVED
    conditions: tuple[str, ...] = ()

    @property
    def decided(self) -> bool:
        return self.outcome != UNKNOWN

    @property
    def denies(self) -> bool:
        return self.outcome in (CANNOT, FADES)


def unknown(why: str) -> Answer:
    return Answer(UNKNOWN, why, "here", OPEN)


NOTHING = unknown("nothing is known here")


@dataclass(frozen=True)
class Row:
    """An answer for every column. `headline` names the one that speaks for the row.

    Unless a rule says otherwise that is the first of: every length under bounded error, every length in floats, every
    length with log T bits where it is proved, what bounded error denies, and then whatever is decided.
    """

    answers: Mapping[str, Answer] = field(default_factory=dict)
    chosen: str = ""

    def __getitem__(self, column: str) -> Answer:
        return self.answers.get(column, NOTHING)

    @property
    def headline(self) -> str:
        if self.chosen:
            return self.chosen
        if self[BOUNDED].outcome == EVERY:
            return BOUNDED
        if self[FLOATS].outcome == EVERY:
            return FLOATS
        if self[LOG].outcome == EVERY and self[LOG].status == PROVED:
            return LOG
        return next((column for column in (BOUNDED, FLOATS, LOG, EXACT) if self[column].decided), FLOATS)


def same(answer: Answer, headline: str = EXACT) -> Row:
    """One answer whatever the precision."""
    return Row(dict.fromkeys(COLUMNS, answer), headline)
