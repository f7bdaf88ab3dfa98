"""A search directed by margin and state finds words that no family of words and no short word shows."""

from __future__ import annotations

import numpy as np
import torch

import statetrack as st
from statetrack.models.witnesses import automaton, counter, toggle
from statetrack.tasks.finite import NOTHING
from statetrack.training.beams import BEAM, BeamSearch, Usual, broken_by_beam, margins_of


def leaky() -> torch.nn.Module:
    """At least three ones, by a count that fades by a hundredth at every step: wrong some zeros after the third one."""
    model = counter([0, 1], 2.5)
    with torch.no_grad():
        model.A.mul_(0.99)
    return model


def test_it_finds_a_word_that_lies_deep() -> None:
    task, model = st.task("fsm"), leaky()
    word = broken_by_beam(task, model, task.automaton, 16, 2**16)
    assert word is not None
    assert word.family == BEAM
    assert word.tokens > 12, "no search of all words gets there"
    answers = model(torch.tensor([word.symbols])).argmax(-1)[0].tolist()
    right = task.targets([word.symbols])[0].tolist()
    assert answers[-1] == word.given != word.expected == right[-1]


def test_a_network_that_holds_is_not_broken() -> None:
    task = st.task("txc")
    assert broken_by_beam(task, toggle([[0, 1], [1, 0]]), task.automaton, 16, 2**16) is None


def test_short_words_are_all_tried() -> None:
    """Wrong after one word of six letters alone, planted in a machine that else keeps the parity."""
    planted = (1, 0, 0, 1, 1, 0)
    states = [()]
    for state in states:
        states += [(*state, bit) for bit in (0, 1) if len(state) < 6]
    number = {state: place for place, state in enumerate(states)}
    late = [("even",), ("odd",)]
    number |= {state: len(states) + place for place, state in enumerate(late)}

    def after(state: tuple[object, ...], bit: int) -> int:
        if state in late:
            return number[late[late.index(state) ^ bit]]
        return number[(*state, bit)] if len(state) < 6 else number[late[(sum(state) + bit) % 2]]

    steps = np.array([[after(state, bit) for bit in (0, 1)] for state in [*states, *late]])
    answers = np.array([sum(state) % 2 ^ (state == planted) for state in states] + [0, 1])
    task = st.task("txc")
    word = broken_by_beam(task, automaton(steps, answers), task.automaton, 16, 2**16)
    assert word is not None
    assert tuple(word.symbols) == planted


def test_margins() -> None:
    logits = torch.tensor([[1.0, 3.0], [1.0, 3.0], [float("nan"), 0.0], [5.0, 0.0]])
    due = np.array([1, 0, 0, NOTHING], np.int32)
    assert margins_of(logits, due).tolist() == [2.0, -2.0, -np.inf, np.inf]


def test_the_usual_state() -> None:
    usual = Usual(np.array([[1.0, -0.5]], np.float32), np.array([[True, True]]))
    states = np.array([[1.0, -0.5], [0.5, -0.5], [1.0, 0.25]], np.float32)
    assert usual.agreement(states, np.zeros(3, np.int64)).tolist() == [1.0, 0.5, -0.5]


def test_it_starts_from_what_random_words_show() -> None:
    task = st.task("txc")
    usual = BeamSearch(task, toggle([[0, 1], [1, 0]]), task.automaton).usual()
    carries = usual.counted.all(axis=0)
    assert carries.any()
    assert (np.sign(usual.means[0, carries]) == -np.sign(usual.means[1, carries])).all()
