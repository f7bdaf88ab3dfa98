"""Separation and what it predicts, on states and models whose fate is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import statetrack as st
from statetrack.diagnosis import sentences
from statetrack.diagnosis.failure_length import crossing, first_errors, step_rate
from statetrack.diagnosis.forecast import slip_rate
from statetrack.diagnosis.state_distances import Apart, Groups
from statetrack.models import State
from tests.diagnosis.fading import Fading


def synthetic(rate: float, noise: float, stops: list[int], rows: int = 400, numbers: int = 12) -> Apart:
    """Two true states at +-exp(-rate t) along a direction, with noise around them."""
    draws = np.random.default_rng(0)
    direction = draws.normal(size=numbers)
    direction /= np.linalg.norm(direction)
    halves = []
    for stop in stops:
        parts = []
        for _ in range(2):
            truth, last = draws.integers(0, 2, rows), draws.integers(0, 2, rows)
            x = np.outer((2 * truth - 1) * np.exp(-rate * stop), direction) + noise * draws.normal(size=(rows, numbers))
            x += 5.0 * last[:, None]  # what the last input does is not separation
            parts += [x, Groups.of(truth, last, 2, 2)]
        halves.append(tuple(parts))
    return Apart.between(np.array(stops), halves)


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.05])
def test_the_rate_of_states_that_fade_by_a_known_rate(rate: float) -> None:
    apart = synthetic(rate, 0.02, list(range(8, 65, 4)))
    fade = apart.fade(8, 64)
    assert fade is not None
    assert fade.rate == pytest.approx(rate, abs=5e-4)
    assert abs(fade.rate - rate) < 1.5 * (fade.high - fade.low)
    np.testing.assert_allclose(apart.distance, np.exp(-rate * apart.stops), rtol=0.05)
    np.testing.assert_allclose(apart.spread, 0.02, rtol=0.2)


def test_states_that_are_not_apart_have_no_distance() -> None:
    """Chance alone puts means apart; their product over two halves does not add up."""
    apart = synthetic(50.0, 1.0, [10, 20, 30, 40])
    assert (apart.distance < 0.2).all()
    assert (apart.separation < 0.2).all()


def test_the_predicted_length_of_a_model_that_fades_by_a_known_rate() -> None:
    """a_t = .99^t against noise that keeps its size: what is measured at 64 says where it fails."""
    found = st.diagnose("txc", Fading(0.99, 0.3), trained=64, length=1024, stream=1024)
    part, error = found["separation"], found["error"]
    assert part["per_step"] == pytest.approx(0.99, abs=2e-4)
    assert part["healed"] == pytest.approx(0.5, abs=0.02)
    assert found["conclusion"] == "fades"
    for level in ("at_90", "at_half"):
        assert error["measured"][level]["length"] > 100
        assert error["ratio"][level] == pytest.approx(1.0, abs=0.15)


def test_a_model_that_corrects_itself_stays_apart() -> None:
    found = st.diagnose("txc", Fading(0.99, 0.05, heal=True), trained=64, length=256, stream=512)
    assert found["separation"]["healed"] > 0.95
    assert found["separation"]["predicted"]["at_90"]["length"] is None
    assert found["conclusion"] == "stays apart"
    assert found["sentences"][0].startswith("States stay apart")


@pytest.mark.parametrize("gain", [0.9, 0.99])
def test_a_state_that_shrinks_and_is_read_does_not_stay_apart(gain: float) -> None:
    """Nothing disturbs the reading of a sign: .9^t is 1e-45 at the end, where float32 rounds it back to itself."""
    found = st.diagnose("txc", Fading(gain, 0.0), trained=64, length=1024, stream=2048)
    assert (found["conclusion"], found["mechanism"]) == ("shrinks but is read", "shrinks but is read")
    assert found["error"]["measured"]["at_90"]["length"] is None
    assert found["separation"]["shrunk"] == pytest.approx(max(gain**1024, 1e-44), rel=0.5)
    assert found["probe"]["state"]["gap"][-1] == pytest.approx(2 * max(gain**1024, 5e-45), rel=0.5)
    assert found["sentences"][0].startswith("It shrinks and is still read: the distance between true states is")
    assert "corrects itself" not in " ".join(found["sentences"])


def test_a_state_that_shrinks_below_what_else_it_holds_fades() -> None:
    """.9^t is under the chance of means (1/20) long before it is read wrong, at 89: only the probe's gap shows it."""
    found = st.diagnose("txc", Fading(0.9, 1e-4), trained=64, length=1024, stream=1024)
    assert (found["conclusion"], found["mechanism"]) == ("fades", "fades")
    assert found["error"]["measured"]["at_90"]["length"] == pytest.approx(89, abs=3)


@pytest.mark.parametrize("task", ["txc", "fsm", "dyck"])
def test_logits_that_do_not_depend_on_the_state_are_said_to(task: str) -> None:
    class Blind(Fading):
        def forward_from(self, ids: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
            _, after = super().forward_from((ids > 0).long(), state)
            return torch.eye(max(self.inputs, self.outputs))[ids][..., : self.outputs] * self.first, after

    made = st.task(task)
    model = Blind(0.99, 0.0)
    model.inputs, model.outputs = made.inputs, made.outputs
    found = st.diagnose(made, model, trained=16, length=64, stream=128)
    assert (found["conclusion"], found["mechanism"]) == ("no state is read", "no state is read")
    assert found["sentences"][0].startswith("No state is read: logits are the same whatever the state")
    assert found["gradient"] == {"absent": "no logit depends on the state"}


def test_a_state_that_grows_out_of_all_bounds() -> None:
    """a_t = 3^t is infinite after 80 steps, and 0 times it is nobody's number: beyond, the answers are wrong."""
    found = st.diagnose("txc", Fading(3.0, 0.0), trained=64, length=256, stream=256)
    assert 30 < found["exploded_at"] < 40  # 3^32 > 10^15
    assert found["probe"]["position"][-1] < found["exploded_at"]
    assert found["separation"]["predicted"]["at_90"]["length"] is None
    assert found["conclusion"] in ("explodes", "holds so far")
    assert found["mechanism"] == "explodes"


class Overflows(Fading):
    def forward_from(self, ids: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        logits, state = super().forward_from(ids, state)
        return logits + 0 * logits, state


def test_a_state_that_overflows_far_beyond_the_length() -> None:
    """1.05^t is infinite in float32 from t = 1819 on, and 0 times that is not a number."""
    found = st.diagnose("txc", Overflows(1.05, 0.0), trained=64, length=256, stream=4096)
    assert (found["conclusion"], found["exploded_at"], found["silent_at"]) == ("explodes", None, 1819)
    assert "logits are not numbers from position 1,819 on" in found["sentences"][0]


def test_silence_long_after_it_fails_is_not_why() -> None:
    class SilentFrom401(Fading):
        def forward_from(self, ids: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
            logits, after = super().forward_from(ids, state)
            passed = round(np.log(abs(float(state[0][0, 0].detach()))) / np.log(self.gain))
            logits[:, max(0, 400 - passed) :] = float("nan")
            return logits, after

    found = st.diagnose("txc", SilentFrom401(0.98, 0.1), trained=64, length=1024, stream=2048)
    assert found["silent_at"] == 401
    assert found["conclusion"] == "fades"
    assert found["error"]["measured"]["at_90"]["length"] < 200


@pytest.mark.parametrize("task", ["txc", "dyck", "regex[pattern=(ab)*]"])
def test_a_network_that_never_gives_a_number_says_nothing(task: str) -> None:
    made = st.task(task)
    model = st.model("linear-rnn", inputs=made.inputs, outputs=made.outputs)
    with torch.no_grad():
        model.head.bias.fill_(float("nan"))
    found = st.diagnose(made, model, trained=16, length=64, stream=128)
    assert (found["conclusion"], found["silent_at"]) == ("explodes", 1)
    assert found["automaton"]["network_says"] == "nothing"
    found["error"]["measured"]["at_90"]["length"] = None  # as where few rows are silent and a guess is nearly right
    assert sentences.conclude(found)[1][0] == "It explodes: logits are not numbers from position 1 on."


def test_where_a_curve_passes_a_level() -> None:
    position = np.array([1, 10, 100, 1000])
    assert crossing(position, np.array([1, 1, 0.8, 0.5]), np.full(4, 0.9)) == pytest.approx(10**1.5)
    assert crossing(position, np.array([1, 0.8, 1.0, 1.0]), np.full(4, 0.9)) is None  # one point is an accident
    assert crossing(position, np.array([0.5, 0.5, 0.5, 0.5]), np.full(4, 0.9)) == 1
    assert crossing(position, np.array([1, np.nan, 0.5, 0.5]), np.full(4, 0.75)) == pytest.approx(10.0)


def test_the_error_rate_of_a_step_that_slips_by_a_known_chance() -> None:
    right = np.random.default_rng(0).random((500, 300)) >= 0.01
    rate = step_rate(right, np.ones_like(right))
    assert rate["low"] < 0.01 < rate["high"]
    asked = np.ones((1, 4), bool)
    asked[0, 1] = False
    assert first_errors(np.array([[True, False, False, True]]), asked) == (1, 2)


def test_the_rate_at_which_slips_cost_skill() -> None:
    """Every step flips the answer with chance q: skill falls as (1 - 2q)^t."""
    draws = np.random.default_rng(0)
    flips = draws.random((4000, 64)) < 0.002
    right = np.cumsum(flips, axis=1) % 2 == 0
    found = slip_rate(right, np.ones_like(right), np.full(64, 0.5))
    assert found == pytest.approx(-np.log(1 - 2 * 0.002), rel=0.15)


@pytest.mark.parametrize(("predicted", "said"), [(120, False), (400, True)])
def test_a_model_that_fails_much_sooner_than_fading_explains_is_said_to(predicted: float, said: bool) -> None:
    record = {
        "separation": {"fitted_to": 64, "per_step": 0.99, "says": "fade"},
        "error": {"measured": {"at_90": {"length": 100}}, "predicted": {"at_90": {"length": predicted}}},
        "probe": {"position": [], "state": {"score": [], "chance": []}},
    }
    assert ("It fails 4.0 times sooner" in " ".join(sentences._fades(record))) == said
