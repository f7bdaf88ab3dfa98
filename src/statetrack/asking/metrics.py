"""What is counted over the records of episodes.

Everything is computed from the records alone (see `Episode.record`), so a folder of results can be counted again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

from statetrack.asking.episode import DONE, FAILURES, FORMAT, INTERRUPTIONS, LETTERS, REFUSAL, RIGHT
from statetrack.asking.survival import kaplan_meier
from statetrack.asking.tokens import Tokens
from statetrack.intervals import wilson

Record = dict[str, Any]
RESAMPLES = 2000


def max_length(record: Record, compat: bool = False) -> int:
    """How long an episode lasted: the turns answered correctly before the first that was not, 0..300.

    The original counts the turns answered, the failed one included, minus one: the same number, except that a perfect
    episode has 299 there.

    >>> [max_length({"max_length": 299, "outcomes": "+" * 299 + "x"}, compat) for compat in (False, True)]
    [299, 299]
    >>> [max_length({"max_length": 300, "outcomes": "+" * 300}, compat) for compat in (False, True)]
    [300, 299]
    """
    right: int = record["max_length"]
    failed = right < len(record["outcomes"])
    return max(0, right + failed - 1) if compat else right


def results(records: Sequence[Record], compat: bool = False) -> dict[str, float]:
    """The result keys of Track the Stat; nothing for no records. The standard deviation is the population's."""
    if not records:
        return {}
    lengths = [max_length(record, compat) for record in records]
    return {
        "avg_max_length": float(np.mean(lengths)),
        "stddev_max_length": float(np.std(lengths)),
        "median_max_length": float(median(lengths)),
        "max_max_length": max(lengths),
        "min_max_length": min(lengths),
        "violation_rate": float(np.mean([is_violation(record) for record in records])),
    }


def is_violation(record: Record) -> bool:
    """Whether an episode holds a reply without an answer in the right format."""
    return any(LETTERS[kind] in record["outcomes"] for kind in (FORMAT, REFUSAL))


def summary(records: Sequence[Record], compat: bool = False) -> dict[str, Any]:
    """The result keys with their n and intervals, and what one number hides."""
    if not records:
        return {"episodes": 0}
    violations = sum(map(is_violation, records))
    return {
        **results(records, compat),
        "counting": "original" if compat else "0..length",
        "episodes": len(records),
        "avg_interval": mean_interval([max_length(record, compat) for record in records]),
        "violation_interval": list(wilson(violations, len(records))),
        "accuracy": accuracy(records),
        "ended": ended(records),
        "steps": steps(records),
        "survival": survival(records),
        "by_position": by_position(records),
        "tokens": tokens(records).to_dict(),
    }


def mean_interval(numbers: Sequence[float]) -> list[float]:
    """A 95 % bootstrap interval of a mean over episodes."""
    given = np.asarray(numbers, float)
    picks = np.random.default_rng(0).integers(0, len(given), (RESAMPLES, len(given)))
    return [float(bound) for bound in np.quantile(given[picks].mean(1), [0.025, 0.975])]


def accuracy(records: Sequence[Record]) -> dict[str, Any]:
    """The share of right answers among all given, with Wilson's interval over answers."""
    letters = "".join(record["outcomes"] for record in records)
    return _share(letters.count(LETTERS[RIGHT]), len(letters))


def ended(records: Sequence[Record]) -> dict[str, int]:
    """How many episodes ended in which way: done, by a failure of the model's own, or by an interruption."""
    counts = Counter(record["ended"] for record in records)
    return {kind: counts[kind] for kind in (DONE, *FAILURES, *INTERRUPTIONS)}


def steps(records: Sequence[Record]) -> dict[str, Any]:
    """The accuracy where the answer changes and where it stays, apart: copying is right wherever it stays."""
    pairs = Counter(pair for record in records for pair in zip(record["changes"], record["outcomes"]))
    right = LETTERS[RIGHT]

    def share(kind: str) -> dict[str, Any]:
        return _share(pairs[kind, right], sum(count for (change, _), count in pairs.items() if change == kind))

    return {"change": share("1"), "no_change": share("0")}


def by_position(records: Sequence[Record]) -> list[dict[str, Any]]:
    """The accuracy at each position that was asked about, with its n and interval.

    With early stop the n falls along the way: those that are still there are those that made no error.
    """
    right: Counter[int] = Counter()
    asked: Counter[int] = Counter()
    for record in records:
        for position, letter in zip(record["positions"], record["outcomes"]):
            asked[position] += 1
            right[position] += letter == LETTERS[RIGHT]
    return [{"position": position, **_share(right[position], asked[position])} for position in sorted(asked)]


def survival(records: Sequence[Record]) -> list[dict[str, float]]:
    """The share of episodes without an error after each turn; those that were cut off or got through are censored."""
    failed = [record["max_length"] < len(record["outcomes"]) for record in records]
    times = [record["max_length"] + event for record, event in zip(records, failed)]
    return kaplan_meier(times, failed)


def tokens(records: Sequence[Record]) -> Tokens:
    return sum((Tokens(**record["tokens"]) for record in records), Tokens())


def falls_below(curve: Sequence[tuple[int, float]], threshold: float = 0.5) -> int | None:
    """The first length at which accuracy lies below a threshold; None where it never does.

    >>> falls_below([(5, 0.9), (10, 0.4), (15, 0.6)])
    10
    """
    return next((length for length, share in sorted(curve) if share < threshold), None)


def _share(right: int, n: int) -> dict[str, Any]:
    return {"accuracy": right / n if n else None, "n": n, "interval": list(wilson(right, n))}
