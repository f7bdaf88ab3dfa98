"""Elements and their IDs: sorted image arrays, all of them, and back."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statetrack.errors import BadInput
from statetrack.tasks.groups import Group, catalogue, group
from statetrack.tasks.groups import group as make

SMALL = [name for name in catalogue() if group(name).order <= 1024]
SAMPLE = ["s3", "a4", "v4", "q8", "f21", "d7", "z3_3", "psl2_7", "a7", "m11", "psl3_3", "a4xz5", "<(0 3)(1 4),(2 5)>"]


def sign(p: tuple[int, ...]) -> int:
    """By counting pairs in the wrong order."""
    return (-1) ** sum(p[i] > p[j] for i in range(len(p)) for j in range(i + 1, len(p)))


def closure(generators: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """All products of generators, found by multiplying until nothing is new."""
    found = {tuple(range(len(generators[0])))}
    frontier = found
    while frontier:
        frontier = {tuple(g[i] for i in p) for p in frontier for g in generators} - found
        found |= frontier
    return sorted(found)


@pytest.mark.parametrize("n", range(3, 8))
def test_symmetric_and_alternating_groups_in_lexicographic_order(n: int) -> None:
    everything = list(permutations(range(n)))  # itertools promises this order
    assert group(f"s{n}").elements.tolist() == [list(p) for p in everything]
    assert group(f"a{n}").elements.tolist() == [list(p) for p in everything if sign(p) == 1]


@pytest.mark.parametrize("n", [2, 3, 10, 30])
def test_cyclic_groups_count_the_shift(n: int) -> None:
    assert group(f"c{n}").elements.tolist() == [[(x + k) % n for x in range(n)] for k in range(n)]


def test_klein_group() -> None:
    assert group("v4").elements.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]]


@pytest.mark.parametrize("name", SMALL)
def test_elements_are_the_sorted_closure_of_the_generators(name: str) -> None:
    g = group(name)
    assert [tuple(p) for p in g.elements.tolist()] == closure([tuple(p) for p in g.generators.tolist()])


@pytest.mark.parametrize("name", ["s9", "a9", "m12", "psl3_4", "psl3_5"])
def test_large_groups_are_sorted_distinct_and_closed(name: str) -> None:
    g = group(name)
    e = g.elements
    assert e.shape == (g.order, g.degree)
    assert e.dtype == np.uint8
    assert e[0].tolist() == list(range(g.degree))
    differs = e[1:] != e[:-1]
    first = differs.argmax(axis=1)
    rows = np.arange(g.order - 1)
    assert differs.any(axis=1).all()
    assert (e[1:][rows, first] > e[:-1][rows, first]).all()
    # right order, sorted, distinct; and every generator maps the set to itself
    for generator in g.generators:
        assert len(np.unique(g.id_of(generator[e]))) == g.order


@pytest.mark.parametrize("name", [*SAMPLE, "s9", "psl3_5"])
def test_ids_round_trip(name: str) -> None:
    g = group(name)
    ids = np.arange(g.order)
    assert (g.id_of(g.elements) == ids).all()
    assert (g.rank(g.elements[:, g.base].T) == ids).all()
    assert g.id_of(g.elements[-1].tolist()) == g.order - 1
    assert isinstance(g.id_of(g.elements[0]), int)
    assert g.id_of(g.elements[:0]).shape == (0,)


@given(st.lists(st.permutations(range(6)), min_size=1, max_size=3))
def test_any_generators(generators: list[list[int]]) -> None:
    """Order, elements, base and ranks of the group of random permutations."""
    g = Group.from_generators(generators)
    expected = closure([tuple(p) for p in generators])
    assert g.order == len(expected)
    assert [tuple(p) for p in g.elements.tolist()] == expected
    assert len({tuple(p) for p in g.elements[:, g.base].tolist()}) == g.order
    assert (g.rank(g.elements[:, g.base].T) == np.arange(g.order)).all()
    again = make(g.name)
    assert (again.elements == g.elements).all()


def test_ranks_in_chunks_of_every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables for IDs are cut finer when they would be large; every cut gives the same IDs."""
    from statetrack.tasks.groups import ranks

    chunks = set()
    for name in ["s6", "psl3_3", "z5_3xs4", "<(0 7),(1 5),(2 6),(3 9 4 8)>"]:
        g = group(name)
        images = g.elements[:, g.base]
        orbits = [len(g.chain.levels[point].orbit) for point in g.base]
        for enough in (1, 50, 200, 2000, 1 << 18):
            monkeypatch.setattr(ranks, "ENOUGH", enough)
            tables = ranks.build(images, orbits)
            chunks.add(len(tables.cuts) - 1)
            assert (tables.ids(images.T) == np.arange(g.order)).all()
    assert len(chunks) >= 3


def test_a_trivial_group() -> None:
    g = group("<[0,1,2]>")
    assert (g.order, g.degree, g.base) == (1, 3, ())
    assert g.elements.tolist() == [[0, 1, 2]]
    assert (g.id_of([0, 1, 2]), g.then(0, 0), g.inverse(0), g.product([0, 0])) == (0, 0, 0, 0)
    assert (g.is_solvable, g.derived_length, g.is_abelian, g.exponent, g.abelianisation.count) == (True, 0, True, 1, 1)


def test_one_element_out_of_the_group_is_named() -> None:
    with pytest.raises(BadInput, match=r"\[1, 0, 2, 3\] is not an element of a4"):
        group("a4").id_of([[0, 1, 2, 3], [1, 0, 2, 3]])
    with pytest.raises(BadInput, match="not an element of s3"):
        group("s3").id_of([0, 1, 258])
    for wrong in ([0, 1], [0.0, 1.0, 2.0], 3):
        with pytest.raises(BadInput, match="an element of s3 is given by 3 whole numbers, its images"):
            group("s3").id_of(wrong)


def test_elements_cannot_be_changed_by_accident() -> None:
    with pytest.raises(ValueError, match="read-only"):
        group("s3").elements[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        group("s3").generators[0, 0] = 1


def test_large_groups_have_an_order_but_no_ids() -> None:
    g = Group.from_generators([[*range(1, 20), 0], [1, 0, *range(2, 20)]], name="s20")
    assert g.order == 2432902008176640000
    assert not g.is_solvable
    assert [h.order for h in g.derived_series] == [g.order, g.order // 2]
    with pytest.raises(
        BadInput, match="s20 has 2432902008176640000 elements; IDs are given in groups of up to 5000000"
    ):
        _ = g.elements
    with pytest.raises(BadInput, match="IDs are given in groups of up to 5000000"):
        g.prefix_products([0, 1])
    assert group("s7xs7xs3").order == 5040 * 5040 * 6


def test_wreath_product_order() -> None:
    """Swaps inside pairs and all permutations of 6 pairs: 2^6 * 6!, on 12 points."""
    pairs = "<(0 1),(0 2)(1 3),(0 2 4 6 8 10)(1 3 5 7 9 11)>"
    assert group(pairs).order == 2**6 * 720
