"""All 94 groups against sympy, against GAP where it is installed, and against the facts in groups.csv."""

from __future__ import annotations

import csv
import shutil
import subprocess
from pathlib import Path

import pytest
from sympy.combinatorics import Permutation, PermutationGroup
from sympy.functions.combinatorial.numbers import partition

from statetrack.errors import BadInput
from statetrack.tasks.groups import Group, catalogue, family, group, selector
from statetrack.tasks.groups.permutations import cycle_text, to_cycles

with (Path(__file__).parent / "groups.csv").open(encoding="utf-8") as file:
    FACTS = {row["name"]: row for row in csv.DictReader(file)}


def classes(g: Group) -> int:
    return int(g.conjugacy_classes.max()) + 1


def test_the_catalogue_is_the_list_of_facts_in_its_order() -> None:
    assert catalogue() == list(FACTS)
    assert len(catalogue()) == 94


@pytest.mark.parametrize("name", FACTS)
def test_facts(name: str) -> None:
    g, facts = group(name), FACTS[name]
    assert g.order == int(facts["order"])
    assert g.degree == int(facts["degree"])
    assert family(name) == facts["family"]
    assert str(g.is_transitive).lower() == facts["transitive"]
    assert str(g.is_abelian).lower() == facts["abelian"]
    assert str(g.is_nilpotent).lower() == facts["nilpotent"]
    assert str(g.is_solvable).lower() == facts["solvable"]
    assert ("inf" if g.derived_length is None else str(g.derived_length)) == facts["derived_length"]
    assert g.exponent == int(facts["exponent"])
    assert classes(g) == int(facts["n_conj_classes"])


@pytest.mark.parametrize("name", FACTS)
def test_sympy_agrees(name: str) -> None:
    g = group(name)
    other = PermutationGroup([Permutation(images.tolist()) for images in g.generators])
    assert g.order == other.order()
    assert g.is_abelian == other.is_abelian
    assert g.is_nilpotent == other.is_nilpotent
    assert g.is_solvable == other.is_solvable
    assert [h.order for h in g.derived_series] == [h.order() for h in other.derived_series()]
    if g.order <= 720:  # sympy lists the members of every class
        assert classes(g) == len(other.conjugacy_classes())
        assert len(g.centre) == other.center().order()


def one_based(cycle: tuple[int, ...]) -> str:
    return f"({','.join(str(point + 1) for point in cycle)})"


@pytest.fixture(scope="module")
def gap() -> dict[str, list[str]]:
    """What GAP says of every group: order, classes, size of the centre, exponent, orders of the derived series."""
    program = shutil.which("gap")
    if program is None:
        pytest.skip("GAP is not installed (Debian: gap-core gap-primgrp gap-smallgrp gap-transgrp)")
    lines = []
    for name in catalogue():
        products = ",".join("*".join(map(one_based, to_cycles(g))) for g in group(name).generators)
        lines.append(
            f'g := Group({products});; Print("{name};", Size(g), ";", NrConjugacyClasses(g), ";", '
            'Size(Centre(g)), ";", Exponent(g), ";", List(DerivedSeries(g), Size), "\\n");'
        )
    said = subprocess.run([program, "-q"], input="\n".join(lines), capture_output=True, text=True, check=True).stdout
    rows = [line.replace(" ", "").split(";") for line in said.splitlines() if line.count(";") == 5]
    return {name: facts for name, *facts in rows}


def test_gap_agrees(gap: dict[str, list[str]]) -> None:
    ours = {}
    for name in catalogue():
        g = group(name)
        series = [h.order for h in g.derived_series]
        numbers = [str(number) for number in (g.order, classes(g), len(g.centre), g.exponent)]
        ours[name] = [*numbers, f"[{','.join(map(str, series))}]"]
    assert ours == gap


@pytest.mark.parametrize("n", range(3, 10))
def test_classes_of_symmetric_groups_are_partitions(n: int) -> None:
    assert classes(group(f"s{n}")) == partition(n)


def test_selectors_follow_from_solvability() -> None:
    facts = {name: row["selector"] for name, row in FACTS.items()}
    assert selector("permutation_groups") == list(FACTS)
    for name in ("tc0_groups", "nc1_groups"):
        assert selector(name) == [member for member, chosen in facts.items() if chosen == name]
    assert len(selector("TC0_groups")) == 72
    with pytest.raises(BadInput, match="unknown selector 'tc1_groups'; did you mean tc0_groups"):
        selector("tc1_groups")


@pytest.mark.parametrize(
    "name", ["d3 s3 psl2_2", "a5 psl2_4 psl2_5", "psl2_9 a6", "psl2_7 psl3_2", "v4 z2_2", "psl2_3 a4"]
)
def test_isomorphic_groups_look_alike(name: str) -> None:
    """How many elements there are of each order: no proof, but it tells the groups of one order here apart."""
    profiles = {tuple(sorted(group(member).element_orders.tolist())) for member in name.split()}
    assert len(profiles) == 1


def test_quaternion_groups_are_not_dihedral() -> None:
    """One element of order 2 in Q8, Q16, Q32; five in D4, and so on: this is what the published data set got wrong."""
    assert [int((group(f"q{n}").element_orders == 2).sum()) for n in (8, 16, 32)] == [1, 1, 1]
    assert [int((group(f"d{n}").element_orders == 2).sum()) for n in (4, 8, 16)] == [5, 9, 17]


def test_generators_are_those_of_the_facts() -> None:
    written = {
        "s4": ["(0 1)", "(0 1 2 3)"],
        "a4": ["(0 1 2)", "(1 2 3)"],
        "a5": ["(0 1 2)", "(0 1 2 3 4)"],
        "d5": ["(0 1 2 3 4)", "(1 4)(2 3)"],
        "v4": ["(0 1)(2 3)", "(0 2)(1 3)"],
        "f21": ["(0 1 2 3 4 5 6)", "(1 2 4)(3 6 5)"],
        "q8": ["(0 1 2 3)(4 5 6 7)", "(0 4 2 6)(1 7 3 5)"],
        "z3_2": ["(0 1 2)", "(3 4 5)"],
        "m11": ["(0 1 2 3 4 5 6 7 8 9 10)", "(2 6 10 7)(3 9 4 5)"],
        "a4xz5": ["(0 1 2)", "(1 2 3)", "(4 5 6 7 8)"],
    }
    assert {name: [cycle_text(g) for g in group(name).generators] for name in written} == written
