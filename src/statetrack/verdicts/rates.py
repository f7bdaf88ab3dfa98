"""What training finds is a rate, and a rate has bounds: exact ones, one-sided, 95 % each (Clopper and Pearson).

usually   the lower bound is above one half     5 of 5, 7 of 8, 9 of 10
seldom    the upper bound is below one half     0 of 5, 1 of 8, 1 of 10
rarely    the upper bound is below one fifth    0 of 14
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import count

from statetrack.formatting import plural
from statetrack.intervals import rate_bounds

USUALLY, SELDOM, RARELY, OPEN = "usually", "seldom", "rarely", "open"
HALF, FIFTH = 0.5, 0.2
LEAST = 5  # seeds that can decide a rate


@dataclass(frozen=True)
class Rate:
    """How many of the seeds did it, how many did not, and of how many it is open: a run that was not tested far enough,
    or whose failure is no failure of the model. Those count as the other ones do for each bound.

    >>> Rate(5, 0).word, Rate(5, 0, open=1).word, Rate(0, 14).word, Rate(0, 3).text
    ('usually', 'open', 'rarely', '0 of 3 seeds')
    """

    yes: int
    no: int
    open: int = 0

    @property
    def of(self) -> int:
        return self.yes + self.no + self.open

    @property
    def lower(self) -> float:
        """Were all that is open against it."""
        return rate_bounds(self.yes, self.of)[0] if self.of else 0.0

    @property
    def upper(self) -> float:
        """Were all that is open for it."""
        return rate_bounds(self.yes + self.open, self.of)[1] if self.of else 1.0

    @property
    def word(self) -> str:
        if self.lower > HALF:
            return USUALLY
        return RARELY if self.upper < FIFTH else SELDOM if self.upper < HALF else OPEN

    @property
    def seldom(self) -> bool:
        """Seldom or rarely."""
        return self.word in (SELDOM, RARELY)

    @property
    def turned(self) -> Rate:
        """Of not doing it."""
        return Rate(self.no, self.yes, self.open)

    def needed(self, *words: str) -> int:
        """The seeds still needed at least, were they all to go one way, for one of the words (any, if none is given).

        >>> Rate(3, 0).needed(), Rate(0, 3).needed(), Rate(0, 3).needed(RARELY), Rate(0, 0, open=3).needed()
        (2, 2, 11, 10)
        """
        return min(self._needed(word) for word in words or (USUALLY, SELDOM))

    def _needed(self, word: str) -> int:
        for more in count():
            grown = replace(self, **({"yes": self.yes + more} if word == USUALLY else {"no": self.no + more}))
            if grown.word == word or (word == SELDOM and grown.seldom):
                return more
        raise AssertionError("enough seeds that go one way decide any rate")

    @property
    def text(self) -> str:
        unclear = f", {self.open} open" if self.open else ""
        return f"{self.yes} of {plural(self.of, 'seed')}{unclear}"

    def lacks(self, *words: str) -> str:
        """What it takes to decide it, in words."""
        return f"at least {plural(self.needed(*words), 'more seed')} needed"


def rate(votes: Iterable[bool | None]) -> Rate:
    """Of votes: yes, no, or None for what is open."""
    held = list(votes)
    return Rate(held.count(True), held.count(False), held.count(None))
