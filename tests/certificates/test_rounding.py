"""Intervals hold what exact arithmetic gives: fractions for + - * / and products of matrices, mpmath for the rest."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from statetrack.certificates.checker.rounding import Interval, Refused, normal_table, tanh_table

NUMBERS = some.floats(-1e6, 1e6, allow_subnormal=False)
PAIRS = some.tuples(NUMBERS, NUMBERS).map(sorted)


def holds(found: Interval, exact: Fraction) -> bool:
    return Fraction(float(found.lo)) <= exact <= Fraction(float(found.hi))


@given(PAIRS, PAIRS, some.floats(0, 1), some.floats(0, 1))
def test_every_number_inside_gives_a_number_inside(one: list[float], other: list[float], a: float, b: float) -> None:
    x, y = (
        Fraction(low) + Fraction(at) * (Fraction(high) - Fraction(low)) for (low, high), at in ((one, a), (other, b))
    )
    left, right = (Interval(np.float64(low), np.float64(high)) for low, high in (one, other))
    assert holds(left + right, x + y)
    assert holds(left - right, x - y)
    assert holds(left * right, x * y)
    if other[0] > 0:
        assert holds(left / right, x / y)


@given(some.integers(1, 40), some.integers(0, 2**32 - 1), some.floats(0, 1e-3))
def test_products_of_matrices(size: int, seed: int, width: float) -> None:
    """Numbers of very different sizes, so that the sum cancels."""
    rng = np.random.default_rng(seed)
    a, b = (rng.normal(size=(2, size)) * 10.0 ** rng.integers(-8, 9, (2, size)) for _ in range(2))
    inside = [each + width * rng.uniform(-1, 1, each.shape) * (1 - 1e-9) for each in (a, b)]
    found = Interval(a - width, a + width) @ Interval(b - width, b + width).turned()
    for row in range(2):
        for column in range(2):
            exact = sum((Fraction(x) * Fraction(y) for x, y in zip(inside[0][row], inside[1][column])), Fraction(0))
            assert holds(found[row, column], exact)


@pytest.mark.parametrize("name", ["tanh", "gelu", "sigmoid", "sqrt"])
def test_functions_against_mpmath(name: str) -> None:
    rng = np.random.default_rng(0)
    grid = np.arange(-3000, 3001) / 1024 * 9
    x = np.concatenate(
        [rng.normal(size=3000) * 4, grid, [0.0, 20.0, 25.0, -30.0, 1e-12, -1e-9, -0.7518, 19.99999, 700.0]]
    )
    x = np.abs(x) if name == "sqrt" else x
    found = getattr(Interval.of(x), name)()
    exact = {
        "tanh": mpmath.tanh, "sqrt": mpmath.sqrt, "sigmoid": lambda v: 1 / (1 + mpmath.exp(-v)),
        "gelu": lambda v: v * mpmath.erfc(-v / mpmath.sqrt(2)) / 2,
    }[name]  # fmt: skip
    with mpmath.workdps(40):
        for value, low, high in zip(x.tolist(), found.lo.tolist(), found.hi.tolist()):
            assert mpmath.mpf(low) <= exact(mpmath.mpf(value)) <= mpmath.mpf(high), value
    assert (found.hi - found.lo <= 1e-6 * (1 + np.abs(x))).all()


def test_gelu_of_an_interval_knows_its_least_value() -> None:
    found = Interval(np.array([-2.0, -0.9, -5.0]), np.array([1.0, -0.6, -1.0])).gelu()
    for place, (low, high) in enumerate(((-2.0, 1.0), (-0.9, -0.6), (-5.0, -1.0))):
        values = [x * float(mpmath.erfc(-x / mpmath.sqrt(2))) / 2 for x in np.linspace(low, high, 500)]
        assert found.lo[place] <= min(values)
        assert max(values) <= found.hi[place]


def test_tables_rise() -> None:
    for table in (tanh_table(), normal_table()):
        assert (np.diff(table.values) >= 0).all()


def test_what_is_not_a_number_is_refused() -> None:
    with pytest.raises(Refused, match="not a number"):
        Interval.of(np.inf) - Interval.of(np.inf)
    with pytest.raises(Refused, match="divisor"):
        Interval.of(1.0) / Interval(np.float64(-1), np.float64(1))


@given(some.integers(0, 2**32 - 1))
def test_a_unit_covers_float32(seed: int) -> None:
    """What numpy computes in float32 lies inside, whatever the order of the sum."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(3, 50)).astype(np.float32), rng.normal(size=(50, 3)).astype(np.float32)
    found = (Interval.of(a, 2.0**-24) @ Interval.of(b, 2.0**-24)).tanh()
    assert found.contains(np.tanh(a @ b).astype(np.float64))
    backwards = np.zeros((3, 3), np.float32)
    for place in reversed(range(50)):
        backwards += np.outer(a[:, place], b[place])
    assert found.contains(np.tanh(backwards).astype(np.float64))
