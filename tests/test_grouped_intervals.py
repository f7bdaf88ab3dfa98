"""Intervals against simulations whose truth is known: how often they hold it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from statetrack.formatting import fixed
from statetrack.intervals import grouped_wilson, places_above, t95, wilson

Groups = tuple[np.ndarray, np.ndarray]


@pytest.mark.parametrize("n", [1, 7, 60, 263, 1000, 123_457])
def test_all_right_or_none_are_exactly_one_and_nothing(n: int) -> None:
    assert wilson(n, n)[1] == 1.0
    assert wilson(0, n)[0] == 0.0
    assert fixed(wilson(n, n)[1]) == "1.000"
    assert grouped_wilson([n, n], [n, n])[1] == 1.0


def coverage(make: Callable[[], Groups], truth: float, runs: int = 400) -> tuple[float, float]:
    """How often the grouped interval holds the truth, and how often Wilson's over all answers does."""
    held = np.zeros(2)
    for _ in range(runs):
        right, counts = make()
        for i, (low, high) in enumerate((grouped_wilson(right, counts), wilson(right.sum(), counts.sum()))):
            held[i] += low <= truth <= high
    return held[0] / runs, held[1] / runs


@pytest.mark.parametrize("groups", [8, 20, 60])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.97])
@pytest.mark.parametrize("alike", [0.05, 0.3, 0.8])
def test_answers_of_one_episode_are_alike(groups: int, share: float, alike: float) -> None:
    """Each episode has an accuracy of its own (beta); `alike` is the correlation of two answers of one episode."""
    draws = np.random.default_rng(0)
    a, b = share * (1 / alike - 1), (1 - share) * (1 / alike - 1)

    def make() -> Groups:
        return draws.binomial(30, draws.beta(a, b, groups)), np.full(groups, 30)

    grouped, over_answers = coverage(make, share)
    assert grouped >= 0.91  # .95, less 4 deviations of 400 runs
    assert over_answers < 0.88


@pytest.mark.parametrize("groups", [8, 60])
def test_episodes_that_end_at_their_first_error(groups: int) -> None:
    """Lengths differ, and each holds one error at most: a ratio of two sums."""
    draws = np.random.default_rng(1)

    def make() -> Groups:
        asked = draws.geometric(0.1, groups)
        return np.where(asked <= 30, asked - 1, 30), np.minimum(asked, 30)

    asked = draws.geometric(0.1, 200_000)
    truth = np.where(asked <= 30, asked - 1, 30).sum() / np.minimum(asked, 30).sum()
    assert coverage(make, truth)[0] >= 0.91


def test_groups_of_one_answer_are_independent() -> None:
    assert grouped_wilson([1, 0, 1, 1], [1, 1, 1, 1]) == wilson(3, 4)
    assert grouped_wilson([3, 0], [4, 0]) == wilson(0.75, 1)
    assert grouped_wilson([], []) == (0.0, 1.0)


def test_the_quantile_of_t() -> None:
    assert [t95(v) for v in (3, 5, 19, 1000)] == pytest.approx([3.182, 2.571, 2.093, 1.962], abs=4e-3)


def test_the_cut_of_a_falling_curve_is_that_of_isotonic_regression() -> None:
    """Against the largest share of any cut, tried one by one: the fitted curve before it is at least the level."""

    def isotonic(values: np.ndarray) -> np.ndarray:
        """The falling curve nearest in squares: at i, the least over j <= i of the largest mean of values[j..k]."""
        n = len(values)
        return np.array([
            min(max(values[j : k + 1].mean() for k in range(i, n)) for j in range(i + 1)) for i in range(n)
        ])  # fmt: skip

    draws = np.random.default_rng(0)
    for _ in range(50):
        right = draws.binomial(7, np.linspace(1, 0, 12))
        fitted = isotonic(right / 7)
        assert places_above(right, [7] * 12, 0.51) == int((fitted >= 0.51).sum())
