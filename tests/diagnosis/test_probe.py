"""Probes on states that hold the answer exactly, or not at all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statetrack.diagnosis.probe import Ridge, guessed, r_squared, told


def data(seed: int, rows: int = 120, numbers: int = 10) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, numbers))


@given(st.integers(0, 10_000), st.sampled_from([3, 40, 200]))
def test_a_state_that_holds_the_count_is_read_exactly(seed: int, numbers: int) -> None:
    """Also with more numbers in the state than rows to fit on, where only the plain directions are found."""
    draws = np.random.default_rng(seed)
    count, count_test = draws.integers(0, 30, 100).astype(float), draws.integers(0, 30, 100).astype(float)
    direction = draws.normal(size=numbers)
    x, x_test = np.outer(count, direction), np.outer(count_test, direction)
    assert r_squared(Ridge(x), count, x_test, count_test) > 0.999


def test_a_state_that_holds_nothing_explains_nothing() -> None:
    y, y_test = (np.random.default_rng(seed).integers(0, 9, 120).astype(float) for seed in (8, 9))
    assert r_squared(Ridge(data(0)), y, data(1), y_test) < 0.1


@pytest.mark.parametrize("classes", [2, 5])
def test_classes_that_are_apart_are_told_and_others_guessed(classes: int) -> None:
    draws = np.random.default_rng(1)
    y, y_test = draws.integers(0, classes, 200), draws.integers(0, classes, 200)
    apart, apart_test = (np.eye(classes)[each] + 0.05 * draws.normal(size=(200, classes)) for each in (y, y_test))
    assert told(Ridge(apart), y, apart_test, y_test) == 1.0
    noise, noise_test = draws.normal(size=(200, 20)), draws.normal(size=(200, 20))
    assert abs(told(Ridge(noise), y, noise_test, y_test) - 1 / classes) < 0.12


def test_parity_of_bits_is_not_linear_in_them() -> None:
    """A state that holds the last ten bits: each bit is read, their parity is not."""
    draws = np.random.default_rng(2)
    bits, bits_test = draws.integers(0, 2, (400, 10)), draws.integers(0, 2, (400, 10))
    ridge = Ridge(bits.astype(float))
    assert told(ridge, bits[:, 3], bits_test.astype(float), bits_test[:, 3]) == 1.0
    assert told(ridge, bits.sum(1) % 2, bits_test.astype(float), bits_test.sum(1) % 2) < 0.6


def test_the_strength_is_that_of_the_least_error_when_left_out() -> None:
    """The closed form, against fitting without each row in turn."""
    from statetrack.diagnosis.probe import STRENGTHS

    x, y = data(5, 20, 4), np.random.default_rng(6).normal(size=(20, 1))
    x /= x.std(0)
    s2 = np.linalg.svd(x - x.mean(0), compute_uv=False) ** 2

    def fitted(x: np.ndarray, y: np.ndarray, b: float) -> np.ndarray:
        centred = x - x.mean(0)
        return np.linalg.solve(centred.T @ centred + b * np.eye(x.shape[1]), centred.T @ (y - y.mean(0)))

    def left_out(b: float) -> float:
        """One row at a time; the centre is that of all rows, as in the closed form's first part."""
        total = 0.0
        for i in range(len(x)):
            rest = np.arange(len(x)) != i
            w = fitted(x[rest], y[rest], b)
            total += ((y[i] - y[rest].mean(0) - (x[i] - x[rest].mean(0)) @ w) ** 2).sum()
        return total

    best = min(STRENGTHS * s2.mean(), key=left_out)
    expected = y.mean(0) + (x - x.mean(0)) @ fitted(x, y, best)
    np.testing.assert_allclose(Ridge(x).fit(y)(x), expected, atol=1e-8)


def test_chance_is_the_most_frequent_class_of_the_rows_fitted_on() -> None:
    assert guessed(np.array([0, 0, 1]), np.array([1, 1, 0, 1])) == 0.25
