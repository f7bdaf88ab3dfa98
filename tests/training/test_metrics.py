"""The counts against plain loops, the intervals against known values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statetrack.training import metrics

ROWS = st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed))


def random_case(rng):
    shape = (int(rng.integers(1, 6)), int(rng.integers(1, 9)))
    return rng.random(shape) < 0.7, rng.random(shape) < 0.8, rng.integers(0, 2, shape)


@given(ROWS)
def test_crossings_agree_with_a_loop(rng):
    right, asked, targets = random_case(rng)
    at, pairs, n = 0, 0, 0
    for row in range(len(right)):
        for t in range(1, right.shape[1]):
            if targets[row, t] != targets[row, t - 1] and asked[row, t] and asked[row, t - 1]:
                n += 1
                at += right[row, t]
                pairs += right[row, t] and right[row, t - 1]
    found = metrics.crossings(right, asked, targets)
    assert found["crossings"] == n
    assert found["crossing_accuracy"] == (pytest.approx(at / n) if n else None)
    assert found["paired_crossing_accuracy"] == (pytest.approx(pairs / n) if n else None)


@given(ROWS)
def test_positions_and_whole_rows_agree_with_loops(rng):
    right, asked, _ = random_case(rng)
    for t, share in enumerate(metrics.by_position(right, asked)):
        counted = [bool(r) for r, a in zip(right[:, t], asked[:, t]) if a]
        assert share == (pytest.approx(np.mean(counted)) if counted else None)
    summary = metrics.summary(right, asked)
    whole = [all(r for r, a in zip(row, row_asked) if a) for row, row_asked in zip(right, asked)]
    assert summary["full_sequence_accuracy"] == pytest.approx(np.mean(whole))
    assert summary["n"] == asked.sum()
    low, high = summary["interval"]
    assert 0 <= low <= high <= 1


def test_wilson_at_known_points():
    # Newcombe 1998, table I: 81 of 263 and 0 of 20.
    assert metrics.wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert metrics.wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)


def test_the_interval_over_rows_is_wider_than_one_over_positions_would_be():
    right = np.repeat(np.arange(40)[:, None] % 4 != 0, 100, axis=1)  # whole rows right or wrong
    low, high = metrics.row_interval(right, np.ones_like(right))
    alone_low, alone_high = metrics.wilson(int(right.sum()), right.size)
    assert high - low > 5 * (alone_high - alone_low)
    assert low < 0.75 < high


def test_equal_rows_get_wilsons_interval():
    right = np.ones((30, 7), bool)
    assert metrics.row_interval(right, right) == metrics.wilson(30, 30)


def test_tail_and_skill():
    right = np.array([[0, 0, 0, 0, 0, 0, 1, 1]], bool)
    everywhere = np.ones_like(right)
    assert metrics.tail(right, everywhere) == 1.0
    assert metrics.tail(right, everywhere, 4) == 0.5
    assert metrics.skill([0.75, 1.0, 0.4, None], [0.5, 1.0, 0.5, 0.5]) == [0.5, None, pytest.approx(-0.2), None]
