"""What a verdict is."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from statetrack.formatting import plural

CONFIRMED, REFUTED, UNDECIDED = OUTCOMES = ("confirmed", "refuted", "undecided")


@dataclass(frozen=True)
class Verdict:
    """Confirmed, refuted or undecided, with the reason and the number of seeds it rests on.

    `by_argument`: it was decided before anything ran.
    """

    outcome: str
    why: str
    seeds: int
    by_argument: bool = False

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def text(self) -> str:
        by = "by argument: " if self.by_argument else ""
        return f"{self.outcome}: {by}{self.why} ({plural(self.seeds, 'seed')})"
