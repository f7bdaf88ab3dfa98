"""How sure a measured share is, and where a share that only falls passes below a level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]

Z95 = 1.959963984540054
FEW = 5  # groups
ONE_SIDE = 0.05  # the chance that an exact bound leaves


def wilson(right: float, n: float) -> tuple[float, float]:
    """Wilson's 95 % interval of the share right / n.

    `right` may be a sum of n independent numbers in [0, 1]: the interval is then on the safe side, since no such number
    varies more than a coin does.

    >>> tuple(round(bound, 4) for bound in wilson(9, 10))
    (0.5958, 0.9821)
    >>> wilson(60, 60)[1], wilson(0, 60)[0]
    (1.0, 0.0)
    """
    if n == 0:
        return 0.0, 1.0
    share, z2 = right / n, Z95 * Z95
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    low = 0.0 if right == 0 else max(0.0, centre - half)  # exactly, where rounding would leave a rest
    return low, 1.0 if right == n else min(1.0, centre + half)


def grouped_wilson(right: Sequence[float], counts: Sequence[float]) -> tuple[float, float]:
    """Wilson's 95 % interval of sum(right) / sum(counts), where the answers of one group depend on each other.

    A group is an episode, or a row. The variance of the ratio over groups says how many independent answers these are
    worth; that many, fewer by (z / t)^2 for few groups (Korn and Graubard 1998), are put to Wilson. Where fewer than
    FEW groups hold an error, or a right answer, that variance is not to be trusted, and a group counts as one answer
    at most.

    >>> [round(bound, 2) for bound in grouped_wilson([30, 0, 30, 30], [30, 30, 30, 30])]  # 4 answers or fewer, not 120
    [0.13, 0.98]
    >>> grouped_wilson([9, 4], [9, 4]) == wilson(2, 2)
    True
    """
    hits, sizes = np.asarray(right, float), np.asarray(counts, float)
    answers = float(worth(hits, sizes))
    return wilson(float(hits.sum() / max(sizes.sum(), 1)) * answers, answers)


def worth(right: Floats, counts: Floats) -> Floats:
    """How many independent answers those of groups (the first axis) are worth; see `grouped_wilson`.

    >>> worth(np.array([30.0, 0, 30, 30]), np.array([30.0, 30, 30, 30])).round(2)
    np.float64(1.14)
    """
    total, groups = counts.sum(0), (counts > 0).sum(0)
    share = right.sum(0) / np.maximum(total, 1)
    telling = np.minimum(((right > 0) & (counts > 0)).sum(0), (right < counts).sum(0))
    most = np.where((telling < FEW) | (total == groups), groups, total).astype(float)
    squares = ((right - share * counts) ** 2).sum(0)
    variance = groups / np.maximum(groups - 1, 1) * squares / np.maximum(total, 1) ** 2
    found = share * (1 - share) / np.maximum(variance, 1e-15) * (Z95 / t95(np.maximum(groups - 1, 1))) ** 2
    return np.where((squares > 1e-12) & (total > groups), np.minimum(found, most), most)


def t95(freedom: Any) -> Any:
    """The .975 quantile of Student's t, by Hill's expansion around the normal (within .002 from 3 degrees on).

    >>> [round(t95(freedom), 2) for freedom in (4, 10, 30)]
    [2.78, 2.23, 2.04]
    """
    z, v = Z95, freedom
    return (
        z + (z**3 + z) / (4 * v) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * v**4)
    )  # fmt: skip


def places_above(right: Sequence[float], counts: Sequence[float], level: float) -> int:
    """How many of the first places have a share of at least `level`, if the share can only fall from place to place.

    This is the least squares answer (isotonic regression): the cut before which there are most right answers beyond
    those that the level allows for. A single place below the level, made good by those after it, is chance.

    >>> places_above([10, 9, 4, 10, 2, 1], [10] * 6, 0.5)
    4
    """
    excess = np.cumsum(np.asarray(right, float) - level * np.asarray(counts, float))
    return int(np.concatenate([[0.0], excess]).argmax())


def rate_bounds(count: int, n: int) -> tuple[float, float]:
    """What `count` of n excludes of a rate: Clopper and Pearson's exact bounds, each with 95 % on its own side.

    A rate at or below the lower bound would give so many or more in at most 5 % of the cases, one at or above the upper
    bound so many or fewer.

    >>> tuple(round(bound, 3) for bound in rate_bounds(5, 5)), round(rate_bounds(0, 14)[1], 3)
    ((0.549, 1.0), 0.193)
    """
    high = _upper(count, n)
    return 1 - _upper(n - count, n), high


def excluded_rate(n: int, wrong: int = 0) -> float:
    """The rate of wrong ones above which n independent tries with so few `wrong` are unlikely (5 %). With none wrong it
    is 1 - .05^(1/n), about 3/n: "right on n rows" excludes that more than this share of all rows is wrong.

    >>> f"{excluded_rate(1024):.5f}", f"{3 / 1024:.5f}", excluded_rate(0)
    ('0.00292', '0.00293', 1.0)
    """
    return _upper(wrong, n)


def _upper(count: int, n: int) -> float:
    """The p at which n tries with chance p give at most `count` hits in 5 % of the cases, by halving an interval."""
    if not 0 <= count <= n:
        raise ValueError(f"{count} of {n} is not a share")
    if count == n:
        return 1.0
    if count == 0:
        return -math.expm1(math.log(ONE_SIDE) / n)
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _at_most(count, n, middle) > ONE_SIDE else (low, middle)
    return high


def _at_most(count: int, n: int, p: float) -> float:
    """The chance of at most `count` hits in n tries: the shorter of the two tails is summed."""
    if count > n // 2:
        return 1 - _at_most(n - count - 1, n, 1 - p)
    ways = math.lgamma(n + 1)
    return math.fsum(
        math.exp(
            ways - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(p) + (n - k) * math.log1p(-p)
        )
        for k in range(count + 1)
    )  # fmt: skip
