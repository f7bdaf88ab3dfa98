"""The survival curve against a published example, and the turn by which half have failed against its definition."""

from __future__ import annotations

import math
import random

import pytest

from statetrack.asking.survival import HalfFailed, half_failed, half_time, kaplan_meier, survival
from tests.asking.test_metrics import record

TRIAL = [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35]
RELAPSED = [True] * 3 + [False, True, False, True, False, False, True, True] + [False] * 3 + [True] * 2 + [False] * 5


def test_the_freireich_trial() -> None:
    """6-MP arm of Freireich et al. 1963, the standard worked example: S at 6, 7, 10, 13, 16, 22, 23 weeks."""
    curve = kaplan_meier(TRIAL, RELAPSED)
    assert [point["time"] for point in curve] == [6, 7, 10, 13, 16, 22, 23]
    shares = [0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448]
    assert [round(point["share"], 3) for point in curve] == shares
    assert (curve[0]["low"], curve[0]["high"]) == pytest.approx((0.620, 0.952), abs=5e-4)
    half = half_time(TRIAL, RELAPSED)
    assert (half.turn, half.high) == (23, None)  # in the trial, too, the upper end was not reached
    assert 10 <= half.low <= 16  # 13 or 16 by the usual scales of the interval


def test_without_censoring_survival_is_the_share_left() -> None:
    chance = random.Random(1)
    lengths = [chance.randint(0, 20) for _ in range(50)]
    curve = survival([record("+" * n + "x") for n in lengths])
    for point in curve:
        assert point["share"] == pytest.approx(sum(n + 1 > point["time"] for n in lengths) / 50)
        assert point["low"] <= point["share"] <= point["high"]


def test_an_interruption_is_censored() -> None:
    curve = survival([record("++x"), record("+", "server"), record("+++++", "limit"), record("+++", "done")])
    assert [(point["time"], point["at_risk"]) for point in curve] == [(3, 3)]
    assert curve[0]["share"] == pytest.approx(2 / 3)


def test_half_is_the_median_where_all_were_seen_to_fail() -> None:
    """Twenty one by one: ten have failed by turn 10, and the interval is that of the order statistics, 6 to 15."""
    assert half_failed([record("+" * n + "x") for n in range(20)]) == HalfFailed(10, 6, 15, 20)
    assert half_failed([record("+" * 300, "done")] * 20) == HalfFailed(None, None, None, 300)
    assert half_failed([]) == half_failed([record("", "server")]) == HalfFailed(None, None, None, 0)


def test_few_episodes_say_little() -> None:
    assert half_failed([record("++++x")]) == HalfFailed(5, 1, None, 5)
    assert half_failed([record("++++x")] * 20) == HalfFailed(5, 5, 5, 5)
    assert half_failed([record("++++x")] * 20, samples=1) == HalfFailed(5, 1, None, 5)  # one sample, twenty times


def test_an_interval_that_ends_beyond_the_turns_seen_is_said_in_words() -> None:
    assert (half_failed([record("x")]).text, half_failed([record("x")]).between) == ("1", "1, or not within 1 turn")
    assert half_failed([record("++++x")]).between == "1 to 5, or not within 5 turns"
    assert half_failed([record("++++x")] * 20).between == "5 to 5"
    assert half_failed([record("+" * 300, "done")] * 20).text == "not within 300 turns"


@pytest.mark.parametrize(("count", "cut"), [(10, False), (20, True), (50, True)])
def test_the_interval_covers_what_it_should(count: int, cut: bool) -> None:
    """Failures at a constant rate, some episodes cut off at a random turn: 95 % of the intervals hold the median."""
    chance, rate, held = random.Random(count), 0.05, 0
    true = math.ceil(math.log(0.5) / math.log(1 - rate))
    for _ in range(400):
        lasts = [1 + int(math.log(chance.random()) / math.log(1 - rate)) for _ in range(count)]
        ends = [chance.randint(1, 3 * true) if cut else 10**6 for _ in range(count)]
        found = half_time([min(pair) for pair in zip(lasts, ends)], [own <= end for own, end in zip(lasts, ends)])
        held += found.low is not None and found.low <= true and (found.high is None or true <= found.high)
    assert 0.93 <= held / 400 <= 0.995
