"""Classes, centre, cosets and orders against their definitions, element by element."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statetrack.tasks.groups import Group, group
from statetrack.tasks.groups.chain import Chain
from statetrack.tasks.groups.permutations import orbits

NAMES = ["s4", "a5", "d6", "q16", "f20", "v4", "z3_2", "psl2_7", "a4xz5", "s3xs3", "<(0 1 2 3),(4 5)>"]


def same_partition(labels: np.ndarray, parts: list[set[int]]) -> bool:
    """Labels count the parts by their least members."""
    return all(set(np.flatnonzero(labels == i)) == part for i, part in enumerate(sorted(parts, key=min)))


@pytest.mark.parametrize("name", NAMES)
def test_classes_and_centre_by_definition(name: str) -> None:
    g = group(name)
    t, inverses = g.cayley.astype(int), g.inverse(np.arange(g.order))
    parts = {frozenset(t[t[inverses, x], np.arange(g.order)].tolist()) for x in range(g.order)}
    assert same_partition(g.conjugacy_classes, [set(part) for part in parts])
    assert g.centre.tolist() == [x for x in range(g.order) if (t[x] == t[:, x]).all()]
    assert g.is_abelian == (t == t.T).all()


@pytest.mark.parametrize("name", NAMES)
def test_derived_subgroup_and_cosets_by_definition(name: str) -> None:
    g = group(name)
    t, inverses = g.cayley.astype(int), g.inverse(np.arange(g.order))
    inside = {0} | set(np.unique(t[t[inverses[:, None], inverses], t]).tolist())  # all commutators, then all products
    while True:
        larger = set(np.unique(t[np.ix_(sorted(inside), sorted(inside))]).tolist())
        if larger == inside:
            break
        inside = larger
    derived = (g.derived_series[:2])[-1]
    assert set(g.id_of(derived.elements).tolist()) == inside
    quotient = g.abelianisation
    assert quotient.count == g.order // len(inside)
    assert same_partition(quotient.cosets, [set(t[x, sorted(inside)].tolist()) for x in quotient.representatives])
    assert set(np.flatnonzero(quotient.cosets == 0)) == inside


@pytest.mark.parametrize("name", [*NAMES, "s9", "psl3_3"])
def test_the_abelianisation_is_a_homomorphism_onto_an_abelian_group(name: str) -> None:
    g = group(name)
    quotient = g.abelianisation
    a, b = np.random.default_rng(0).integers(0, g.order, (2, 200))
    cosets = quotient.cosets
    assert (cosets[g.then(a, b)] == quotient.then(cosets[a], cosets[b])).all()
    everything = np.arange(quotient.count)
    table = quotient.then(everything[:, None], everything)
    assert (table == table.T).all()
    assert (np.sort(table, axis=1) == everything).all()


def test_the_abelianisation_of_symmetric_groups_is_the_sign() -> None:
    s5 = group("s5")
    signs = [np.linalg.det(np.eye(5)[p]) for p in s5.elements]
    assert s5.abelianisation.cosets.tolist() == [int(sign < 0) for sign in signs]


@pytest.mark.parametrize("name", [*NAMES, "m11"])
def test_orders_of_elements_by_repetition(name: str) -> None:
    g = group(name)
    x = np.random.default_rng(0).integers(0, g.order, 60)
    power, orders = x, np.zeros(60, int)
    for n in range(1, 200):
        orders[(power == 0) & (orders == 0)] = n
        power = g.then(power, x)
    assert g.element_orders[x].tolist() == orders.tolist()
    assert g.exponent == np.lcm.reduce(g.element_orders)


def test_derived_series_of_s4() -> None:
    """S4 > A4 > V4 > 1."""
    series = group("s4").derived_series
    assert [h.order for h in series] == [24, 12, 4, 1]
    assert series[1].elements.tolist() == group("a4").elements.tolist()
    assert series[2].elements.tolist() == group("v4").elements.tolist()
    assert group("s4").derived_length == 3
    assert group("s5").derived_length is None


def test_nilpotent_and_not() -> None:
    assert group("d8").is_nilpotent
    assert not group("d6").is_nilpotent
    assert group("q8xz3").is_nilpotent
    assert not group("a5").is_nilpotent


def test_transitive_and_not() -> None:
    assert group("v4").is_transitive
    assert not group("z2_2").is_transitive


@given(st.lists(st.permutations(range(7)), min_size=1, max_size=3), st.permutations(range(7)))
def test_membership(generators: list[list[int]], element: list[int]) -> None:
    g = Group.from_generators(generators)
    known = {tuple(p) for p in g.elements.tolist()}
    assert g.chain.contains(np.array(element, np.uint8)) == (tuple(element) in known)


@given(st.lists(st.permutations(range(7)), min_size=2, max_size=4))
def test_a_chain_that_grows_is_the_chain_of_all(generators: list[list[int]]) -> None:
    images = np.array(generators, np.uint8)
    grown = Chain(7, images[:1])
    for image in images[1:]:
        held = grown.contains(image)
        assert grown.add(image) != held
    assert grown.order == Chain(7, images).order
    assert (grown.elements() == Chain(7, images).elements()).all()


@given(st.lists(st.permutations(range(12)), max_size=3))
def test_orbits(permutations: list[list[int]]) -> None:
    parts = [{x} for x in range(12)]
    for p in permutations:
        for x, y in enumerate(p):
            joined = next(part for part in parts if x in part) | next(part for part in parts if y in part)
            parts = [part for part in parts if not part & joined] + [joined]
    assert same_partition(orbits(12, [np.array(p) for p in permutations]), parts)
