"""Weights set by hand: right at every one of 100,000 steps, against answers computed here."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from statetrack.errors import BadInput
from statetrack.models import SequenceModel
from statetrack.models.witnesses import automaton, counter, permutations, toggle
from statetrack.models.witnesses.permutations import transpositions

LONG = 100_000


def said(subject: SequenceModel, inputs: np.ndarray, piece: int = 20_000) -> np.ndarray:
    """The classes a model says along a stream, run in pieces."""
    state = subject.initial_state(len(inputs))
    parts = []
    with torch.no_grad():
        for ids in torch.from_numpy(inputs).split(piece, dim=1):
            logits, state = subject.forward_from(ids, state)
            assert logits.isfinite().all()
            parts.append(logits.argmax(-1))
    return torch.cat(parts, dim=1).numpy()


def hard_streams(tokens: int, length: int = LONG) -> np.ndarray:
    """A random stream, and one that is silent (token 0) but for a rare event: where memory would fade."""
    generator = np.random.default_rng(0)
    busy = generator.integers(tokens, size=length)
    quiet = np.where(generator.random(length) < 0.001, generator.integers(tokens, size=length), 0)
    return np.stack([busy, quiet])


def test_parity_on_e88_with_gain() -> None:
    inputs = hard_streams(2)
    assert (said(toggle([[0, 1], [1, 0]]), inputs) == np.cumsum(inputs, axis=1) % 2).all()


def test_parity_from_every_beginning() -> None:
    """All strings of 12 bits: the state starts at zero and must choose a side at once."""
    inputs = np.array(list(itertools.product([0, 1], repeat=12)))
    assert (said(toggle([[0, 1], [1, 0]]), inputs) == np.cumsum(inputs, axis=1) % 2).all()


@given(st.lists(st.booleans(), min_size=1, max_size=70), st.permutations([0, 1, 2]), st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_any_tokens_that_keep_or_flip(flips: list[bool], order: list[int], seed: int) -> None:
    delta = [[int(flip) for flip in flips], [1 - int(flip) for flip in flips]]
    inputs = np.random.default_rng(seed).integers(len(flips), size=(2, 40))
    bits = np.cumsum(np.array(flips)[inputs], axis=1) % 2
    assert (said(toggle(delta, order[:2], outputs=4), inputs) == np.array(order)[bits]).all()


def test_majority_on_the_linear_rnn() -> None:
    inputs = hard_streams(2)
    ones, place = np.cumsum(inputs, axis=1), np.arange(1, LONG + 1)
    assert (said(counter([-1, 1], -0.5), inputs) == (ones >= -(-place // 2))).all()


def test_three_ones_on_the_linear_rnn() -> None:
    inputs = hard_streams(2)
    inputs[1, 300:] = 0
    inputs[1, [5, 5000, 60_000]] = 1
    assert (said(counter([0, 1], 2.5), inputs) == (np.cumsum(inputs, axis=1) >= 3)).all()


def products_of(moves: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """p_t ... p_1 after every token, as rows of images: (count, length, points)."""
    state = np.tile(np.arange(moves.shape[1]), (len(inputs), 1))
    history = []
    for tokens in inputs.T:
        state = np.take_along_axis(moves[tokens], state, axis=1)
        history.append(state)
    return np.stack(history, axis=1)


@pytest.mark.parametrize("points", [3, 5])
def test_symmetric_groups_on_reflections_with_gain(points: int) -> None:
    group = np.array(list(itertools.permutations(range(points))))
    subject = permutations(group, group)
    assert subject.mixers[0].reflections == points - 1
    inputs = hard_streams(len(group))
    expected = products_of(group, inputs)
    number = {tuple(p): i for i, p in enumerate(group)}
    answers = np.array([[number[tuple(p)] for p in row] for row in expected])
    assert (said(subject, inputs) == answers).all()


@given(st.permutations(range(6)))
def test_transpositions_make_the_permutation(permutation: list[int]) -> None:
    swaps = transpositions(np.array(permutation))
    assert len(swaps) <= 5
    image = list(range(6))
    for a, b in swaps:
        image = [b if x == a else a if x == b else x for x in image]
    assert image == permutation


def walk(delta: np.ndarray, start: int, inputs: np.ndarray) -> np.ndarray:
    state = np.full(len(inputs), start)
    history = []
    for tokens in inputs.T:
        state = delta[state, tokens]
        history.append(state)
    return np.stack(history, axis=1)


def test_an_automaton_of_a_hundred_thousand_steps() -> None:
    delta = np.random.default_rng(4).integers(7, size=(7, 3))
    answers = np.array([0, 1, 2, 3, 2, 1, 0])
    inputs = hard_streams(3)
    expected = answers[walk(delta, 5, inputs)]
    assert len(np.unique(expected)) > 2
    assert (said(automaton(delta, answers, start=5), inputs) == expected).all()


@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 10_000), st.sampled_from(["tanh", "gru", "lstm"]))
@settings(max_examples=40, deadline=None)
def test_any_automaton(states: int, tokens: int, seed: int, cell: str) -> None:
    generator = np.random.default_rng(seed)
    delta, answers = generator.integers(states, size=(states, tokens)), generator.integers(4, size=states)
    start = int(generator.integers(states))
    inputs = generator.integers(tokens, size=(3, 50))
    expected = answers[walk(delta, start, inputs)]
    assert (said(automaton(delta, answers, start=start, outputs=4, cell=cell), inputs) == expected).all()


@pytest.mark.parametrize("cell", ["tanh", "gru", "lstm"])
def test_an_automaton_holds_under_errors_in_every_step(cell: str) -> None:
    """An error of +-.02 in every entry after every step, so that "any automaton" stands under bounded error too."""
    generator = np.random.default_rng(1)
    delta, answers = generator.integers(5, size=(5, 3)), np.arange(5)
    inputs = generator.integers(3, size=(8, 500))
    expected = walk(delta, 0, inputs)
    subject = automaton(delta, answers, cell=cell)
    assert [param.shape[1] for name, param in subject.named_parameters() if name == "head.weight"] == [5 * 3 + 1]
    state = subject.initial_state(8)
    with torch.no_grad():
        for tokens, right in zip(torch.from_numpy(inputs).T, expected.T):
            logits, reached = subject.step(tokens, state)
            assert logits.argmax(-1).tolist() == right.tolist()
            state = tuple(part + 0.02 * torch.from_numpy(generator.choice([-1.0, 1.0], part.shape)) for part in reached)
            state = tuple(part.float() for part in state)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: toggle([[0, 0], [0, 1]]), "keep both or swap"),
        (lambda: toggle([[0, 2], [1, 0]]), "allowed: 0 to 1"),
        (lambda: counter([1, 0], 2), "threshold not"),
        (lambda: permutations([[0, 0, 1]], [[0, 1, 2]]), "every row of moves must be a permutation of 0 to 2"),
        (lambda: permutations([[0, 1, 2]], [[0, 1]]), "every row of answers"),
        (lambda: automaton([[0, 1], [1, 0]], [0]), "answers must be 2 numbers"),
        (lambda: automaton([[0, 1], [1, 0]], [0, 1], start=2), "start is 2; allowed: 0 to 1"),
        (lambda: automaton([0, 1], [0, 1]), "two dimensions"),
    ],
)
def test_bad_tables(call, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        call()
