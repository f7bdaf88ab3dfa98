"""The counts by hand."""

from __future__ import annotations

import numpy as np
import pytest

import statetrack as st
from statetrack.asking import Rules, Tokens, dialogue, estimate, results, summary
from statetrack.asking.metrics import by_position, falls_below, steps
from statetrack.results.records import EpisodeRecord


def record(outcomes: str, status: str = "wrong", changes: str = "") -> EpisodeRecord:
    right = len(outcomes) - len(outcomes.lstrip("+"))
    return EpisodeRecord(
        ended=status, max_length=right, asked=300, outcomes=outcomes, positions=list(range(1, len(outcomes) + 1)),
        changes=changes or "-" + "1" * (len(outcomes) - 1), replies=["?"] * len(outcomes),
        tokens=Tokens(sent=10, new=4, cached=6).to_dict(),
    )  # fmt: skip


def test_the_result_keys_by_hand() -> None:
    found = results([record("x"), record("+++f", "format"), record("++r", "refusal"), record("+" * 300, "done")])
    lengths = [0, 3, 2, 300]
    assert found == {
        "avg_max_length": 76.25, "stddev_max_length": pytest.approx(np.std(lengths)), "median_max_length": 2.5,
        "max_max_length": 300, "min_max_length": 0, "violation_rate": 0.5,
    }  # fmt: skip
    compat = results([record("x"), record("+" * 299 + "x"), record("+" * 300, "done")], compat=True)
    assert (compat["max_max_length"], compat["min_max_length"]) == (299, 0)
    assert compat["median_max_length"] == 299
    assert results([]) == {}


def test_steps_and_positions() -> None:
    records = [record("+x+", changes="-10"), record("++x", changes="-01")]
    assert steps(records)["change"] == {"accuracy": 0.0, "n": 2, "interval": pytest.approx([0, 0.658], abs=1e-3)}
    assert steps(records)["no_change"]["accuracy"] == 1.0
    assert [(each["accuracy"], each["n"]) for each in by_position(records)] == [(1.0, 2), (0.5, 2), (0.5, 2)]


def test_the_summary_says_how_episodes_ended_and_what_they_cost() -> None:
    found = summary([record("x"), record("+", "server")])
    assert found["ended"] == {"done": 0, "wrong": 1, "format": 0, "refusal": 0, "context": 0, "limit": 0, "server": 1,
                              "truncated": 0, "time": 0}  # fmt: skip
    assert found["tokens"]["sent"] == 20
    assert (found["episodes"], found["failed"], found["accuracy"]["n"]) == (1, 1, 1)
    assert summary([]) == {"episodes": 0}


@pytest.mark.parametrize("fault", ["server", "context", "truncated", "time", "running"])
def test_what_a_server_failed_is_in_no_mean(fault: str) -> None:
    """Neither with the turns that it answered nor with none; for survival it counts as long as it was seen."""
    good = [record("+++x"), record("+x")]
    with_failures = [*good, record("", fault), record("++++++", fault)]
    assert results(with_failures) == results(good)
    one, two = summary(good), summary(with_failures)
    changed = {name for name in one if one[name] != two[name]}
    assert changed - {"ended"} == {"failed", "tokens", "survival", "half_failed_by"}
    assert two["half_failed_by"]["turn"] == 4
    assert results([record("", fault)]) == {}
    assert summary([record("", fault)]) == {"episodes": 0, "failed": 1}


def test_where_accuracy_falls_below_a_half() -> None:
    assert falls_below([(15, 0), (5, 1), (10, 0)] * 10) == 10
    assert falls_below([(5, 0), (5, 1)]) is None
    assert falls_below([]) is None


@pytest.mark.parametrize("level", [0.7, 0.55])
def test_an_accuracy_that_does_not_fall_is_not_said_to(level: float) -> None:
    """100 lengths of 20 rows at one accuracy: the first length below a half, which counted before, is chance."""
    draws, lengths = np.random.default_rng(0), range(5, 505, 5)
    runs = [[(n, int(right)) for n in lengths for right in draws.random(20) < level] for _ in range(200)]
    by_first = [any(sum(right for at, right in run if at == n) < 10 for n in lengths) for run in runs[:40]]
    assert np.mean(by_first) > 0.7
    assert np.mean([falls_below(run) is not None for run in runs]) < 0.02 + (level < 0.6) * 0.1


def test_an_accuracy_that_falls_is_found_near_where_it_does() -> None:
    """From 1 down to 0 over 500 steps: a half is at 250."""
    draws, lengths = np.random.default_rng(0), range(5, 505, 5)
    found = [falls_below([(n, int(right)) for n in lengths for right in draws.random(20) < 1 - n / 500])
             for _ in range(50)]  # fmt: skip
    assert None not in found
    assert np.mean(found) == pytest.approx(250, abs=15)


def test_the_interval_of_an_accuracy_is_over_episodes() -> None:
    """One of ten episodes is wrong throughout: 300 answers are worth no more than ten."""
    found = summary([record("+" * 30)] * 9 + [record("x" * 30)])["accuracy"]
    assert (found["accuracy"], found["n"]) == (0.9, 300)
    assert found["interval"][0] < 0.6
    assert summary([record("+" * 60)])["accuracy"]["interval"][1] == 1


@pytest.mark.parametrize(("variant", "sent"), [("median", 803_000), ("mode", 756_000)])
def test_the_estimate_is_near_what_the_original_sends(variant: str, sent: int) -> None:
    """The original's prompt is another one; a fifth either way is what an estimate before a run is good for."""
    cost = estimate([dialogue(st.task(f"track_the_stat.{variant}"), Rules(), 0)])
    assert cost.sent == pytest.approx(sent, rel=0.2)
    assert cost.sent == cost.new + cost.cached
    assert cost.new < 3_500
    shown = estimate([dialogue(st.task(f"track_the_stat.{variant}"), Rules(), 0)], state=True)
    assert shown.new > 10 * cost.new
