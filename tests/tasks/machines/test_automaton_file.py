"""Automata from files: what they answer, how small they get, and files that are wrong."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as s

import statetrack as st
from statetrack.tasks.base import Task
from statetrack.tasks.machines.automaton_file import AutomatonFile, read_machine

LAMP = {
    "states": ["off", "on", "dead"],
    "alphabet": ["press", "cut"],
    "start": "off",
    "steps": {
        "off": {"press": "on", "cut": "dead"},
        "on": {"press": "off", "cut": "dead"},
        "dead": {"press": "dead", "cut": "dead"},
    },
    "answers": {"off": 0, "on": 1, "dead": 0},
}


def written(folder: Path, table: Any, name: str = "lamp.json") -> AutomatonFile:
    path = folder / name
    path.write_text(table if isinstance(table, str) else json.dumps(table))
    return AutomatonFile(file=str(path))


def changed(*path: str, value: Any = None) -> dict[str, Any]:
    """The lamp with one entry replaced, or taken out."""
    table = json.loads(json.dumps(LAMP))
    place = table
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return table


def test_the_docstring_works_an_example(tmp_path: Path) -> None:
    doc = inspect.getdoc(AutomatonFile) or ""
    yaml, inputs, answers = (doc[doc.index(key) :] for key in ("    states:", "    inputs", "    answers  "))
    task = written(tmp_path, inspect.cleandoc(yaml[: yaml.index("\n\n")]), "lamp.yaml")
    first = [text.split("\n")[0].split()[1:] for text in (inputs, answers)]
    assert task.targets([int(symbol) for symbol in first[0]]).tolist() == [int(answer) for answer in first[1]]
    same = written(tmp_path, LAMP)
    assert same.machine == task.machine


def test_names_in_yaml_are_text_whatever_they_look_like(tmp_path: Path) -> None:
    text = """
    states: [on, off, 1, null]
    alphabet: [0, yes]
    start: on
    steps: {on: {0: off, yes: 1}, off: {0: off, yes: null}, 1: {0: 1, yes: 1}, null: {0: on, yes: on}}
    answers: {on: 0, off: 1, 1: 2, null: ~}
    """
    task = written(tmp_path, text, "odd.yaml")
    batch = task.batch([0, 1, 0, 1, 0])
    assert batch.targets[0].tolist() == [1, 0, 0, 2, 2]
    assert batch.mask[0].tolist() == [1, 0, 1, 1, 1]
    assert task.outputs == 3
    assert task.symbol_text(1) == "yes"


def test_the_name_holds_the_hash_of_the_content(tmp_path: Path) -> None:
    task = written(tmp_path, LAMP)
    path = tmp_path / "lamp.json"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    assert task.name == f"automaton[file={path},sha256={digest}]"
    assert st.task(f"automaton[file={path}]") == st.task(task.name) == task
    path.write_text(json.dumps(changed("answers", "off", value=1)))
    with pytest.raises(st.BadInput, match=f"has changed: its sha256 begins with .*, not with {digest}"):
        st.task(task.name)
    # A task that was read once needs its file no more.
    path.unlink()
    kept = pickle.loads(pickle.dumps(task))
    assert np.array_equal(kept.sample(9, 4).targets, task.sample(9, 4).targets)


def test_a_path_with_blanks_and_commas(tmp_path: Path) -> None:
    task = written(tmp_path, LAMP, "a lamp, a button.json")
    assert st.task(task.name) == task


def test_sampling_and_asking(tmp_path: Path) -> None:
    task = written(tmp_path, LAMP)
    weighted = task.with_parameters(weights=(9, 1), ask="end")
    assert np.mean(weighted.sample(200, 200).inputs) == pytest.approx(0.1, abs=0.01)
    assert weighted.sample(20, 3).mask.sum() == 3
    batch = task.sample(30, 9)
    assert np.array_equal(batch.targets, Task.run(task, batch.inputs).targets)


Table = tuple[list[tuple[int, int]], list[int | None]]


def tables(states: int) -> s.SearchStrategy[Table]:
    state, answer = s.integers(0, states - 1), s.one_of(s.none(), s.integers(0, 2))
    answers = s.lists(answer, min_size=states, max_size=states).filter(lambda row: set(row) != {None})
    return s.tuples(s.lists(s.tuples(state, state), min_size=states, max_size=states), answers)


@settings(max_examples=60, deadline=None)
@given(s.integers(1, 6).flatmap(tables))
def test_random_machines_answer_as_their_table_and_are_the_smallest(
    table: Table,
) -> None:
    steps, answers = table
    names = [f"q{i}" for i in range(len(steps))]
    content = {
        "states": names,
        "alphabet": ["x", "y"],
        "start": "q0",
        "steps": {name: {"x": names[row[0]], "y": names[row[1]]} for name, row in zip(names, steps)},
        "answers": dict(zip(names, answers)),
    }
    automaton = read_machine(json.dumps(content).encode(), "random.json").automaton("random")

    def end(word: tuple[int, ...], state: int = 0) -> int:
        for symbol in word:
            state = steps[state][symbol]
        return state

    words = [word for n in range(6) for word in itertools.product((0, 1), repeat=n)]
    for word in words:
        state = 0
        for symbol in word:
            state = automaton.steps[state, symbol]
        assert automaton.answers[state] == (-1 if answers[end(word)] is None else answers[end(word)])
    # At most six states: words of five letters reach them all and tell all apart that differ.
    futures = {tuple(answers[end(v, end(u))] for v in words) for u in words}
    assert automaton.states == len(futures)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (changed("steps", "on", "cut"), "a hole: no step from state 'on' on symbol 'cut'"),
        (changed("steps", "dead"), "a hole: no step from state 'dead' on symbol 'press'"),
        (
            changed("steps", "on", "cut", value="daed"),
            "unknown state after 'on' on symbol 'cut' in .* 'daed'; did you mean dead",
        ),
        (changed("steps", "on", "cut", value=["dead"]), "unknown state after 'on' on symbol 'cut'"),
        (changed("steps", "on", "shake", value="on"), "unknown symbol in the steps of state 'on' in .* 'shake'"),
        (changed("steps", "broken", value={}), "unknown state in 'steps' of .* 'broken'"),
        (changed("steps", "on", value="off"), "the steps of state 'on' in .* should be a table"),
        (changed("steps", value="off"), "'steps' in .* should be a table"),
        (changed("start", value="of"), "unknown start of .* 'of'; did you mean off"),
        (changed("answers", "on"), "state 'on' in .* has no answer"),
        (
            changed("answers", "on", value="bright"),
            "state 'on' in .* has the answer 'bright'; it should be",
        ),
        (changed("answers", "on", value=-1), "has the answer '-1'"),
        (changed("answers", "on", value=10**9), r"should be a whole number 0\.\.100000, or null"),
        (changed("answers", "om", value=1), "unknown state in 'answers' of .* 'om'; known: dead, off, on"),
        (changed("answers", value={name: "null" for name in LAMP["states"]}), "has no answer in any state"),
        (changed("alphabet"), "has no 'alphabet'; it needs states, alphabet, start, steps, answers"),
        (changed("alphabet", value=[]), "'alphabet' in .* should be a list of names"),
        (changed("alphabet", value=["cut", "cut"]), "'cut' appears twice in 'alphabet'"),
        (changed("states", value=[["off"]]), "'states' in .* should be a list of names"),
        (changed("anwsers", value={}), "unknown key of .* 'anwsers'; did you mean answers"),
        ([1, 2], "should be a table with the keys"),
        ("{broken", "is not JSON: .* line 1"),
    ],
)
def test_files_that_are_wrong(table: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(st.BadInput, match=said) as caught:
        written(tmp_path, table)
    assert "\n" not in str(caught.value)


def test_yaml_that_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(st.BadInput, match=r"wrong.yaml, line 2: not valid YAML: expected"):
        written(tmp_path, "states: [a, b]\nalphabet: [x", "wrong.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00states")
    with pytest.raises(st.BadInput, match="not valid YAML"):
        AutomatonFile(file=str(tmp_path / "bytes.yaml"))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(st.BadInput, match=r"automaton: cannot read .*none.yaml: No such file"):
        st.task(f"automaton[file={tmp_path}/none.yaml]")
    with pytest.raises(st.BadInput, match=r"cannot read .*: Is a directory"):
        st.task(f"automaton[file={tmp_path}]")


def test_weights_must_fit_the_alphabet(tmp_path: Path) -> None:
    with pytest.raises(st.BadInput, match="3 weights are given for 2 input symbols"):
        written(tmp_path, LAMP).with_parameters(weights=(1, 1, 1))
