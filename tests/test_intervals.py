"""Exact bounds of a rate, against tables, closed forms and a plain sum over the binomial distribution."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest

from statetrack.intervals import excluded_rate, rate_bounds


@pytest.mark.parametrize(
    ("count", "n", "low", "high"),
    [
        (5, 5, 0.549, 1.0),
        (7, 8, 0.529, 0.994),
        (9, 10, 0.606, 0.995),
        (0, 14, 0.0, 0.193),
        (0, 0, 0.0, 1.0),
        (0, 3, 0.0, 0.632),
        (3, 3, 0.368, 1.0),
        (1, 20, 0.003, 0.216),
    ],
)
def test_known_bounds(count: int, n: int, low: float, high: float) -> None:
    assert tuple(round(bound, 3) for bound in rate_bounds(count, n)) == (low, high)


@pytest.mark.parametrize(("count", "n"), [(1, 2), (3, 10), (8, 10), (13, 25), (40, 60), (59, 60)])
def test_at_its_bounds_a_rate_gives_what_was_seen_in_5_of_100(count: int, n: int) -> None:
    """By exact fractions."""
    low, high = (Fraction(bound) for bound in rate_bounds(count, n))

    def chance(p: Fraction, hits: range) -> float:
        return float(sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in hits))

    assert chance(low, range(count, n + 1)) == pytest.approx(0.05, rel=1e-9)
    assert chance(high, range(count + 1)) == pytest.approx(0.05, rel=1e-9)


@pytest.mark.parametrize("n", [1, 30, 1024, 10**6])
def test_none_wrong_is_the_rule_of_three(n: int) -> None:
    assert (1 - excluded_rate(n)) ** n == pytest.approx(0.05, rel=1e-9)
    assert excluded_rate(n) <= 3 / n


def test_each_wrong_row_weakens_what_is_excluded() -> None:
    bounds = [excluded_rate(1024, wrong) for wrong in range(5)]
    assert bounds == sorted(set(bounds))
    assert bounds[1] == pytest.approx(0.00462, abs=1e-5)  # about 4.74/n, from Poisson's table


def test_more_than_all_is_no_count() -> None:
    with pytest.raises(ValueError, match="6 of 5"):
        rate_bounds(6, 5)
