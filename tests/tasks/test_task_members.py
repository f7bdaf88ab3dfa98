"""What a task says of itself: its title, its state in words, its guess, and facts that its machine bears out."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import statetrack as st
from statetrack.asking.prompts import description, question
from statetrack.asking.rules import Rules
from statetrack.asking.wording import wording
from statetrack.errors import BadInput
from statetrack.tasks import catalogue
from statetrack.tasks.base import Task, needed
from statetrack.tasks.finite import FiniteTask
from statetrack.tasks.groups import looks_like_group
from statetrack.tasks.plain import plain_text

LAMP = """\
states: [off, on, dead]
alphabet: [press, cut]
start: off
steps: {off: {press: on, cut: dead}, on: {press: off, cut: dead}, dead: {press: dead, cut: dead}}
answers: {off: 0, on: 1, dead: 0}
"""
STATES = {
    "rtc": ([1, 0, 0], "ones minus zeros: -1"),
    "txc": ([1, 0, 1, 1], "1"),
    "fsm": ([1, 0, 1], "ones: 2"),
    "fsm[k=2]": ([1, 1, 1], "ones: 2 or more"),
    "xor_lag": ([1, 0], "last bits: 1 0"),
    "xor_lag[k=3]": ([1, 1], "last bits: 0 0 1 1"),
    "mod_counter": ([1, 1, 0], "2"),
    "flip_flop": ([0, 2], "1"),
    "dyck": ([0, 1], "open: ( ["),
    "dyck[kinds=3]": ([], "open: nothing"),
    "dyck[kinds=2]": ([0, 3], "broken"),
    "cycle_navigation": ([0], "place 4"),
    "even_pairs": ([0, 1, 1], "first bit 0, newest bit 1"),
    "modular_arithmetic": ([1, 5, 2], "sum of the terms before 1, last term 2"),
    "modular_arithmetic[m=3]": ([1, 4], "sum of the terms before 1, next number counts 2 times"),
    "modular_arithmetic[m=2]": ([1, 1], "broken"),
    "regex[pattern=(ab)*]": ([0, 1], "state 0 of 3, match: yes"),
    "automaton[file={lamp}]": ([0, 0, 0], "state on"),
    "track_the_stat.median": ([85, 63, 51], "[51, 63, 85]"),
    "track_the_stat.mode": ([7, 3, 7], "{7: 2, 3: 1}"),
    "stream.max": ([31, 64, 2], "64"),
    "stream.min": ([], "nothing yet"),
    "stream.distinct": ([50, 8, 50], "shown: 8, 50"),
    "stream.sum_mod": ([47, 8], "5"),
    "stream.xor": ([5, 3], "6"),
    "stream.majority": ([99, 3, 50], "large minus small: 1"),
    "stream.window_median": ([85, 63, 51, 26, 30, 4], "last, the newest at the end: 63, 51, 26, 30, 4"),
    "stream.echo": ([1, 2, 3, 4], "last, the newest at the end: 2, 3, 4"),
    "variables": ([17, 32], "a=7, b=7, c=0"),
    "cups": ([1], "ball under cup 2"),
    "cups[n=3,items=all]": ([0], "item 0 under cup 1, item 1 under cup 0, item 2 under cup 2"),
    "boxes": ([1], "object 0 in box 1"),
    "hands[n=3]": ([0], "Ann holds the coin, Ben holds the ball, Cleo holds the drum"),
    "hands[n=3,items=all]": ([2], "Ann holds the ball, Ben holds the drum, Cleo holds the coin"),
    "roles[n=3]": ([2], "Ann is the nurse, Ben is the cook, Cleo is the pilot"),
    "roles[n=3,events=all]": ([3], "Ann is the nurse, Ben is the cook, Cleo is the pilot"),
    "dictionary_sum": ([5, 0], "sum so far: 41"),
    "dictionary_sum[k=3]": ([0], "sum so far: -58"),
    "s3_composition": ([3, 2], "1"),
}
PYTHON = re.compile(r"[(){}\[\]<>'\"_]|None|True|False|frozenset|array")
MEANT = ("track_the_stat", "dyck")  # the original's own format; brackets that are inputs
CLASSES = {name: catalogue._load(where) for name, where in catalogue.CLASSES.items()}
OWN = [name for name, kind in CLASSES.items() if not needed(kind)]


@pytest.fixture
def lamp(tmp_path: Path) -> Path:
    path = tmp_path / "lamp.yaml"
    path.write_text(LAMP)
    return path


# ---- words -----------------------------------------------------------------------------------------------------------


def test_every_catalogued_task_has_its_state_written_below() -> None:
    assert {text.partition("[")[0] for text in STATES} >= {*CLASSES, "s3_composition"}


@pytest.mark.parametrize("text", STATES)
def test_the_state_in_words(text: str, lamp: Path) -> None:
    inputs, words = STATES[text]
    assert st.task(text.format(lamp=lamp)).state_text(inputs) == words


@pytest.mark.parametrize("text", [text for text in STATES if not text.startswith(MEANT)])
@pytest.mark.parametrize("way", ["turns", "whole"])
def test_no_prompt_is_written_in_python(text: str, way: str, lamp: Path) -> None:
    """Beside the form of an answer, which has brackets, and what a regular expression itself is made of."""
    task, rules = st.task(text.format(lamp=lamp)), Rules(way=way)
    row = task.sample(12, 1, seed=1).inputs[0].tolist()
    told = [description(task, rules, row) if way == "turns" else question(task, row, rules).prompt]
    told += [task.symbol_text(symbol) for symbol in row]
    for form in re.findall(r"\[\w+: [^]]*\]|\[ok\]", told[0]):
        told[0] = told[0].replace(form, "")
    for said in (part.replace(getattr(task, "pattern", "nothing"), "") for part in told):
        assert not re.search(r"[{}\[\]\"]|None|True|False|frozenset|array|\(\d+,", said), said


@pytest.mark.parametrize("text", [text for text in STATES if not text.startswith(MEANT)])
def test_no_state_is_written_in_python(text: str, lamp: Path) -> None:
    task = st.task(text.format(lamp=lamp))
    rows = [*task.sample(12, 8, seed=1).inputs.tolist(), *np.random.default_rng(2).integers(task.inputs, size=(8, 12))]
    for row, length in itertools.product(rows, range(13)):
        said = task.state_text([int(symbol) for symbol in row[:length]])
        assert said
        assert not PYTHON.search(said), said


class Pair(NamedTuple):
    left: int
    held: frozenset[int | str]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Pair(2, frozenset({10, 9, "x"})), "left: 2, held: 9, 10, x"),
        (((1, 2), (), None), "1, 2; nothing yet; nothing yet"),
        ({"a": True, "b": np.array([1, 2])}, "a: yes, b: 1, 2"),
        (frozenset(), "nothing yet"),
        (0.5, "0.5"),
        (np.int32(3), "3"),
    ],
)
def test_plain_text(value: Any, text: str) -> None:
    assert plain_text(value) == text


@pytest.mark.parametrize("rules", [Rules(), Rules(relabel=7), Rules(style="table"), Rules(style="cycles")])
def test_the_state_of_a_group_is_written_as_its_answers_are(rules: Rules) -> None:
    task = st.task("s3")
    said = wording(task, rules)
    assert said.state([3, 2]) == said.answer(1)
    assert said.state([]) == said.answer(0)


def test_a_guess_is_an_answer() -> None:
    for name in OWN:
        task, chance = st.task(name), np.random.default_rng(0)
        row = task.sample(9, 1, seed=4).inputs[0].tolist()
        guesses = {task.guess(row[:length], chance) for length in range(1, 10) for _ in range(20)}
        assert guesses <= set(range(task.outputs)), name
        assert len(guesses) > 1, name


# ---- titles ----------------------------------------------------------------------------------------------------------


def test_titles_are_given_and_tell_tasks_apart() -> None:
    titles = [kind.__dict__["title"] for kind in CLASSES.values()]
    titles += [st.task(name).title for name in catalogue.names() if name.endswith(catalogue.SUFFIX)]
    assert all(isinstance(title, str) and title for title in titles)
    assert len(set(titles)) == len(titles)
    assert len(catalogue.titles()) == len(CLASSES)


def test_a_task_can_be_called_by_its_title() -> None:
    assert st.task("parity").name == "txc"
    assert st.task("Parity[p=0.2]").name == "txc[p=0.2]"
    assert {st.task(spelt).name for spelt in ("running median", "running_median", "running-median")} == {
        "track_the_stat.median"
    }
    taken = {*CLASSES, *catalogue.ALIASES, *catalogue.SELECTORS}
    for title, name in catalogue.titles().items():
        assert catalogue._find(title) == (CLASSES[name], {}), title
        assert title == name or (title not in taken and not looks_like_group(title))


def test_a_misspelt_title_is_recognised() -> None:
    with pytest.raises(BadInput, match="did you mean parity"):
        st.task("paritty")


# ---- facts that the machine bears out --------------------------------------------------------------------------------

FACTS = {name: st.task(name) for name in (*OWN, "stream.echo[k=5]", "stream.window_median[k=2]", "cups[n=4,items=all]",
                                          "variables[v=2,values=3]", "fsm[k=2]", "hands[n=3,items=all]",
                                          "roles[n=4,events=all]", "dictionary_sum[k=3]")
         if st.task(name).facts}  # fmt: skip


def test_which_tasks_say_something() -> None:
    assert {name.partition("[")[0] for name in FACTS} == {
        "rtc", "fsm", "track_the_stat.median", "track_the_stat.mode", "stream.distinct", "stream.majority",
        "stream.window_median", "stream.echo", "variables", "cups", "hands", "roles", "dictionary_sum",
    }  # fmt: skip


@pytest.mark.parametrize("name", FACTS)
def test_facts_hold_of_the_machine(name: str) -> None:
    task, facts = FACTS[name], FACTS[name].facts
    assert facts is not None
    chance = np.random.default_rng(3)
    rows = chance.integers(task.inputs, size=(40, 15), dtype=np.int32)
    answers = task.targets(rows)
    if facts.reach is not None:
        changed = rows.copy()
        changed[:, : -facts.reach] = chance.integers(task.inputs, size=changed[:, : -facts.reach].shape)
        assert np.array_equal(task.targets(changed)[:, -1], answers[:, -1])
        changed[:, -facts.reach] = (changed[:, -facts.reach] + task.inputs // 2) % task.inputs
        assert not np.array_equal(task.targets(changed)[:, -1], answers[:, -1])  # and no fewer inputs do
    if facts.counts or facts.threshold:
        assert np.array_equal(task.targets(chance.permuted(rows, axis=1))[:, -1], answers[:, -1])
    if facts.ups is not None:
        assert np.array_equal(answers, np.cumsum(np.where(facts.ups[rows], 1, -1), axis=1) >= 0)
    if facts.moves is not None:
        points = list(range(facts.moves.shape[1]))
        start = task.start()
        for symbol, move in enumerate(facts.moves.tolist()):
            assert sorted(move) == points
            assert task.step(start, symbol) == tuple(move[point] for point in start)


def test_what_theory_makes_of_facts() -> None:
    """As it was when theory knew these tasks by their classes."""
    told = {
        "rtc": "unbounded counter: the balance after T inputs is one of T + 1 values, log2(T + 1) bits",
        "track_the_stat.mode": "unbounded counters: at most log2 C(t+99, 99) bits after t numbers, 318 after 300",
        "stream.echo[k=1]": "100^1, the last 1 number: 6.64 bits",
        "stream.window_median": "100^5, the last 5 numbers: 33.22 bits",
        "stream.distinct": "2^100, one bit per number: 100 bits",
        "cups": "5, minimal automaton: 2.32 bits",
        "variables": "1000, minimal automaton: 9.97 bits",
    }
    circuits = {
        "rtc": "TC0-complete: it is the running majority; no finite automaton does it, and it is not in AC0",
        "stream.echo[k=1]": "AC0: the answer depends on the last 2 inputs alone",
        "stream.window_median": "AC0: the answer depends on the last 5 inputs alone",
        "stream.distinct": "AC0: no word cycles through states (aperiodic, star-free)",
    }
    from statetrack.theory import passport

    passports = {name: passport(st.task(name)) for name in told}
    assert {name: made.state_text for name, made in passports.items()} == told
    assert {name: passports[name].circuit.text() for name in circuits} == circuits
    assert passports["cups"].group is not None
    assert (passports["cups"].group.name, passports["cups"].periods) == ("S5", (2,))
    median = passport(st.task("track_the_stat.median[ask=end]")).circuit.says
    assert median.startswith("counts are compared, and on two numbers alone the median is a majority")


@pytest.mark.parametrize("text", ["dyck", "dyck[kinds=3,depth=2,wrong=0.3,p=0.7]", "modular_arithmetic[m=3]"])
def test_the_law_is_that_of_the_rows(text: str) -> None:
    """The shares of the symbols in every state of many rows, against the law; a thousand of a state are enough."""
    task = st.task(text)
    assert isinstance(task, FiniteTask)
    law = task.law()
    assert law is not None
    assert np.allclose(law.sum(axis=1), 1)
    counts = np.zeros(law.shape)
    rows = task.sample(40, 4000, seed=6).inputs
    states = np.zeros(len(rows), np.intp)
    for symbols in rows.T:
        np.add.at(counts, (states, symbols), 1)
        states = task.automaton.steps[states, symbols]
    often = counts.sum(axis=1) >= 1000
    assert often.sum() >= 4
    shares = counts[often] / counts[often].sum(axis=1, keepdims=True)
    assert np.abs(shares - law[often]).max() < 0.08
    assert not counts[law == 0].any()


# ---- a new task ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class LongestRun(Task):
    """The length of the longest run of ones
    so far.

    More is not told.
    """

    base_name = "longest_run"
    inputs = 2
    outputs = 5

    def start(self) -> tuple[int, int]:
        return 0, 0

    def step(self, state: tuple[int, int], symbol: int) -> tuple[int, int]:
        now = min(state[0] + 1, 4) if symbol else 0
        return now, max(now, state[1])

    def answer(self, state: tuple[int, int]) -> int:
        return state[1]


def test_the_defaults_of_a_new_task() -> None:
    new = LongestRun()
    assert new.title == "longest run"
    assert new.instruction == "The length of the longest run of ones so far."
    assert (new.tag, new.example, new.numbers, new.facts) == ("answer", None, False, None)
    assert new.state_text([1, 1, 0]) == "0, 2"
    assert {new.guess([1], np.random.default_rng(seed)) for seed in range(40)} == set(range(5))
