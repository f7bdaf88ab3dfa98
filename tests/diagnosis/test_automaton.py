"""Machines extracted from networks that are known to be machines, and from one that is not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

import statetrack as st
from statetrack.diagnosis.automaton import (
    answers_after,
    automaton,
    clustered,
    continuations,
    extract,
    first_difference,
    meet,
)
from statetrack.models import SequenceModel
from statetrack.models.witnesses import automaton as witness
from statetrack.models.witnesses import toggle
from statetrack.tasks.finite import Automaton


def hand_set(task: st.Task) -> SequenceModel:
    machine = task.automaton
    return witness(machine.steps, machine.answers)


@pytest.mark.parametrize("name", ["txc", "fsm", "mod_counter", "mod_counter[m=3]", "fsm[k=5]", "flip_flop"])
def test_the_machine_of_hand_set_weights_is_the_tasks(name: str) -> None:
    task = st.task(name)
    smallest = task.automaton.minimised()
    answers = [max(answer, 0) for answer in task.automaton.answers]  # where nothing is asked, anything may be said
    found = automaton(task, witness(task.automaton.steps, answers, outputs=task.outputs), 64, 0)
    assert found["equal"], found["says"]
    assert found["states"] == smallest.states or (task.automaton.answers < 0).any()
    assert found["error_string"] is None
    assert found["agreement"] == 1.0
    assert (found["rows"], found["majority"], found["row_errors"]) == (64, 1.0, 0.0)
    assert found["says"].startswith("the machine found in it on 64 rows of 64 equals the task's")
    assert "as all of its steps do; on all " in found["says"]


def test_the_machine_of_parity_on_e88_is_parity() -> None:
    found = automaton(st.task("txc"), toggle([[0, 1], [1, 0]]), 64, 0)
    assert (found["equal"], found["steps"], found["answers"]) == (True, [[0, 1], [1, 0]], [0, 1])


def parity_but_for(word: str) -> SequenceModel:
    """Parity, but wrong wherever the last inputs are the word, and right again afterwards."""

    def after(state: tuple[str, int], bit: str) -> tuple[str, int]:
        seen = state[0] + bit
        while not word.startswith(seen):
            seen = seen[1:]
        return seen, state[1] ^ int(bit)

    states = [("", 0)]
    for state in states:  # grows as new ones are met
        states += [new for bit in "01" if (new := after(state if state[0] != word else (state[0][1:], state[1]), bit))
                   not in states]  # fmt: skip
    steps = [[states.index(after(state if state[0] != word else (state[0][1:], state[1]), bit)) for bit in "01"]
             for state in states]  # fmt: skip
    return witness(steps, [parity ^ (seen == word) for seen, parity in states])


@pytest.mark.parametrize("word", ["11010011101", "1101001"])
def test_a_network_that_errs_after_one_word_is_found_out(word: str) -> None:
    """By majority the machine is the task's; 11 bits are beyond the 10 that were tried before."""
    task, model = st.task("txc"), parity_but_for(word)
    found = automaton(task, model, 64, 0)
    assert found["error_string"] == list(word)
    assert wrong_on(model, task, list(word))
    assert 0 < found["row_errors"] < 0.7
    if found["equal"]:
        assert found["majority"] < 1
        assert f"yet the network errs after {' '.join(word)}" in found["says"]


def test_a_word_that_the_record_knows_is_believed() -> None:
    found = automaton(st.task("txc"), toggle([[0, 1], [1, 0]]), 64, 0, known="1 0^22")
    assert found["equal"]
    assert "yet the network errs after 1 0^22 (0.00% of 64 test rows err)" in found["says"]


def test_words_that_go_on_for_long_are_tried() -> None:
    """Right on every word of 14, and on no run of 20 ones or more."""
    steps = [[parity, 2 * min(run + 1, 20) + (1 - parity)] for run in range(21) for parity in (0, 1)]
    model = witness(steps, [state % 2 if state < 40 else 1 - state % 2 for state in range(42)])
    found = automaton(st.task("txc"), model, 64, 0)
    assert found["error_string"] == ["1"] * 20


def wrong_on(model: SequenceModel, task: st.Task, string: list[str]) -> bool:
    """Whether the network errs at the end of a string, by the task's own definition, step by step."""
    state = task.start()
    for symbol in string:
        state = task.step(state, int(symbol))
    with torch.no_grad():
        said = int(model(torch.tensor([[int(symbol) for symbol in string]]))[0, -1].argmax())
    return said != task.answer(state)


@pytest.mark.parametrize("name", ["e88-1l-small", "gru", "linear-rnn"])
def test_an_untrained_network_differs_by_a_string_on_which_it_errs(name: str) -> None:
    task = st.task("txc")
    model = st.model(name, inputs=2, outputs=2, seed=0)
    found = automaton(task, model, 32, 0)
    assert not found["equal"]
    assert found["network_errs"]
    assert wrong_on(model, task, found["difference"])
    assert wrong_on(model, task, found["error_string"])


def test_a_network_of_another_machine_is_found_out() -> None:
    """A counter modulo 4 says parity wrongly at the same place as the machines do: three ones."""
    task = st.task("txc")
    model = witness([[0, 1], [1, 2], [2, 3], [3, 0]], [0, 1, 0, 0])
    found = automaton(task, model, 32, 0)
    assert found["difference"] == ["1", "1", "1"]
    assert found["states"] == 4
    assert wrong_on(model, task, found["difference"])


def test_clusters_too_coarse_are_refined() -> None:
    """Four ones are needed, and continuations of one symbol do not tell the first states apart."""
    task = st.task("fsm[k=4]")
    model = hand_set(task)
    met = meet(model, task.sample(32, 64, 0, "validation").inputs)
    strings = [(0,), (1,)]
    coarse, _, _ = extract(
        met, answers_after(model, met.states, strings), answers_after(model, met.start, strings)[0], 2
    )
    assert first_difference(coarse, task.automaton) is not None
    assert automaton(task, model, 32, 0)["equal"]


@settings(max_examples=12, deadline=None)
@given(some.integers(2, 4), some.integers(0, 10_000))
def test_any_small_machine_is_found_again(states: int, seed: int) -> None:
    """A random machine set by hand: the extracted one answers every string of eight bits alike."""
    draws = np.random.default_rng(seed)
    steps, answers = draws.integers(0, states, (states, 2)), draws.integers(0, 2, states)
    model = witness(steps, answers, outputs=2)
    inputs = draws.integers(0, 2, (64, 32)).astype(np.int32)
    met = meet(model, inputs)
    strings = continuations([0, 1])
    found, _, _ = extract(
        met, answers_after(model, met.states, strings), answers_after(model, met.start, strings)[0], 2
    )
    assert first_difference(found, Automaton(steps.astype(np.int32), answers.astype(np.int32))) is None


def test_answers_after_strings_are_those_of_the_whole_string() -> None:
    model = st.model("lstm", inputs=3, outputs=4, seed=0, hidden=8)
    begin = torch.tensor([[0, 2, 1], [1, 1, 2]])
    with torch.no_grad():
        _, state = model.forward_from(begin, model.initial_state(2))
    strings = [(0,), (2, 1), (2, 1, 0)]
    found = answers_after(model, state, strings)
    for column, string in enumerate(strings):
        whole = torch.cat([begin, torch.tensor([string, string])], dim=1)
        with torch.no_grad():
            assert found[:, column].tolist() == model(whole)[:, -1].argmax(-1).tolist()


def test_rare_states_join_the_nearest_cluster() -> None:
    features = np.array([[0, 0, 0, 0]] * 300 + [[1, 1, 1, 1]] * 300 + [[1, 1, 1, 0]])
    which, centres = clustered(features)
    assert len(centres) == 2
    assert centres[which[-1]].tolist() == [1, 1, 1, 1]


def test_tasks_that_are_no_small_machine_say_so() -> None:
    model = st.model("tanh-rnn", inputs=2, outputs=2, hidden=4)
    assert "absent" in automaton(st.task("rtc"), model, 16, 0)
