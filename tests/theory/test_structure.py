"""The algebra of groups against the table of facts, and against sympy."""

from __future__ import annotations

import csv
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy.combinatorics import Permutation, PermutationGroup

from statetrack.tasks.groups import Group, group
from statetrack.theory.algebra.isomorphism import isomorphic
from statetrack.theory.algebra.simple_groups import prime_factors, simple_name
from statetrack.theory.algebra.structure import abelian_factors, composition_factors, from_permutations, structure

TABLE = Path(__file__).parents[1] / "tasks" / "groups" / "groups.csv"
ROWS = list(csv.DictReader(TABLE.open(encoding="utf-8")))


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_all_94_groups_against_the_table(row: dict[str, str]) -> None:
    known = structure(group(row["name"]))
    assert known.order == int(row["order"])
    assert known.abelian == (row["abelian"] == "true")
    assert known.solvable == (row["solvable"] == "true")
    assert known.simple == (row["simple"] == "true")
    assert str(known.derived_length or "inf") == row["derived_length"]
    assert set(known.isomorphic) == {row["name"], *row["isomorphic_to"].split()}


def test_the_table_is_whole() -> None:
    assert len(ROWS) == 94


FACTORS = {
    "s4": ["C2", "C2", "C2", "C3"],
    "s5": ["C2", "A5"],
    "s9": ["C2", "A9"],
    "psl2_4": ["A5"],
    "psl2_9": ["A6"],
    "psl2_7": ["PSL(2,7)"],
    "psl3_2": ["PSL(2,7)"],
    "psl2_8": ["PSL(2,8)"],
    "psl2_11": ["PSL(2,11)"],
    "psl3_3": ["PSL(3,3)"],
    "psl3_4": ["PSL(3,4)"],
    "a8": ["A8"],
    "psl3_5": ["PSL(3,5)"],
    "m11": ["M11"],
    "m12": ["M12"],
    "a5xa5": ["A5", "A5"],
    "a5xpsl2_7": ["A5", "PSL(2,7)"],
    "s5xs3": ["C2", "C2", "C3", "A5"],
    "<(0 1),(0 2),(0 5)(1 6)(2 7)(3 8)(4 9),(0 1 2 3 4)>": ["C2", "C2", "C2", "A5", "A5"],  # S5 wreath C2
}


@pytest.mark.parametrize(("name", "factors"), FACTORS.items())
def test_composition_factors(name: str, factors: list[str]) -> None:
    assert list(composition_factors(group(name))) == factors


@settings(max_examples=30)
@given(st.integers(3, 6).flatmap(lambda n: st.lists(st.permutations(range(n)), min_size=1, max_size=2)))
def test_random_groups_against_sympy(images: list[list[int]]) -> None:
    mine = structure(Group.from_generators(images))
    theirs = PermutationGroup([Permutation(row) for row in images])
    assert mine.order == theirs.order()
    assert mine.solvable == theirs.is_solvable
    assert mine.abelian == theirs.is_abelian
    sizes = [60 if name == "A5" else 360 if name == "A6" else int(name[1:]) for name in mine.factors]
    assert math.prod(sizes) == mine.order
    if mine.solvable:
        assert len(mine.factors) == len(theirs.composition_series()) - 1
    if mine.abelian and mine.order > 1:
        assert abelian_factors(group_orders(theirs)) == abelian_factors_by_name(mine.name)


def group_orders(theirs: PermutationGroup) -> np.ndarray:
    return np.array([element.order() for element in theirs.generate()])


def abelian_factors_by_name(name: str) -> list[int]:
    return [int(part[1:]) for part in name.split(" x ")]


@given(st.lists(st.integers(2, 6), min_size=1, max_size=3))
def test_abelian_factors_of_products(sizes: list[int]) -> None:
    orders = np.ones(1, np.int64)
    for n in sizes:
        own = n // np.gcd(n, np.arange(n))
        orders = np.lcm(orders[:, None], own[None, :]).ravel()
    factors = abelian_factors(orders)
    assert math.prod(factors) == math.prod(sizes)
    assert all(b % a == 0 for a, b in itertools.pairwise(factors))
    assert max(factors) == math.lcm(*sizes)


@pytest.mark.parametrize(
    ("one", "other"), [("d4", "q8"), ("d6", "a4"), ("z60", "a4xz5"), ("a5", "z60"), ("psl3_4", "a8"), ("d8", "q16")]
)
def test_different_groups_of_one_order(one: str, other: str) -> None:
    assert group(one).order == group(other).order
    assert not isomorphic(group(one), group(other))


def test_the_same_group_on_other_points() -> None:
    regular = Group.from_generators(group("s3").cayley.T)  # S3 acting on its own six elements
    assert isomorphic(regular, group("s3"))
    assert structure(regular).name == "S3"
    turned = group("s3xs3").generators[::-1]
    assert isomorphic(group("s3xs3"), Group.from_generators(turned))
    assert isomorphic(group("a5"), group("psl2_5"))


def test_groups_given_by_all_their_elements() -> None:
    named = from_permutations(group("d4").elements)
    assert named is not None
    assert named.name == "D4"
    many = np.array([[(i + s) % 300 for i in range(300)] for s in range(300)])  # too many points for a chain
    named = from_permutations(many)
    assert named is not None
    assert (named.name, named.order) == ("C300", 300)


def test_prime_factors() -> None:
    assert [prime_factors(n) for n in (1, 2, 12, 97, 372000)] == [
        [],
        [2],
        [2, 2, 3],
        [97],
        [2, 2, 2, 2, 2, 3, 5, 5, 5, 31],
    ]
    assert simple_name(1092, 13) == "PSL(2,13)"
    assert simple_name(10**6, 7) == "a simple group of order 1000000"
