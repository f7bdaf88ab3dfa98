"""How sure a measured share is."""

from __future__ import annotations

import math

Z95 = 1.959963984540054
ONE_SIDE = 0.05  # the chance that an exact bound leaves


def wilson(right: float, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of the share right / n.

    `right` may be a sum of n independent numbers in [0, 1]: the interval is then on the safe side, since no such number
    varies more than a coin does.

    >>> tuple(round(bound, 4) for bound in wilson(9, 10))
    (0.5958, 0.9821)
    """
    if n == 0:
        return 0.0, 1.0
    share, z2 = right / n, Z95 * Z95
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, centre - half), min(1.0, centre + half)


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
