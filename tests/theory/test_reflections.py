"""Characters and the least number of reflections, against known tables, permutations and matrices."""

from __future__ import annotations

import numpy as np
import pytest

from statetrack.tasks.groups import group
from statetrack.theory.algebra.characters import character_table, conjugacy_classes, real_representations
from statetrack.theory.algebra.reflections import _search, least_reflections, swaps_needed

SMALL = ["c3", "c4", "s3", "s4", "a4", "a5", "s5", "q8", "d4", "d7", "f20", "f21", "psl2_7", "z2_3", "a4xz5", "psl2_8"]


@pytest.mark.parametrize("name", SMALL)
def test_characters_are_orthogonal_both_ways(name: str) -> None:
    table = group(name).cayley.astype(np.int64)
    classes = conjugacy_classes(table)
    assert len(np.unique(classes)) == len(np.unique(group(name).conjugacy_classes))
    characters = character_table(table, classes)
    sizes = np.bincount(classes)
    np.testing.assert_allclose(characters.T.conj() @ characters, np.diag(len(table) / sizes), atol=1e-6)
    dimensions = characters[:, 0].real
    np.testing.assert_allclose(dimensions, np.rint(dimensions), atol=1e-9)
    assert round(float((dimensions**2).sum())) == len(table)


def test_the_table_of_s4() -> None:
    table = group("s4").cayley.astype(np.int64)
    rows = {tuple(np.rint(row.real).astype(int)) for row in character_table(table, conjugacy_classes(table))}
    classes = conjugacy_classes(table)
    shapes = [group("s4").element_orders[np.flatnonzero(classes == k)[0]] for k in range(5)]
    sizes = np.bincount(classes).tolist()
    # identity, 6 swaps, 8 3-cycles, 6 4-cycles, 3 double swaps
    column = {(1, 1): 0, (2, 6): 1, (3, 8): 2, (4, 6): 3, (2, 3): 4}
    order = [column[int(shape), size] for shape, size in zip(shapes, sizes)]
    known = [(1, 1, 1, 1, 1), (1, -1, 1, -1, 1), (2, 0, -1, 0, 2), (3, 1, 0, -1, -1), (3, -1, 0, 1, -1)]
    assert rows == {tuple(row[k] for k in order) for row in known}


@pytest.mark.parametrize("name", SMALL)
def test_real_representations_make_up_the_regular_one(name: str) -> None:
    """In the regular representation an element of order o fixes 1/o of the dimensions.

    A real irreducible representation of dimension d is in it d, d/2 or d/4 times, as the norm of its character is 1,
    2, 4.
    """
    whole = group(name)
    known = real_representations(whole.cayley)
    norm = np.rint((known.character**2 * np.bincount(known.class_of)).sum(axis=1) / whole.order)
    assert set(norm) <= {1, 2, 4}
    times = known.dimension / norm
    assert (times * known.dimension).sum() == whole.order
    moved = times @ known.moved
    for g in range(0, whole.order, max(1, whole.order // 40)):
        assert moved[known.class_of[g]] == whole.order - whole.order // int(whole.element_orders[g])


LEAST = {
    "c2": (1, 1, 1),
    "c3": (2, 2, 1),
    "c30": (2, 2, 1),
    "v4": (2, 1, 2),
    "z2_3": (3, 1, 3),
    "z3_2": (4, 2, 2),
    "s3": (2, 2, 1),
    "s4": (2, 2, 1),  # the turns of a cube
    "a4": (2, 2, 1),
    "a5": (2, 2, 1),  # the turns of an icosahedron
    "s5": (4, 4, 1),
    "d20": (2, 2, 1),
    "q8": (4, 4, 1),  # unit quaternions move all four dimensions
    "psl2_7": (6, 6, 1),
    "s3xs3": (4, 2, 2),
}


@pytest.mark.parametrize(("name", "least"), LEAST.items())
def test_least_reflections(name: str, least: tuple[int, int, int]) -> None:
    known = least_reflections(group(name))
    assert (known.least, known.each, known.heads) == least
    assert known.exact


@pytest.mark.parametrize(
    "name", ["c2", "c4", "c6", "v4", "z2_3", "z3_2", "<(0 1),(2 3 4 5)>", "<(0 1),(2 3 4)(5 6)>", "c4xc4"]
)
def test_the_rule_for_abelian_groups_is_what_the_search_finds(name: str) -> None:
    whole = group(name.replace("c4xc4", "<(0 1 2 3),(4 5 6 7)>"))
    known = real_representations(whole.cayley)
    nontrivial = ~known.kernel.all(axis=1)
    lost = ~known.minimal_normal()[:, None, :] | known.kernel[nontrivial][None, :, :]
    found = _search(known.moved[nontrivial], ~lost.all(axis=2), known.dimension[nontrivial])
    rule = least_reflections(whole)
    assert (rule.least, rule.each) == (found.least, found.each)


def test_fewer_inputs_need_fewer_reflections() -> None:
    s5 = group("s5")
    swaps = np.array(
        [s5.id_of(np.array(row)) for row in ([1, 0, 2, 3, 4], [0, 2, 1, 3, 4], [0, 1, 3, 2, 4], [0, 1, 2, 4, 3])]
    )
    assert least_reflections(s5, swaps).least == 1
    assert swaps_needed(s5, swaps) == 1
    assert swaps_needed(s5) == 4


def test_large_groups_get_a_bound() -> None:
    known = least_reflections(group("s7"))
    assert (known.least, known.exact) == (6, False)


def test_swaps_are_counted_in_each_orbit() -> None:
    assert [swaps_needed(group(name)) for name in ("c5", "z2_4", "a4xz5", "m11", "d4")] == [4, 1, 4, 10, 3]


def test_one_symmetric_map_has_periods_one_and_two() -> None:
    """S <- tanh((a I - b k k^T) S + u) under a repeated input comes back after two steps; two reflections need not."""
    rng = np.random.default_rng(0)
    back = {1: [], 2: []}
    for reflections, after_two in back.items():
        for _ in range(60):
            n = int(rng.integers(2, 5))
            step = rng.uniform(1, 2.5) * np.eye(n)
            for _ in range(reflections):
                k = rng.normal(size=n)
                step = (np.eye(n) - rng.uniform(1.5, 2) * np.outer(k, k) / (k @ k)) @ step
            drive, state = rng.normal(size=n) * 0.3, rng.normal(size=n)
            for _ in range(4000):
                state = np.tanh(step @ state + drive)
            later = np.tanh(step @ np.tanh(step @ state + drive) + drive)
            after_two.append(np.abs(later - state).max())
    assert max(back[1]) < 1e-3
    assert max(back[2]) > 0.1


def test_the_size_of_a_representation() -> None:
    """S3 turns a triangle, A5 an icosahedron; two copies of S5 take 8 reflections in one state, 4 in each of two."""
    sizes = {name: least_reflections(group(name)) for name in ("s3", "a5", "z2_3", "s5xs5")}
    assert {name: (known.dimension, known.largest) for name, known in sizes.items()} == {
        "s3": (2, 2), "a5": (3, 3), "z2_3": (3, 1), "s5xs5": (10, 5),
    }  # fmt: skip
    product = sizes["s5xs5"]
    assert (product.least, product.each, product.heads, product.exact) == (8, 4, 2, False)
