"""Regular languages against Python's re, the size of their automata, and patterns that do not parse."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as s

import statetrack as st
from statetrack.tasks.machines.regex import Regex

ALPHABET = "abc"
ATOMS = s.sampled_from(["a", "b", "c", ".", "[ab]", "[^a]", "[a-c]", "[^a-c]", "(a|)", "()", r"\b"])
PATTERNS = s.recursive(
    ATOMS,
    lambda inner: s.one_of(
        s.tuples(inner, inner).map("".join),
        s.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
        s.tuples(inner, s.sampled_from("*+?")).map(lambda part: f"({part[0]}){part[1]}"),
    ),
    max_leaves=7,
)


def words(length: int, alphabet: str = ALPHABET) -> list[str]:
    return ["".join(word) for n in range(length + 1) for word in itertools.product(alphabet, repeat=n)]


def python_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace(r"\b", "b"))  # \b means a place there and the character here


def memberships(pattern: str, length: int) -> np.ndarray:
    longest = [word for word in words(length) if len(word) == length]
    inputs = np.array([[ALPHABET.index(c) for c in word] for word in longest])
    return Regex(pattern=pattern, alphabet=ALPHABET).targets(inputs)


@settings(max_examples=80, deadline=None)
@given(PATTERNS)
def test_prefixes_are_members_where_python_says_so(pattern: str) -> None:
    compiled = python_pattern(pattern)
    longest = [word for word in words(5) if len(word) == 5]
    expected = [[int(bool(compiled.fullmatch(word[: t + 1]))) for t in range(5)] for word in longest]
    assert np.array_equal(memberships(pattern, 5), expected)


@pytest.mark.parametrize(
    ("pattern", "states"),
    [
        ("(ab)*", 3),
        ("(a|b)*", 1),
        ("b*(ab*ab*)*", 2),  # an even number of a
        ("(a|b)*a(a|b)(a|b)", 8),  # an a at the third place from the end needs three bits
        ("aaaa", 6),
        ("[^ab]", 1),  # nothing is a member
        ("", 2),
        ("((a*)*|(b*)*)*", 1),
    ],
)
def test_automata_are_the_smallest(pattern: str, states: int) -> None:
    assert st.task(f'regex[pattern="{pattern}"]').automaton.states == states


@settings(max_examples=30, deadline=None)
@given(PATTERNS)
def test_states_are_the_classes_of_prefixes_with_the_same_future(pattern: str) -> None:
    """Myhill and Nerode: two prefixes lead to one state iff the same words complete them."""
    compiled = python_pattern(pattern)
    automaton = Regex(pattern=pattern, alphabet=ALPHABET).automaton
    if automaton.states > 6:
        return  # words of five letters need not tell more states apart
    short = words(5)
    futures = {tuple(bool(compiled.fullmatch(u + v)) for v in words(4)) for u in short}
    assert automaton.states == len(futures)


@pytest.mark.parametrize(
    ("pattern", "place", "said"),
    [
        ("a(b", 2, r"'\(' is not closed"),
        ("ab)", 3, r"'\)' closes nothing"),
        ("*a", 1, r"'\*' has nothing to repeat"),
        ("a|+", 3, r"'\+' has nothing to repeat"),
        ("ab**", 4, r"'\*' repeats what is repeated already"),
        ("a[bc", 2, r"'\[' is not closed"),
        ("a[]", 3, "a class without characters"),
        ("[c-a]", 3, "the range c-a runs backwards"),
        ("abd", 3, "'d' is not in the alphabet 'abc'"),
        ("[abx]", 4, "'x' is not in the alphabet"),
        ("ab\\", 4, "nothing follows the backslash"),
        (r"a\d", 3, "'d' is not in the alphabet"),
        ("a{2}", 2, r"'\{' has no meaning here"),
        ("^ab$", 1, r"'\^' has no meaning here"),
        ("a]", 2, r"'\]' has no meaning here"),
        ("a b", 2, "' ' is not in the alphabet"),
    ],
)
def test_patterns_that_do_not_parse_are_refused_with_the_place(pattern: str, place: int, said: str) -> None:
    with pytest.raises(st.BadInput, match=f"character {place}: {said}"):
        Regex(pattern=pattern, alphabet=ALPHABET)


def test_a_language_with_too_many_states_is_refused() -> None:
    with pytest.raises(st.BadInput, match="more than 20000 states"):
        Regex(pattern="(a|b)*a" + "(a|b)" * 16)


def test_alphabets_and_lengths_that_cannot_be() -> None:
    for alphabet in ("", "aa", "".join(map(chr, range(300, 365)))):
        with pytest.raises(st.BadInput, match=r"should be 1\.\.64 characters, each once"):
            Regex(pattern="", alphabet=alphabet)
    with pytest.raises(st.BadInput, match="has 201 characters; at most 200"):
        Regex(pattern="a" * 201)


def test_deep_nesting_is_no_trouble() -> None:
    task = Regex(pattern="(" * 99 + "ab" + ")" * 99)
    assert task.targets([0, 1, 0]).tolist() == [0, 1, 0]


def test_signs_can_be_letters() -> None:
    task = st.task(r'regex[pattern="\\(\\*,\\)",alphabet="(*,)"]')
    assert task.targets([0, 1, 2, 3]).tolist() == [0, 0, 0, 1]
    assert st.task(task.name) == task
    assert [task.symbol_text(symbol) for symbol in range(4)] == ["(", "*", ",", ")"]


@settings(max_examples=40, deadline=None)
@given(PATTERNS, s.sampled_from(["every", "end"]))
def test_names_give_the_task_back(pattern: str, ask: str) -> None:
    task = Regex(pattern=pattern, alphabet=ALPHABET, ask=ask)
    assert st.task(task.name) == task
