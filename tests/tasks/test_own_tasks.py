"""Tasks of one's own, as file.py:Class or package.module:Class: what they are called, and what is wrong with them."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import statetrack as st
from statetrack import trust
from statetrack.cli import main
from statetrack.errors import BadInput
from statetrack.results import Store
from statetrack.tasks import check_kept, given_task, trusted_task
from statetrack.tasks.finite import BinaryTask, FiniteTask
from statetrack.theory import floors
from statetrack.verdicts.measurements import end_floor

HEAD = """
from dataclasses import dataclass
from statetrack import Task
from statetrack.tasks.finite import BinaryTask, FiniteTask

"""
MINE = (
    HEAD
    + '''
@dataclass(frozen=True, kw_only=True)
class Mine(FiniteTask, BinaryTask):
    """Whether the number of ones so far is a multiple of k."""

    k: int = 2
    base_name = "multiple"
    outputs = 2

    def step(self, state, symbol):
        return (state + symbol) % self.k

    def answer(self, state):
        return int(state == 0)
'''
)


@dataclass(frozen=True, kw_only=True)
class Twin(FiniteTask, BinaryTask):
    """The same class, in this file."""

    k: int = 2
    base_name = "multiple"
    outputs = 2

    def step(self, state: int, symbol: int) -> int:
        return (state + symbol) % self.k

    def answer(self, state: int) -> int:
        return int(state == 0)


@pytest.fixture(autouse=True)
def new_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One who has run nothing yet, in a folder with a task of theirs."""
    monkeypatch.setenv(trust.SETTINGS, str(tmp_path / "settings"))
    monkeypatch.setattr(trust, "_remembered", set())
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE)


def test_the_name_holds_the_options_and_the_hash() -> None:
    sha256 = hashlib.sha256(MINE.encode()).hexdigest()[:8]
    assert st.task("mine.py:Mine").name == f"mine.py:Mine[sha256={sha256}]"
    third = st.task("mine.py:Mine[k=3,p=0.2]")
    assert third.name == f"mine.py:Mine[k=3,p=0.2,sha256={sha256}]"
    assert st.task(third.name) == third
    assert third != st.task("mine.py:Mine")
    assert third.targets([1, 1, 1, 0]).tolist() == [0, 0, 1, 1]
    assert third.title == "multiple"
    assert third.instruction == "Whether the number of ones so far is a multiple of k."


def test_rows_depend_on_the_task_and_not_on_where_its_file_lies(tmp_path: Path) -> None:
    Path("deep").mkdir()
    (tmp_path / "deep" / "other.py").write_text(MINE + "# another file\n")
    tasks = [st.task("mine.py:Mine[k=3]"), st.task("deep/other.py:Mine[k=3]"), Twin(k=3)]
    one, *others = [task.sample(16, 8, seed=1) for task in tasks]
    for other in others:
        assert np.array_equal(one.inputs, other.inputs)
        assert np.array_equal(one.targets, other.targets)


def test_an_edited_file_is_another_task_and_the_old_text_is_refused() -> None:
    before = st.task("mine.py:Mine")
    Path("mine.py").write_text(MINE.replace("state == 0", "state != 0"))
    after = st.task("mine.py:Mine")
    assert after.name != before.name
    assert after != before
    assert (before.targets([1]).tolist(), after.targets([1]).tolist()) == ([0], [1])
    with pytest.raises(BadInput) as caught:
        st.task(before.name)
    was, now = (name[-9:-1] for name in (before.name, after.name))
    assert str(caught.value) == (f"the code of mine.py:Mine has changed: its sha256 begins with {now}, not with {was}")


def test_what_it_imports_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    Path("sizes_of_mine.py").write_text("K = 2\n")
    Path("mine.py").write_text(
        MINE.replace("k: int = 2", "k: int = sizes_of_mine.K").replace(HEAD, f"import sizes_of_mine{HEAD}")
    )
    names = {st.task(address).name for address in ("mine.py:Mine", "mine:Mine")}
    assert all("sha256=" in name for name in names)
    Path("sizes_of_mine.py").write_text("K = 3\n")
    for address in ("mine.py:Mine", "mine:Mine"):
        assert st.task(address).k == 3
        assert st.task(address).name not in names
    for name in ("mine", "sizes_of_mine"):
        sys.modules.pop(name, None)


STEP = "    def step(self, state, symbol):\n        return "
RUN = "\n    def run(self, inputs, state=None):\n        return super()."
WRONG = {
    "fails on the way": (STEP + "{}[symbol]", r"mine\.py:Wrong fails: KeyError: \d \(mine\.py, line 12\)"),
    "has no such class": (STEP + "7", "the answer in state 7 is 7; it should be a whole number in 0..1, or None where"),
    "answers with a half": (STEP + "0.5", "the answer in state 0.5 is 0.5"),
    "has a list for a state": (STEP + "[]", "a state is a list, which cannot be hashed"),
    "steps by chance": (STEP + "object()", "two steps from one state on one input"),
    "has no step": ("    pass", "cannot build mine.py:Wrong: TypeError: Can't instantiate abstract class Wrong"),
    "has no inputs": ("    inputs = 0\n" + STEP + "0", "inputs is 0; it should be a whole number of at least 1"),
    "draws no inputs": ("    symbol_weights = (1, 1, 1)\n" + STEP + "0", "is outside 0..1 of mine.py:Wrong"),
    "runs otherwise": (
        STEP + "symbol" + RUN + "run(1 - inputs, state)",
        "run answers differently from step and answer",
    ),
    "forgets in pieces": (STEP + "state ^ symbol" + RUN + "run(inputs)", "run in two pieces answers differently"),
    "takes a dict": (
        "    k: dict = None\n" + STEP + "0",
        "parameter k should be of type int, float, bool, str or tuple",
    ),
    "takes the hash": ("    sha256: str = ''\n" + STEP + "0", "a parameter 'sha256', which is the hash of its code"),
    "leaves": (STEP + "exit(3)", r"it calls sys.exit\(3\) \(mine.py, line 12\)"),
}


@pytest.mark.parametrize(("body", "message"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_said_before_it_is_used(body: str, message: str) -> None:
    kind = "@dataclass(frozen=True, kw_only=True)\nclass Wrong(BinaryTask):\n    outputs = 2\n\n\n"
    Path("mine.py").write_text(HEAD + kind + body)
    with pytest.raises(BadInput, match=message) as caught:
        st.task("mine.py:Wrong")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mine.py", "a task from a file needs its class: mine.py:Class"),
        ("none.py:Mine", "no file none.py"),
        ("mine.py:Nothing", "mine.py has no 'Nothing'"),
        ("mine.py:dataclass", "is a function, and not a class of statetrack.Task"),
        ("os:system", "is a builtin_function_or_method, and not a class of statetrack.Task"),
        ("mine.py:Mine[n=3]", "mine.py:Mine has no parameter 'n'; it has ask, p, k"),
        ("mine.py:Mine[k=three]", "mine.py:Mine: k=three should be a whole number"),
        ("broken.py:Mine", r"broken.py does not run: ZeroDivisionError: division by zero \(broken.py, line 2\)"),
        ("syntax.py:Mine", r"syntax.py does not run: SyntaxError: .* \(syntax.py, line 1\)"),
        ("bare.py:Mine", "needs @dataclass"),
        ("bare.py:Inherits", "needs @dataclass"),
    ],
)
def test_texts_that_name_no_task(text: str, message: str) -> None:
    Path("broken.py").write_text("import math\n1 / 0\n")
    Path("syntax.py").write_text("class Mine(:\n")
    step = "    outputs = 2\n    def step(self, state, symbol):\n        return 0\n"
    bare = f"class Mine(BinaryTask):\n    k: int = 2\n{step}\nclass Inherits(FiniteTask, BinaryTask):\n{step}"
    Path("bare.py").write_text(HEAD + bare)
    with pytest.raises(BadInput, match=message) as caught:
        st.task(text)
    assert "\n" not in str(caught.value)


LATE = (
    HEAD
    + """
class Late(BinaryTask):
    outputs = 2

    def step(self, state, symbol):
        return {count: count + 1 for count in range(20)}[state]

    def answer(self, state):
        return 0
"""
)


def test_what_fails_late_is_one_line_too(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").write_text(LATE)
    late = st.task("mine.py:Late")
    line = "mine.py:Late fails: KeyError: 20 (mine.py, line 11)"
    with pytest.raises(BadInput) as caught:
        floors(late, 32)
    assert str(caught.value) == line
    assert main(["floors", "mine.py:Late", "--length", "32"]) == 2
    assert capsys.readouterr().err == f"statetrack: {line}\n"
    assert main(["-v", "floors", "mine.py:Late", "--length", "32"]) == 2
    assert "return {count: count + 1 for count in range(20)}[state]" in capsys.readouterr().err
    assert end_floor(late.name, 32) is None  # a report goes on


def test_code_that_a_file_names_is_not_run() -> None:
    Path("mine.py").write_text(MINE + "\nopen('it ran', 'w')\n")
    with pytest.raises(trust.Untrusted, match=r"mine\.py:Mine is code of a file that may come from elsewhere"):
        trusted_task("mine.py:Mine[k=3]")
    assert not Path("it ran").exists()
    assert end_floor(st.task("mine.py:Mine").name, 16) is not None
    assert trusted_task("mine.py:Mine[k=3]").outputs == 2  # it was named, and has not changed
    Path("mine.py").write_text(MINE + "\n# changed\n")
    with pytest.raises(trust.Untrusted):
        trusted_task("mine.py:Mine")


def test_a_floor_that_could_not_be_known_is_looked_for_again() -> None:
    Path("mine.py").write_text(MINE + "# of another user\n")
    sha256 = hashlib.sha256(Path("mine.py").read_bytes()).hexdigest()[:8]
    name = f"mine.py:Mine[sha256={sha256}]"
    assert end_floor(name, 16) is None
    assert st.task("mine.py:Mine").name == name
    assert end_floor(name, 16) == pytest.approx(0.5)


def test_an_object_is_used_and_not_kept() -> None:
    assert given_task(Twin(k=3)) == Twin(k=3)
    with pytest.raises(BadInput) as caught:
        given_task(Twin(), kept=True)
    assert str(caught.value) == (
        "Twin given as an object does not say where its code is, so its results cannot be kept: "
        "give its name, such as file.py:Twin, or leave out `out`"
    )
    for kept in (st.task("txc"), st.task("s5"), st.task("mine.py:Mine")):
        check_kept(kept)
    with pytest.raises(BadInput, match=r"not a ABCMeta: Twin\(\) would be one"):
        given_task(Twin)  # type: ignore[arg-type]


VERBS = {
    "show": ["show", "mine.py:Mine[k=3]", "--length", "8"],
    "passport": ["show", "--passport", "mine.py:Mine[k=3]"],
    "floors": ["floors", "mine.py:Mine[k=3]", "--length", "8"],
    "predict": ["predict", "gru", "mine.py:Mine[k=3]"],
    "data": ["data", "mine.py:Mine[k=3]", "--length", "8", "--count", "3", "--out", "rows.jsonl"],
    "ask": ["ask", "mine.py:Mine[k=3]", "--solver", "random", "--samples", "3", "--length", "4", "--out", "asked"],
    "dry run": ["ask", "mine.py:Mine[k=3]", "--model", "x/y", "--samples", "3", "--length", "4", "--dry-run"],
}


@pytest.mark.parametrize("line", VERBS.values(), ids=VERBS.keys())
def test_every_verb_takes_it(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line) == 0
    assert capsys.readouterr().out
    if line[0] == "data":
        assert json.loads(Path("rows.jsonl.meta.json").read_text())["task"] == st.task("mine.py:Mine[k=3]").name
    if line[0] == "ask" and "asked" in line:
        assert {record.cell.task for record in Store.existing(Path("asked")).records()} == {
            st.task("mine.py:Mine[k=3]").name
        }
        assert main(["results", "asked"]) == 0
        assert "mine.py:Mine[k=3]  random" in capsys.readouterr().out


def test_a_person_plays_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    own = st.task("mine.py:Mine")
    monkeypatch.setattr("builtins.input", lambda prompt: "9")
    assert main(["play", "mine.py:Mine", "--length", "3", "--history", "shown"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert own.instruction in said
    assert "max_length 0 of 3" in said
