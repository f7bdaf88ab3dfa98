"""Probes with samples enough, on states that hold the truth among thousands of numbers, hide it, or lack it."""

from __future__ import annotations

import numpy as np
import pytest

import statetrack as st
from statetrack.diagnosis.decoding import Samples, decode, leading, linear, nonlinear, planted, telling_pairs
from statetrack.diagnosis.true_states import TrueStates
from tests.diagnosis.wide import Wide

PARITY = TrueStates.of(st.task("txc"))


def independent(numbers: int, classes: int, count: int = 512, seed: int = 0) -> Samples:
    """States of independent numbers that tell nothing."""
    draws = np.random.default_rng(seed)
    x = [draws.normal(size=(count, numbers)) for _ in range(3)]
    y = [draws.integers(0, classes, count) for _ in range(3)]
    return Samples((x[0], x[1], x[2]), (y[0], y[1], y[2]))


def test_parity_as_one_number_beside_4_000_others_is_found() -> None:
    """Sketched to 1,024 numbers and fitted on 256 samples, as by position, it is found at .6 to .75."""
    found = st.diagnose("txc", Wide(4000), trained=64, length=64, stream=64)
    assert found["probe"]["decoding"]["linear"] > 0.99
    assert np.mean(found["probe"]["state"]["score"][-8:]) < 0.8
    assert found["conclusion"] == "not read out"
    assert found["sentences"][0].startswith("Parity is in the state, yet the network does not read it out: a linear")


def test_parity_as_a_product_of_two_numbers_is_found_by_the_nonlinear_probe_alone() -> None:
    found = st.diagnose("txc", Wide(100, product=True), trained=64, length=64, stream=64)
    assert found["probe"]["decoding"]["linear"] < 0.6
    assert found["probe"]["decoding"]["nonlinear"] > 0.99
    assert found["conclusion"] == "not read out"
    assert "though not linearly" in found["sentences"][0]


def test_parity_that_is_not_there_is_not_found_and_it_is_said_what_would_have_been() -> None:
    found = st.diagnose("txc", Wide(100, held=False), trained=64, length=64, stream=64)
    part = found["probe"]["decoding"]
    assert max(part["linear"], part["nonlinear"]) < 0.6
    assert part["planted"]["number"] > 0.99
    assert part["planted"]["product"] > 0.99
    assert found["conclusion"] == "not decodable"
    assert found["sentences"][0].startswith("Parity is not decodable by these probes: a linear probe finds it at 0.")
    assert found["sentences"][1].startswith("Planted in these states (103 numbers, ")


def test_a_state_that_never_changes_has_nothing_to_decode() -> None:
    class Constant(Wide):
        def forward_from(self, ids, state):
            logits, _ = super().forward_from(ids, state)
            return logits, state

    found = decode(PARITY, Constant(4), 16, 7, 0)
    assert (found["linear"], found["planted"]) == (found["chance"], {})


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("numbers", [20, 600])
def test_what_is_planted_is_found_and_nothing_else_is(numbers: int, classes: int) -> None:
    samples = independent(numbers, classes)
    chance = 1 / classes
    assert abs(linear(samples) - chance) < 0.1
    assert abs(nonlinear(samples) - chance) < 0.1
    found = planted(samples, 0)
    assert linear(found["number"]) > 0.99
    assert nonlinear(found["product"]) > 0.9
    assert linear(found["product"]) < chance + 0.1


def test_a_direction_among_independent_numbers_is_as_hard_to_find_as_it_should_be() -> None:
    """The planted code is +-1 against noise of spread 1: no probe is right more often than Phi(1) = .84."""
    few, many = (linear(planted(independent(numbers, 2, 1536), 0)["direction"]) for numbers in (20, 6000))
    assert few == pytest.approx(0.84, abs=0.04)
    assert many < 0.72


def test_leading_directions_are_those_of_the_singular_values() -> None:
    draws = np.random.default_rng(0)
    x = draws.normal(size=(200, 30)) * np.linspace(10, 0.1, 30)
    axes = leading(x)
    vt = np.linalg.svd(x, full_matrices=False)[2]
    angles = np.linalg.svd(np.linalg.qr(axes)[0].T @ vt[:4].T, compute_uv=False)
    assert angles.min() > 0.99
    assert (x @ axes).std(0) == pytest.approx(np.ones(axes.shape[1]))


def test_pairs_are_those_whose_product_tells() -> None:
    samples = independent(50, 2)
    hidden = planted(samples, 1)["product"]
    one, two = telling_pairs(hidden)
    assert (50, 51) in set(zip(one.tolist(), two.tolist()))
