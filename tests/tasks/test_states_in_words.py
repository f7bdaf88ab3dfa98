"""What is said of a state, against plain readers who know nothing but the words of the inputs.

Each follows one task's sentences in its own way and says where they lead; they share no code with the tasks.
"""

from __future__ import annotations

import functools
import itertools
import operator
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import statetrack as st
from statetrack.tasks import catalogue
from tests.tasks.test_task_members import LAMP

Reader = Callable[[list[str]], str]


def numbers(said: list[str]) -> list[int]:
    return [int(word) for word in said]


def brackets(said: list[str]) -> str:
    """Cancels pairs that stand side by side until none is left; what remains of a broken word closes something."""
    word = "".join(said)
    for _ in said:
        word = functools.reduce(lambda left, pair: left.replace(pair, ""), ("()", "[]", "{}"), word)
    deepest = max(itertools.accumulate((1 if character in "([{" else -1 for character in said), initial=0))
    broken = deepest > 4 or any(character in ")]}" for character in word)
    return "broken" if broken else f"open: {' '.join(word) or 'nothing'}"


def expression(m: int) -> Reader:
    """By Python's own arithmetic: the terms before the last sign, and the last one."""

    def read(said: list[str]) -> str:
        text = "".join(said)
        if not re.fullmatch(r"(\d([-+*]\d)*[-+*]?)?", text):
            return "broken"
        at = max(text.rfind("+"), text.rfind("-"))
        before, last = (text[:at], text[at:]) if at >= 0 else ("", text)
        total = eval(before, {}) % m if before else 0
        if text[-1:].isdigit():
            return f"sum of the terms before {total}, last term {eval(last, {}) % m}"
        return f"sum of the terms before {total}, next number counts {eval(f'{last}1', {}) % m} times"

    return read


def variables(said: list[str]) -> str:
    held = dict.fromkeys("abc", "0")
    for verb, first, _, second in map(str.split, said):
        if verb == "set":
            held[first] = second
        elif verb == "copy":
            held[second] = held[first]
        else:
            held[first], held[second] = held[second], held[first]
    return ", ".join(f"{name}={value}" for name, value in held.items())


def cups(everything: bool) -> Reader:
    """The cups stand in a row of places and what is under them moves."""

    def read(said: list[str]) -> str:
        under = ["0", "1", "2", "3", "4"]
        for first, second in (map(int, re.findall(r"\d", words)) for words in said):
            under[first], under[second] = under[second], under[first]
        if not everything:
            return f"ball under cup {under.index('0')}"
        return ", ".join(f"item {item} under cup {under.index(str(item))}" for item in range(5))

    return read


def boxes(said: list[str]) -> str:
    inside = {"0": ["0"], "1": ["1"], "2": ["2"]}
    for words in said:
        a, b = re.findall(r"\d", words)
        if words.startswith("move"):
            inside = {box: [thing for thing in things if thing != a] for box, things in inside.items()}
            inside[b].append(a)
        else:
            inside[b], inside[a] = [*inside[b], *inside[a]], []
    return next(f"object 0 in box {box}" for box, things in inside.items() if "0" in things)


def people(having: str, *things: str) -> Reader:
    """Of "jobs go round from Ann to Ben to Ann" and "Ann and Ben swap": whom each thing comes to."""
    names = ["Ann", "Ben", "Cleo", "Dora", "Emil"][: len(things)]

    def read(said: list[str]) -> str:
        place = dict(zip(things, names))
        for words in said:
            called = dict.fromkeys(word for word in words.split() if word in names)
            following = dict(itertools.pairwise([*called, *itertools.islice(called, 1)]))
            place = {thing: following.get(name, name) for thing, name in place.items()}
        owner = {name: thing for thing, name in place.items()}
        return ", ".join(f"{name} {having} {owner[name]}" for name in names)

    return read


def told(task: st.Task) -> Reader:
    """The values stand in the instruction."""
    values = {key: int(value) for key, value in re.findall(r"([a-z]{5}) (-?\d+)[,.]", task.instruction)}
    return lambda said: f"sum so far: {sum(values[key] for key in said)}"


def lamp(said: list[str]) -> str:
    if "cut" in said:
        return "state dead"
    return f"state {'on' if len(said) % 2 else 'off'}"


def last_written(said: list[str]) -> str:
    return next((words.split()[1] for words in reversed(said) if words != "hold"), "0")


def joined(kept: list[str]) -> str:
    return f"last, the newest at the end: {', '.join(kept) or 'nothing yet'}"


def product(group: str) -> Reader:
    """By images: the listed permutations one after the other; IDs count the images in order."""
    elements = [tuple(images) for images in st.group(group).elements.tolist()]
    assert elements == sorted(elements)

    def read(said: list[str]) -> str:
        at = tuple(range(len(elements[0])))
        for element in numbers(said):
            at = tuple(elements[element][image] for image in at)
        return str(elements.index(at))

    return read


READERS: dict[str, Reader] = {
    "rtc": lambda said: f"ones minus zeros: {said.count('1') - said.count('0')}",
    "txc": lambda said: str(said.count("1") % 2),
    "fsm": lambda said: f"ones: {said.count('1')}" if said.count("1") < 3 else "ones: 3 or more",
    "xor_lag[k=3]": lambda said: f"last bits: {' '.join((['0'] * 4 + said)[-4:])}",
    "mod_counter[m=7]": lambda said: str(said.count("1") % 7),
    "flip_flop": last_written,
    "dyck": brackets,
    "dyck[kinds=3]": brackets,
    "cycle_navigation": lambda said: f"place {(said.count('right') - said.count('left')) % 5}",
    "even_pairs": lambda said: f"first bit {said[0]}, newest bit {said[-1]}" if said else "nothing yet",
    "modular_arithmetic": expression(5),
    "modular_arithmetic[m=3]": expression(3),
    "automaton[file={lamp}]": lamp,
    "track_the_stat.median": lambda said: str(sorted(numbers(said))),
    "track_the_stat.mode": lambda said: str({number: said.count(str(number)) for number in numbers(said)}),
    "stream.max": lambda said: str(max(numbers(said), default="nothing yet")),
    "stream.min": lambda said: str(min(numbers(said), default="nothing yet")),
    "stream.distinct": lambda said: f"shown: {', '.join(map(str, sorted({*numbers(said)}))) or 'nothing yet'}",
    "stream.sum_mod[m=12]": lambda said: str(sum(numbers(said)) % 12),
    "stream.xor": lambda said: str(functools.reduce(operator.xor, numbers(said), 0)),
    "stream.majority": lambda said: f"large minus small: {sum(1 if n >= 50 else -1 for n in numbers(said))}",
    "stream.window_median[k=3]": lambda said: joined(said[-3:]),
    "stream.echo[k=4]": lambda said: joined(said[-5:]),
    "variables": variables,
    "cups": cups(everything=False),
    "cups[items=all]": cups(everything=True),
    "boxes": boxes,
    "hands": people("holds the", "ball", "coin", "drum", "fork", "key"),
    "hands[n=3,items=all]": people("holds the", "ball", "coin", "drum"),
    "roles": people("is the", "cook", "pilot", "nurse", "clerk", "judge"),
    "roles[items=all]": people("is the", "cook", "pilot", "nurse", "clerk", "judge"),
    "roles[events=all]": people("is the", "cook", "pilot", "nurse", "clerk", "judge"),
    "dictionary_sum": told(st.task("dictionary_sum")),
    "dictionary_sum[k=4,dictionary=3]": told(st.task("dictionary_sum[k=4,dictionary=3]")),
    "s4": product("s4"),
    "a5": product("a5"),
}


def test_every_task_has_a_reader() -> None:
    """Of a regular expression only the number of a state can be said; test_task_members.py has one."""
    assert {text.partition("[")[0] for text in READERS} >= {*catalogue.CLASSES} - {"regex"}


@pytest.mark.parametrize("text", READERS)
def test_the_state_is_what_the_words_of_the_inputs_say(text: str, tmp_path: Path) -> None:
    (tmp_path / "lamp.yaml").write_text(LAMP)
    task, read = st.task(text.format(lamp=tmp_path / "lamp.yaml")), READERS[text]
    free = np.random.default_rng(2).integers(task.inputs, size=(20, 16)).tolist()
    for row, length in itertools.product([*task.sample(16, 20, seed=1).inputs.tolist(), *free], range(17)):
        said = [task.symbol_text(symbol) for symbol in row[:length]]
        assert task.state_text(row[:length]) == read(said), said
