"""Passports: what every task is."""

from __future__ import annotations

import json
import math

import pytest

import statetrack as st
from statetrack.tasks import names
from statetrack.theory import passport
from statetrack.theory.algebra.monoid_facts import of_automaton
from statetrack.theory.algebra.passport import Passport


def of(name: str) -> Passport:
    return passport(st.task(name))


def groups_of(name: str) -> list[str]:
    monoid = of(name).monoid
    assert monoid is not None
    return [group.name for group in monoid.groups]


@pytest.mark.parametrize("name", [name for name in names() if not name.endswith("_composition")])
def test_every_task_has_a_passport(name: str) -> None:
    known = of(name)
    assert known.circuit.name in ("AC0", "ACC0", "NC1-complete", "TC0-complete")
    assert json.loads(json.dumps(known.to_dict()))["task"] == name
    assert "states" in known.text()
    assert "circuits" in known.text()


def test_every_group_task_is_classed_by_its_solvability() -> None:
    for name in names():
        if name.endswith("_composition"):
            task = st.task(name)
            known = passport(task)
            solvable = task.group_object.is_solvable  # type: ignore[attr-defined]
            assert known.circuit.name == ("ACC0" if solvable else "NC1-complete"), name
            assert known.states == task.inputs


def test_txc_is_c2() -> None:
    known = of("txc")
    assert known.states == 2
    assert known.group is not None
    assert known.group.name == "C2"
    assert known.group.isomorphic == ("c2", "z2_1")
    assert known.circuit.name == "ACC0"
    assert any("AC0 != ACC0" in proof for proof in known.circuit.proved)
    assert known.circuit.assumed == ()


@pytest.mark.parametrize("name", ["fsm", "fsm[k=7]", "flip_flop", "dyck", "even_pairs", "xor_lag[k=3]", "stream.max"])
def test_aperiodic_tasks(name: str) -> None:
    known = of(name)
    assert known.monoid is not None
    assert known.monoid.aperiodic
    assert known.circuit.name == "AC0"
    assert known.periods == (1,)


@pytest.mark.parametrize("m", [2, 3, 4, 5, 12, 300])
def test_modular_counters_are_cyclic(m: int) -> None:
    known = of(f"mod_counter[m={m}]")
    assert known.states == m
    assert groups_of(f"mod_counter[m={m}]") == [f"C{m}"]
    assert known.periods == (1, m)


def test_words_of_one_length() -> None:
    """(aa)* is in AC0 with the monoid C2; parity over two letters has the same monoid and is not."""
    even = of("regex[pattern=(aa)*,alphabet=a]")
    assert groups_of("regex[pattern=(aa)*,alphabet=a]") == ["C2"]
    assert even.circuit.name == "AC0"
    assert "quasi-aperiodic" in even.circuit.says
    assert of("txc").circuit.name == "ACC0"
    assert of("c5[over=generators]").circuit.name == "AC0"  # one letter alone counts its own length
    assert of("c5").circuit.name == "ACC0"


def test_counters_without_a_bound_say_so() -> None:
    for name in ("rtc", "stream.majority", "track_the_stat.median", "track_the_stat.mode"):
        known = of(name)
        assert known.states is None
        assert known.monoid is None
        assert "unbounded" in known.state_text
        assert known.circuit.name == "TC0-complete"
    assert "318 after 300" in of("track_the_stat").state_text


def test_not_solvable_says_what_is_assumed() -> None:
    known = of("cups")
    assert known.circuit.name == "NC1-complete"
    assert known.circuit.assumed == ("TC0 != NC1",)
    assert known.group is not None
    assert known.group.name == "S5"


def test_bits_of_state() -> None:
    expected = {
        "txc": 1,
        "stream.sum_mod[m=8]": 3,
        "stream.xor": 7,
        "cups": math.log2(5),
        "cups[items=all]": math.log2(120),
        "stream.echo[k=3]": 3 * math.log2(100),
        "stream.window_median": 5 * math.log2(100),
        "stream.distinct": 100,
        "variables[values=100]": 3 * math.log2(100),
        "a5": math.log2(60),
        "z60": math.log2(60),
    }
    for name, bits in expected.items():
        assert of(name).state_bits == pytest.approx(bits), name


def test_pouring_boxes_hides_a_symmetric_group() -> None:
    """Pouring is no permutation, but with n boxes it permutes n - 1 sets of objects in all ways."""
    assert groups_of("boxes") == ["C2"]
    assert groups_of("boxes[boxes=4]") == ["S3", "C2"]
    assert of("boxes[boxes=8]").circuit.name == "NC1-complete"  # beyond the limit, for certain


@pytest.mark.parametrize(("v", "values"), [(1, 2), (2, 2), (2, 3), (3, 2)])
def test_variables_by_names_and_by_values(v: int, values: int) -> None:
    task = st.task(f"variables[v={v},values={values}]")
    facts, circuit = of_automaton(task.automaton.minimised().steps)  # type: ignore[attr-defined]
    known = passport(task)
    assert known.monoid is not None
    assert known.states == task.automaton.minimised().states  # type: ignore[attr-defined]
    assert known.monoid.size == facts.size
    assert [group.name for group in known.monoid.groups] == [group.name for group in facts.groups]
    assert known.circuit == circuit


def test_modular_arithmetic_holds_sums_and_products() -> None:
    assert groups_of("modular_arithmetic") == ["C5", "C4"]


def test_large_monoids_stop_and_say_what_is_certain() -> None:
    known = of("variables[v=5]")
    assert known.monoid is not None
    assert not known.monoid.complete
    assert "S5, which is not solvable" in known.monoid.text()
    assert known.circuit.name == "NC1-complete"
    deep = of("dyck[depth=9]")
    assert deep.monoid is not None
    assert not deep.monoid.complete
    assert deep.circuit.name == "AC0"


def test_products_and_generated_groups() -> None:
    known = of("a5xz2")
    assert known.group is not None
    assert known.group.name == "A5 x Z2"
    assert known.group.factors == ("C2", "A5")
    assert of("<(0 1 2),(0 1)>").group is not None
    assert of("<(0 1 2),(0 1)>").group.isomorphic == ("s3", "d3", "psl2_2")  # type: ignore[union-attr]
    assert of("cups[n=100]").group.name == "S100"  # type: ignore[union-attr]
