"""Numbers of our tasks that another program measured: read where that program wrote them, and never kept as cells.

lm-evaluation-harness tells, for each length, a share of right answers: `ExternalScores`. Inspect's logs hold whole
episodes, which are counted like our own: `ExternalEpisodes`. Both say where they come from. They are read by
`statetrack.asking.external`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from statetrack.intervals import wilson
from statetrack.results.records import Record

MOST_ROWS = 10**9  # of one task: more than anybody asks


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where numbers come from: the program, its version, its file, and what task and model are called there."""

    program: str
    version: str = ""
    file: str
    task: str
    model: str
    created: str = ""  # date and time, as the program writes them
    loaded: str = ""  # the hash of how the model was loaded

    @property
    def by(self) -> str:
        """
        >>> Source(program="Inspect", version="0.3.285", file="a.eval", task="t", model="m").by
        'Inspect 0.3.285'
        """
        return f"{self.program} {self.version}".strip()


@dataclass(frozen=True, kw_only=True)
class LengthScore:
    """The share of right answers on rows of one length. `rows` is how many these are, or `at_least` so many."""

    length: int
    accuracy: float
    rows: int
    at_least: bool = False

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.accuracy * self.rows, self.rows)


@dataclass(frozen=True, kw_only=True)
class ExternalScores:
    """One task, one model: the share of right final answers, over all rows and for each length that was asked."""

    kind: ClassVar[str] = "external"
    source: Source
    task: str
    model: str
    how: str  # what tells this way to ask from others of the same model
    accuracy: float
    rows: int
    chance: float
    lengths: tuple[LengthScore, ...]
    falls_below_half: int | None = None
    too_long: int = 0  # rows that were left out, as they did not fit into the model's context
    unanswered: int = 0  # replies that a server left empty
    violations: float | None = None  # the share of replies without an answer in the right format
    asked: dict[str, str] = field(default_factory=dict)  # all that changes what was asked and how it was scored
    prompts: str = ""  # digits of the hash of all prompts, where that is known

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.accuracy * self.rows, self.rows)

    def problem(self) -> str | None:
        """What its numbers cannot be, beyond their types."""
        shares = [self.accuracy, self.chance, *(each.accuracy for each in self.lengths)]
        shares += [] if self.violations is None else [self.violations]
        counts = [self.rows, *(each.rows for each in self.lengths)]
        if not all(math.isfinite(share) and 0 <= share <= 1 for share in shares):
            return "an accuracy that is no share"
        if not all(0 < count <= MOST_ROWS for count in counts):
            return "a number of rows that cannot be"
        if not all(0 <= count <= MOST_ROWS for count in (self.too_long, self.unanswered)):
            return "a number of rows left out that cannot be"
        return None


@dataclass(frozen=True, kw_only=True)
class LengthMean:
    """The mean over those tasks that have rows of one length."""

    length: int
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class ExternalMean:
    """The mean of `tasks`, each counted once, as the program has it: over all rows, and for each length asked."""

    kind: ClassVar[str] = "external"
    source: Source
    selector: str
    model: str
    how: str
    tasks: tuple[str, ...]
    accuracy: float
    chance: float
    lengths: tuple[LengthMean, ...]

    @property
    def by_length(self) -> dict[int, float]:
        return {each.length: each.accuracy for each in self.lengths}

    @property
    def name(self) -> str:
        return f"mean of {self.selector}"

    def called(self, model: str, how: str) -> ExternalMean:
        return replace(self, model=model, how=how)

    def problem(self) -> str | None:
        shares = [self.accuracy, self.chance, *(each.accuracy for each in self.lengths)]
        return None if all(math.isfinite(share) and 0 <= share <= 1 for share in shares) else "a mean that is no share"


@dataclass(frozen=True, kw_only=True)
class ExternalEpisodes:
    """The samples of one log, as records like our own."""

    kind: ClassVar[str] = "external"
    source: Source
    records: Sequence[Record]
    repeats: int = 0  # samples of a second epoch and later, which are not counted
