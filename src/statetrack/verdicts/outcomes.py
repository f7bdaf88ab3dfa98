"""What a verdict is."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from statetrack.formatting import plural
from statetrack.results.plans import RULES

CONFIRMED, REFUTED, UNDECIDED = OUTCOMES = ("confirmed", "refuted", "undecided")


@dataclass(frozen=True)
class Verdict:
    """Confirmed, refuted or undecided, with the reason and the number of seeds it rests on.

    `by_argument`: no number can decide it, so an argument does. `remark` stands beside a verdict and has no part in it:
    the argument against a sentence that was measured. `rules` are those under which it was given (docs/claims.md).
    """

    outcome: str
    why: str
    seeds: int
    by_argument: bool = False
    remark: str = ""
    rules: int = RULES

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def text(self) -> str:
        by = "by argument: " if self.by_argument else ""
        return f"{self.outcome}: {by}{self.because} ({plural(self.seeds, 'seed')})"

    @property
    def because(self) -> str:
        """The reason, and the remark where there is one."""
        return f"{self.why}; beside it: {self.remark}" if self.remark else self.why


def undecided(why: str, seeds: int = 0, remark: str = "") -> Verdict:
    return Verdict(UNDECIDED, why, seeds, remark=remark)
