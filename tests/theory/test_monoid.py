"""Transition monoids and their groups against definitions, on random automata."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statetrack.theory.algebra import green
from statetrack.theory.algebra.monoid import generate
from statetrack.theory.algebra.monoid_facts import commuting, definite_after, keeps_an_order, of_automaton, periods

Map = tuple[int, ...]


@st.composite
def tables(draw: st.DrawFn, most: int = 5) -> np.ndarray:
    states, symbols = draw(st.integers(1, most)), draw(st.integers(1, 3))
    cells = draw(st.lists(st.integers(0, states - 1), min_size=states * symbols, max_size=states * symbols))
    return np.array(cells).reshape(states, symbols)


def then(first: Map, second: Map) -> Map:
    return tuple(second[x] for x in first)


def closure(steps: np.ndarray) -> tuple[set[Map], list[Map]]:
    letters = [tuple(column) for column in steps.T.tolist()]
    found = {tuple(range(len(steps)))}
    edge = list(found)
    while edge:
        edge = [new for new in {then(m, a) for m in edge for a in letters} if new not in found]
        found |= set(edge)
    return found, letters


def cyclic_group(m: Map) -> set[Map] | None:
    """The powers of m if they form a group, that is if m comes back to itself."""
    powers, power = [m], then(m, m)
    while power not in powers:
        powers.append(power)
        power = then(power, m)
    return set(powers) if power == m else None


@given(tables())
def test_the_monoid_is_the_closure_of_the_letters(steps: np.ndarray) -> None:
    found, _ = closure(steps)
    monoid = generate(steps)
    assert monoid.complete
    assert {tuple(row) for row in monoid.elements.tolist()} == found
    assert len(monoid) == len(found)
    for number, row in enumerate(monoid.elements.tolist()):
        for a, letter in enumerate(monoid.letters.tolist()):
            assert tuple(monoid.elements[monoid.right[number, a]].tolist()) == then(tuple(row), tuple(letter))


@given(tables())
def test_aperiodic_means_that_no_element_makes_a_cycle(steps: np.ndarray) -> None:
    found, _ = closure(steps)
    assert generate(steps).aperiodic == all(len(cyclic_group(m) or {m}) == 1 for m in found)


@given(tables(most=4))
def test_groups_are_the_units_of_the_local_monoids(steps: np.ndarray) -> None:
    """The group at an idempotent e holds the m = e m e that have an inverse there; its order is the same in its
    D-class.
    """
    found, _ = closure(steps)
    orders = set()
    for e in found:
        if then(e, e) != e:
            continue
        local = {m for m in found if then(then(e, m), e) == m}
        units = {m for m in local if any(then(m, n) == e and then(n, m) == e for n in local)}
        if len(units) > 1:
            orders.add(len(units))
    assert {group.order for group in green.subgroups(generate(steps))} == orders


@given(tables())
def test_quasi_aperiodic_by_its_definition(steps: np.ndarray) -> None:
    """No set of all words of one length contains a group: all lengths are tried until the sets repeat."""
    found, letters = closure(steps)
    cycles = [group for m in found if (group := cyclic_group(m)) and len(group) > 1]
    sets, words = [], frozenset(letters)
    while words not in sets:
        sets.append(words)
        words = frozenset(then(m, a) for m in words for a in letters)
    contains = any(group <= words for words in sets for group in cycles)
    assert green.quasi_aperiodic(green.subgroups(generate(steps))) == (not contains)


def test_a_group_without_a_permutation_among_the_letters() -> None:
    groups = green.subgroups(generate(np.array([[1], [0], [0]])))
    assert [group.order for group in groups] == [2]
    assert [len(group.stable) for group in groups] == [1]


def test_the_limit_stops_it_and_says_so() -> None:
    counter = np.array([[i, (i + 1) % 50] for i in range(50)])
    assert not generate(counter, limit=20).complete
    assert generate(counter, limit=50).complete


@given(tables())
def test_what_is_certain_after_stopping_is_true(steps: np.ndarray) -> None:
    whole, _ = of_automaton(steps)
    part, circuit = of_automaton(steps, limit=1)
    for name in ("aperiodic", "quasi_aperiodic", "solvable"):
        if getattr(part, name) is not None:
            assert getattr(part, name) == getattr(whole, name), name
    if circuit.name != "unknown" and part.quasi_aperiodic is not None:
        assert circuit.name == of_automaton(steps)[1].name


@given(tables())
def test_orders_and_delays(steps: np.ndarray) -> None:
    _found, letters = closure(steps)
    delay = definite_after(steps)
    if delay is not None:
        words = {tuple(range(len(steps)))}
        for _ in range(delay):
            words = {then(m, a) for m in words for a in letters}
        assert all(len(set(word)) == 1 for word in words)
    if keeps_an_order(steps):
        assert generate(steps).aperiodic
    assert commuting(np.unique(steps.T, axis=0)) == all(then(a, b) == then(b, a) for a in letters for b in letters)


@given(tables())
def test_periods_of_repeated_letters(steps: np.ndarray) -> None:
    expected = set()
    for letter in steps.T.tolist():
        for start in range(len(steps)):
            trail = [start]
            while letter[trail[-1]] not in trail:
                trail.append(letter[trail[-1]])
            expected.add(len(trail) - trail.index(letter[trail[-1]]))
    found = periods(steps.T)
    if all(sorted(letter) == list(range(len(steps))) for letter in steps.T.tolist()):
        assert max(found) % max(expected) == 0  # for permutations it is the order, a multiple of all cycles
    else:
        assert set(found) == expected


@pytest.mark.parametrize(
    ("steps", "name"),
    [
        ([[0, 1], [1, 0]], "ACC0"),  # parity
        ([[1], [0]], "AC0"),  # (aa)*
        ([[0, 1], [1, 1]], "AC0"),  # a 1 was seen
        ([[1, 1, 0], [2, 0, 1], [3, 2, 2], [4, 3, 3], [0, 4, 4]], "NC1-complete"),  # a 5-cycle and a swap
    ],
)
def test_circuit_classes(steps: list[list[int]], name: str) -> None:
    assert of_automaton(np.array(steps))[1].name == name
