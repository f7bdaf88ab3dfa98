"""Measured lengths of failure on networks and rows whose true ones are known in closed form."""

from __future__ import annotations

import numpy as np
import pytest

import statetrack as st
from benchmarks.failure_lengths import KINDS, Kind, held
from statetrack.diagnosis.failure_length import Curve, last_above, passes_below
from tests.diagnosis.fading import Fading


@pytest.mark.parametrize(("gain", "bias"), [(0.99, 0.05), (0.995, 0.2), (0.98, 0.008)])
def test_a_network_that_fails_at_once_fails_where_it_does(gain: float, bias: float) -> None:
    """The state is read right until gain^t = bias, and half of it wrong from the next step on."""
    true = int(np.log(bias) / np.log(gain))
    found = st.diagnose("txc", Fading(gain, 0.0, bias=bias), trained=64, length=1024, stream=2048)["error"]
    for level in ("at_90", "at_half"):
        measured = found["measured"][level]
        assert measured["length"] == pytest.approx(true, abs=1)
        assert measured["low"] - 1 <= true <= measured["high"] + 1


@pytest.mark.parametrize(("gain", "noise"), [(0.99, 0.3), (0.995, 0.2)])
def test_a_network_that_fades_into_noise_fails_where_it_does(gain: float, noise: float) -> None:
    true = np.log(0.8 * noise) / np.log(gain)
    found = st.diagnose("txc", Fading(gain, noise), trained=64, length=1024, stream=2048)["error"]["measured"]["at_90"]
    assert found["length"] == pytest.approx(true, rel=0.04)
    assert found["low"] <= true <= found["high"] < 1.2 * found["low"]


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
@pytest.mark.parametrize("rows", [36, 200])
def test_intervals_hold_the_truth_19_times_of_20(kind: Kind, rows: int) -> None:
    found = held(kind, rows, runs=60, seed=0)
    assert found.coverage >= 0.88  # .95, less 2.5 deviations of 60 runs
    assert found.middle == pytest.approx(1.0, abs=0.02 if kind.sharp else 0.3)


def test_no_fall_and_nothing_but_one() -> None:
    right = np.ones((40, 64), bool)
    asked = np.ones_like(right)
    assert passes_below(right, asked, 0.9) == {"length": None, "low": None, "high": None, "beyond": 64}
    assert passes_below(~right, asked, 0.9)["length"] == 1
    assert passes_below(right, ~asked, 0.9)["beyond"] == 64
    assert passes_below(right[:8], asked[:8], 0.9)["low"] == 1  # eight rows are not surely above


def test_only_positions_that_are_asked_for_count() -> None:
    right = np.ones((50, 100), bool)
    right[:, 30:] = False
    asked = np.arange(100) % 2 == 1  # positions 2, 4, ...
    found = passes_below(right, np.broadcast_to(asked, right.shape), 0.9)
    assert (found["length"], found["low"], found["high"]) == (30, 30, 30)


def test_a_level_may_change_with_the_position() -> None:
    right = np.arange(400)[:, None] % 10 < np.where(np.arange(200) < 100, 10, 8)  # from 1 to .8 after 100
    asked = np.ones_like(right)
    assert passes_below(right, asked, 0.75)["length"] is None
    assert passes_below(right, asked, np.linspace(0.5, 0.95, 200))["length"] == pytest.approx(133, abs=2)


def test_a_dip_that_is_made_good_is_no_fall_and_one_that_lasts_is() -> None:
    dip = np.array([0.1] * 20 + [-0.1] * 5 + [0.1] * 75)
    assert last_above(np.concatenate([[0], np.cumsum(dip)])) == 100
    lasting = np.array([0.1] * 20 + [-0.4] * 30 + [0.1] * 400)
    assert last_above(np.concatenate([[0], np.cumsum(lasting)])) == 20


def test_the_figure_shows_windows() -> None:
    right = np.zeros((10, 100), bool)
    right[:, :50] = True
    curve = Curve.of(right, np.ones_like(right))
    accuracy = dict(zip(curve.position.tolist(), curve.accuracy().tolist()))
    assert accuracy[1] == 1
    assert accuracy[100] == 0
    assert all(low <= share <= high for (low, high), share in zip(curve.intervals(), curve.accuracy()))
