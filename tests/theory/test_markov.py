"""Whether inputs wipe out the past, against all words over every small automaton."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import statetrack as st
from statetrack.theory.floors.markov import MarkovChain, process


def test_forgetting_on_every_automaton_of_three_states() -> None:
    seen = set()
    for table in itertools.product(range(3), repeat=6):
        letters = (table[:3], table[3:])  # where each of two symbols takes the three states
        words = {(0, 1, 2)}
        while (longer := words | {tuple(a[q] for q in word) for word in words for a in letters}) != words:
            words = longer
        level, pairs = {0}, set()
        for _ in range(12):  # states after words of one length; the sets of states repeat by then
            pairs |= set(itertools.product(level, level))
            level = {a[q] for a in letters for q in level}
        expected = all(any(word[p] == word[q] for word in words) for p, q in pairs)
        steps = np.array(letters, np.int32).T
        made = MarkovChain(steps, np.zeros(3, np.int32), np.full((3, 2), 0.5), True)
        assert made.forgets() == expected, letters
        seen.add(expected)
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("name", "forgets"),
    [
        ("flip_flop", True),
        ("fsm", True),
        ("dyck", True),  # all brackets are closed again, sooner or later
        ("dyck[wrong=0.1]", True),  # a wrong bracket comes sooner or later, and stays
        ("even_pairs", False),  # the first input matters for ever
        ("modular_arithmetic", False),  # the sum so far does
        ("mod_counter", False),
    ],
)
def test_forgetting_of_tasks(name: str, forgets: bool) -> None:
    made = process(st.task(name))
    assert made is not None
    assert made.forgets() == forgets
