"""How long episodes last: the curve of those without an error, and the turn by which half have failed.

An episode that got through, or that a server or a limit cut off, counts as long as it was seen (Kaplan and Meier): it
is censored, and neither a failure nor a success.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from statetrack.formatting import plural
from statetrack.intervals import Z95, wilson
from statetrack.results.records import EpisodeRecord

HALF = 0.5
ROUNDING = 1e-12  # of a product of shares


def survival(episodes: Sequence[EpisodeRecord]) -> list[dict[str, float]]:
    """The share of episodes without an error after each turn."""
    return kaplan_meier(*_observed(episodes))


def half_failed(episodes: Sequence[EpisodeRecord], samples: int | None = None) -> HalfFailed:
    """The turn by which half of the episodes have failed. Where some are of one sample, asked again, `samples` says how
    many there are: those of one sample count as one for the interval.
    """
    answered = sum(bool(episode.outcomes) for episode in episodes)
    share = 1.0 if samples is None else min(1.0, samples / max(answered, 1))
    return half_time(*_observed(episodes), share)


def _observed(episodes: Sequence[EpisodeRecord]) -> tuple[list[int], list[bool]]:
    """The turns for which each was seen, and whether it failed at the last of them."""
    failed = [episode.max_length < len(episode.outcomes) for episode in episodes]
    return [episode.max_length + event for episode, event in zip(episodes, failed)], failed


def kaplan_meier(times: Sequence[int], failed: Sequence[bool]) -> list[dict[str, float]]:
    """The survival curve: one point for every time at which something failed.

    S(t) = prod over t_i <= t of (1 - d_i / n_i), where d_i of the n_i that are still under observation fail at t_i. The
    interval is Greenwood's on the scale log(-log S), which stays inside 0..1:

        var log(-log S) = sum d_i / (n_i (n_i - d_i)) / (log S)^2

    Three episodes: one fails at turn 2, one is cut off after turn 3, one fails at turn 4. After turn 2 there are 2 of 3
    left, 2/3; at turn 4 a single one is left, and it fails.

    >>> [(point["time"], round(point["share"], 3)) for point in kaplan_meier([2, 3, 4], [True, False, True])]
    [(2, 0.667), (4, 0.0)]
    """
    curve = []
    for time, at_risk, share, greenwood in _steps(times, failed):
        low, high = _survival_interval(share, greenwood)
        curve.append({"time": time, "share": share, "low": low, "high": high, "at_risk": at_risk})
    return curve


def _steps(times: Sequence[int], failed: Sequence[bool]) -> Iterator[tuple[int, int, float, float]]:
    """Time, those at risk, the share left, and Greenwood's sum, for every time at which something failed."""
    share, greenwood = 1.0, 0.0
    for time in sorted({time for time, event in zip(times, failed) if event}):
        at_risk = sum(other >= time for other in times)
        failures = sum(event and other == time for other, event in zip(times, failed))
        share *= 1 - failures / at_risk
        greenwood += failures / (at_risk * (at_risk - failures)) if failures < at_risk else 0.0
        yield time, at_risk, share, greenwood


def _survival_interval(share: float, greenwood: float) -> tuple[float, float]:
    if share <= 0:
        return 0.0, 0.0
    width = Z95 * math.sqrt(greenwood) / abs(math.log(share))
    return share ** math.exp(width), share ** math.exp(-width)


@dataclass(frozen=True)
class HalfFailed:
    """The first turn by which at least half have failed, with its 95 % interval; None where that was not `seen`."""

    turn: int | None
    low: int | None
    high: int | None
    seen: int

    def to_dict(self) -> dict[str, Any]:
        return {"turn": self.turn, "interval": [self.low, self.high], "seen": self.seen}

    @property
    def text(self) -> str:
        """
        >>> HalfFailed(23, 16, None, 300).text, HalfFailed(None, None, None, 0).text
        ('23', 'no answers')
        >>> HalfFailed(None, 16, None, 300).text
        'not within 300 turns'
        """
        return self._at(self.turn) if self.seen else "no answers"

    @property
    def between(self) -> str:
        """
        >>> HalfFailed(23, 16, 40, 300).between, HalfFailed(23, 16, None, 300).between
        ('16 to 40', '16 to 300, or not within 300 turns')
        >>> HalfFailed(1, 1, None, 1).between, HalfFailed(None, None, None, 300).between
        ('1, or not within 1 turn', 'not within 300 turns')
        """
        if self.low is None:
            return self._at(None) if self.seen else ""
        if self.high is not None:
            return f"{self.low} to {self.high}"
        seen = f"{self.low} to {self.seen}" if self.low < self.seen else str(self.low)
        return f"{seen}, or {self._at(None)}"

    def _at(self, turn: int | None) -> str:
        return f"not within {plural(self.seen, 'turn')}" if turn is None else str(turn)


def half_time(times: Sequence[int], failed: Sequence[bool], independent: float = 1.0) -> HalfFailed:
    """When half have failed, and between which times that may be (Brookmeyer and Crowley 1982): all those at which the
    interval of the share that is left holds a half.

    The interval is Wilson's, of as many episodes as the share is worth by Greenwood's variance: all of them as long as
    none is cut off, and of them the share that is `independent`. So it can also be told where all have failed, or none
    has yet, and few episodes say little.

    >>> half_time([1] * 20, [True] * 20)
    HalfFailed(turn=1, low=1, high=1, seen=1)
    >>> half_time([5], [True])
    HalfFailed(turn=5, low=1, high=None, seen=5)
    """
    seen = max(times, default=0)
    worth = independent * sum(time > 0 for time in times)
    turn = low = high = None
    if seen and wilson(worth, worth)[0] <= HALF:
        low = 1
    for time, _, share, greenwood in _steps(times, failed):
        worth = independent * (1 - share) / (share * greenwood) if share > 0 else worth
        least, most = wilson(share * worth, worth)
        turn = time if turn is None and share <= HALF + ROUNDING else turn
        low = time if low is None and least <= HALF else low
        high = time if high is None and most <= HALF else high
    return HalfFailed(turn, low, high, seen)
