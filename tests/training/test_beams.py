"""A search directed by margin and state finds words that no family of words and no short word shows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import statetrack as st
from statetrack.models.witnesses import automaton, counter, toggle
from statetrack.tasks.finite import NOTHING
from statetrack.training.beams import BEAM, BeamSearch, Usual, broken_briefly, broken_by_beam, margins_of
from statetrack.training.breaking import on_words
from statetrack.training.weights import built


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
    task = st.task("txc")
    word = broken_by_beam(task, planted_parity(planted), task.automaton, 16, 2**16)
    assert word is not None
    assert tuple(word.symbols) == planted


def test_an_evaluation_ends_with_a_short_beam() -> None:
    """Its families do not hold this word of eight letters, which is none of one event, long runs or u v^k."""
    planted = (1, 0, 0, 1, 1, 0, 1, 0)
    found = on_words(st.task("txc"), planted_parity(planted), 16, 0, 2**17)
    assert found.breaking is not None
    assert found.breaking.family == BEAM
    assert tuple(found.breaking.symbols) == planted
    assert found.wrong == 1
    holds = on_words(st.task("txc"), toggle([[0, 1], [1, 0]]), 16, 0, 2**17)
    assert (holds.breaking, holds.reason, holds.words) == (None, "", found.words - 1)


@pytest.mark.parametrize("tokens", [2**9, 2**13, 2**20])
def test_a_short_search_is_as_narrow_as_its_tokens_ask(tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reaches the length trained at, with whatever it is given."""
    task, model, rows = st.task("s3"), model_of("e88-gain-r2[heads=1,n_state=4]", "s3"), []
    real = BeamSearch._kept
    monkeypatch.setattr(BeamSearch, "_kept", lambda self, *given: rows.append(len(given[0])) or real(self, *given))
    monkeypatch.setattr("statetrack.training.beams.margins_of", lambda logits, due: np.ones(len(due), np.float32))
    assert broken_briefly(task, model, 8, tokens, 0) is None
    assert len(rows) >= 8
    assert sum(rows[:8]) <= max(tokens, 8 * 3 * 6)


def model_of(name: str, task: str) -> torch.nn.Module:
    return built(name, st.task(task), 0)


def planted_parity(planted: tuple[int, ...]) -> torch.nn.Module:
    """Right on every word but one."""
    states = [()]
    for state in states:
        states += [(*state, bit) for bit in (0, 1) if len(state) < len(planted)]
    number = {state: place for place, state in enumerate(states)}
    late = [("even",), ("odd",)]
    number |= {state: len(states) + place for place, state in enumerate(late)}

    def after(state: tuple[object, ...], bit: int) -> int:
        if state in late:
            return number[late[late.index(state) ^ bit]]
        return number[(*state, bit)] if len(state) < len(planted) else number[late[(sum(state) + bit) % 2]]

    steps = np.array([[after(state, bit) for bit in (0, 1)] for state in [*states, *late]])
    answers = np.array([sum(state) % 2 ^ (state == planted) for state in states] + [0, 1])
    return automaton(steps, answers)


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
