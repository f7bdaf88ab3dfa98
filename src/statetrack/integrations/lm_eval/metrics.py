"""What is made of the answers: one accuracy for each length, with its standard error, and what puts it in place.

A document tells every metric its length and whether the answer was right, because the harness gathers metrics from
several processes and wants the same names from each; a metric of one length passes over the other documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, partial
from statistics import fmean, stdev
from typing import Any

from statetrack.asking.metrics import falls_below
from statetrack.integrations.lm_eval.definitions import LENGTHS

Score = tuple[int, float]
"""A document's length, and 1.0 for a right answer, 0.0 for a wrong one."""

UNKNOWN = "N/A"  # the harness's word where there is no standard error
FALLS, UNANSWERED = "falls_below_half", "unanswered"


class NoSample(float):
    """-1, for a length without samples. It stays out of the harness's means over tasks, and its table has "-" for it.

    The harness divides sum(value * size) by sum(size). A missing value adds nothing to the first sum and remembers by
    how much the second is too large.

    >>> values = [0.5, NoSample(), 0.25]
    >>> sum([value * 1 for value in values]) / 3, sum([NoSample() * 1]) / 1
    (0.375, -1.0)
    """

    total: float
    missing: float

    def __new__(cls, total: float = 0.0, missing: float = 0.0) -> NoSample:
        value = super().__new__(cls, -1.0)
        value.total, value.missing = total, missing
        return value

    def __mul__(self, size: float) -> NoSample:
        return NoSample(0.0, size)

    def __add__(self, other: float) -> NoSample:
        if isinstance(other, NoSample):
            return NoSample(self.total + other.total, self.missing + other.missing)
        return NoSample(self.total + other, self.missing)

    __radd__ = __add__

    def __format__(self, how: str) -> str:
        return "-"

    def __truediv__(self, sizes: float) -> float:
        present = sizes - self.missing
        return self.total / present if present else NoSample()


@cache
def names(generates: bool, asked: tuple[int, ...] = LENGTHS) -> tuple[str, ...]:
    """All metrics of a task whose rows have these lengths.

    `5_stderr` comes after `5`: the harness writes "N/A" under that name first, and ours replaces it.
    """
    lengths = [name for length in asked for name in (str(length), f"{length}_stderr")]
    of_replies = ("violations", UNANSWERED) if generates else ()
    return ("acc", *lengths, "chance", "n_per_length", FALLS, "too_long", *of_replies)


@cache
def aggregations(generates: bool, asked: tuple[int, ...] = LENGTHS) -> dict[str, Callable[[list[Any]], Any]]:
    """How the values of all documents become one number, for every metric."""
    from lm_eval.api.metrics import mean  # the harness knows the standard error of its own mean alone

    functions: dict[str, Callable[[list[Any]], Any]] = {"acc": mean, "violations": mean}
    for length in asked:
        functions[str(length)] = partial(accuracy, length)
        functions[f"{length}_stderr"] = partial(standard_error, length)
    functions |= {"chance": lambda values: values[0], "n_per_length": least, FALLS: falls, "too_long": sum}
    functions |= {UNANSWERED: sum}
    return {name: functions[name] for name in names(generates, asked)}


def accuracy(length: int, scores: Sequence[Score]) -> float:
    """The share of right answers at a length.

    >>> accuracy(5, [(5, 1.0), (5, 0.0), (10, 0.0)]), accuracy(15, [(5, 1.0)])
    (0.5, -1.0)
    """
    own = [right for at, right in scores if at == length]
    return fmean(own) if own else NoSample()


def standard_error(length: int, scores: Sequence[Score]) -> float | str:
    """The standard error of that share, s / sqrt(n), as the harness computes it."""
    own = [right for at, right in scores if at == length]
    return stdev(own) / len(own) ** 0.5 if len(own) > 1 else UNKNOWN


def least(scores: Sequence[Score]) -> int:
    """The smallest number of samples behind the accuracy of a length that has any."""
    return min(Counter(length for length, _ in scores).values())


def falls(scores: Sequence[Score]) -> int:
    """The length from which on accuracy is below a half beyond chance (`falls_below`); -1 where there is none.

    >>> falls([(5, 1.0), (10, 0.0)] * 4), falls([(5, 1.0), (10, 0.0), (15, 1.0)])
    (10, -1)
    """
    length = falls_below(scores)
    return -1 if length is None else length
