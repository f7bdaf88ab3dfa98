"""Weights set by hand against "such a model cannot", where the precision of numbers is left unsaid, with limits."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

import statetrack as st
from statetrack.models import SequenceModel, model
from statetrack.models.witnesses import even_counter, falling_pair, latch, sign, swaps, tiny_counter
from statetrack.models.witnesses.setting import SATURATED, cleared, one_hot_inputs
from statetrack.models.witnesses.toggle import silu_inverse

LONG = 2**16


def first_error(subject: SequenceModel, inputs: np.ndarray, targets: np.ndarray, piece: int = 8192) -> int | None:
    """The first position at which some row is answered wrongly."""
    state = subject.initial_state(len(inputs))
    with torch.no_grad():
        for begin in range(0, inputs.shape[1], piece):
            logits, state = subject.forward_from(torch.from_numpy(inputs[:, begin : begin + piece]).long(), state)
            wrong = (logits.argmax(-1).numpy() != targets[:, begin : begin + piece]).any(0)
            if wrong.any():
                return begin + int(wrong.argmax())
    return None


def rows(task: str, length: int = LONG, count: int = 2) -> tuple[np.ndarray, np.ndarray]:
    batch = st.task(task).sample(length, count, seed=0)
    return batch.inputs, batch.targets


def test_a_sign_survives_contraction() -> None:
    """The state shrinks at every step, by .9 or more, and the parity is right all the same."""
    subject = sign()
    assert first_error(subject, *rows("txc")) is None
    with torch.no_grad():
        _, (state,) = subject.forward_from(torch.zeros(1, 500, dtype=torch.long), subject.initial_state(1))
    assert 0 < float(state[0, 0, 0, 0]) < 1e-20


def test_an_error_in_every_step_ends_the_sign() -> None:
    """Errors of .01 lead the two parities to one state, before the horizon of a contraction by .9 that theory gives."""
    from statetrack.theory.predictions.horizons import contraction

    subject, keep, error = sign(), torch.zeros(1, 1, dtype=torch.long), 0.01
    even, odd = subject.initial_state(1), tuple(-start for start in subject.initial_state(1))
    steps = contraction(0.9, 2.0, error) + 1
    for _ in range(steps):
        (even_after,), (odd_after,) = (subject.forward_from(keep, state)[1] for state in (even, odd))
        even = (even_after - (even_after - odd_after).clamp(-2 * error, 2 * error) / 2,)
        odd = (odd_after + (even_after - odd_after).clamp(-2 * error, 2 * error) / 2,)
        if torch.equal(even[0], odd[0]):
            return
    pytest.fail(f"still apart after {steps} steps")


def test_tiny_states_count() -> None:
    assert first_error(tiny_counter(), *rows("rtc")) is None
    balanced = np.tile([[1, 0]], (1, LONG // 2))
    assert first_error(tiny_counter(), balanced, st.task("rtc").targets(balanced)) is None


def test_mamba_2_counts_and_rounds_to_even() -> None:
    inputs, targets = rows("txc", 2**14)
    assert first_error(even_counter(), inputs, targets, piece=2048) is None


def test_a_falling_tanh_holds_parity_on_the_cpu_kernel_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = falling_pair()
    inputs, targets = rows("txc")
    assert first_error(subject, inputs, targets) is None
    monkeypatch.setenv("STATETRACK_KERNEL", "reference")
    assert first_error(subject, inputs[:, :64], targets[:, :64]) is not None


def test_swaps_make_s5_with_one_reflection() -> None:
    task = st.task("cups[n=5,items=all]")
    subject = swaps(task.swaps, list(itertools.permutations(range(5))))
    assert first_error(subject, *rows(task.name)) is None


def test_swaps_hold_under_errors_in_every_step() -> None:
    """Errors of +-.08 in every entry and step are corrected."""
    task = st.task("cups[n=5,items=all]")
    subject = swaps(task.swaps, list(itertools.permutations(range(5))))
    batch = task.sample(1000, 4, seed=1)
    generator, state = torch.Generator().manual_seed(0), subject.initial_state(4)
    with torch.no_grad():
        for ids, right in zip(torch.from_numpy(batch.inputs).long().T, batch.targets.T):
            logits, (reached,) = subject.step(ids, state)
            assert logits.argmax(-1).tolist() == right.tolist()
            state = (reached + 0.08 * torch.empty_like(reached).uniform_(-1, 1, generator=generator).sign(),)


def test_a_latch_by_halving() -> None:
    """Right in exact arithmetic; float32 has no number left to halve after 150 holds or so."""
    assert first_error(latch(), *rows("flip_flop")) is None
    held = np.zeros((1, 300), int)
    held[0, 0] = 2
    lost = first_error(latch(), held, np.ones((1, 300), int))
    assert lost is not None
    assert 120 < lost < 160


def three_projections() -> SequenceModel:
    """Parity on DeltaNet with three steps a token and b below 1, in float64: key after key at 120 degrees, a vector of
    the plane becomes -1/8 of itself. Token 0 has its keys outside of the plane.
    """
    made = model("deltanet", inputs=2, outputs=2, reflections=3, learned_start=True).double()
    w = cleared(made)
    one_hot_inputs(w)
    keys = w["mixers.0.project.weight"].view(2, 3, 4, 8, -1)[0, :, 0]
    query, across = w["mixers.0.query.weight"].view(4, 8, -1)[0], math.radians(250 + 90)
    for axis, part in enumerate((math.cos, math.sin)):
        for j in range(3):
            keys[j, axis, 1] = silu_inverse(0.25 * part(math.radians(10 + 120 * j)))
        query[axis, :2] = silu_inverse(0.25 * part(across))
        w["start.0"][0, axis, 0] = part(across)
    keys[:, 2, 0] = 1.0
    w["mixers.0.rate.project.bias"].fill_(SATURATED)
    w["mixers.0.out.weight"][-1, 0] = 1.0
    w["head.weight"][:, -1] = torch.tensor([1.0, -1.0])
    return made


def test_three_projections_turn_a_sign() -> None:
    """So eigenvalues in [0, 1] are those of one step, or of two, and not of three."""
    assert first_error(three_projections(), *rows("txc", 512, 64)) is None


def test_a_learned_start_is_a_bias() -> None:
    """A running majority on the linear RNN whose token 0 adds nothing: A takes 1/2 off in every step."""
    made = model("linear-rnn-nobias", inputs=2, outputs=2, hidden=2, learned_start=True)
    w = cleared(made)
    w["A"].copy_(torch.tensor([[1.0, -0.5], [0.0, 1.0]]))
    w["start.0"][1] = w["embedding.weight"][0, 0] = w["head.weight"][1, 0] = 1.0
    w["head.bias"][1] = 0.25
    assert first_error(made, *rows("rtc")) is None


def test_what_adds_nothing_to_nothing_is_nothing() -> None:
    """One letter, no bias and a start of 0: no weights tell an even length from an odd one."""
    logits = model("linear-rnn-nobias", inputs=1, outputs=2)(torch.zeros(1, 8, dtype=torch.long))
    assert (logits == logits[:, :1]).all()
