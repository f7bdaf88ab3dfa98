"""A small fixed share of `python -m tests.fuzz`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from statetrack.cli import VERBS
from tests import fuzz
from tests.fuzz import MOST_BYTES, MOST_SECONDS, Ended
from tests.fuzz_inputs import LINES, Case, Special, command_lines

COUNT = 30


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (Ended(2, 0.1, 0, "", "statetrack: no"), ""),
        (Ended(2, 0.1, 0, "", ""), "exit code 2 without a line"),
        (Ended(2, 0.1, 0, "", "statetrack: no\nand more"), "exit code 2 without a line"),
        (Ended(0, 0.1, 0, "a\x1b[2Jb", ""), "the control character '\\x1b' is printed"),
        (Ended(1, 0.1, 0, "", "Traceback (most recent call last):\n  x\nKeyError: 1"), "traceback: KeyError: 1"),
        (Ended(-9, MOST_SECONDS, 0, "", ""), "no end after 20 s"),
        (Ended(-9, 1.0, 0, "", ""), "exit code -9"),
        (Ended(0, 1.0, MOST_BYTES + 1, "", ""), "2.0 GiB"),
    ],
)
def test_what_is_a_problem(ended: Ended, said: str) -> None:
    assert ended.problem == said


def test_problems_of_one_kind_are_shown_once() -> None:
    one, other = (Ended(0, 0.1, 0, f"a{sign}", "") for sign in "\x01\x02")
    assert one.kind == other.kind
    places = (f'Traceback (most recent call last):\n  File "/x/a.py", line {n}, in f\nKeyError: 1' for n in (1, 1, 2))
    assert len({Ended(1, 0.1, 0, "", text).kind for text in places}) == 2


def test_every_verb_is_tried() -> None:
    """A new verb needs a line that is well in `LINES`, and an end in `ENDS` where it could take long."""
    assert LINES.keys() == VERBS.keys()


def test_a_case_that_fails_is_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(case: Case, folder: Path) -> Ended:
        bad = "²" in case.arguments
        return Ended(1, 0.1, 0, "", "Traceback (most recent call last):\nKeyError: 1" if bad else "")

    monkeypatch.setattr(fuzz, "run", run)
    found = fuzz.search(command_lines("list").map(Case), 2000, 0)
    ((case, ended),) = found.smallest.values()
    assert ended.problem == "traceback: KeyError: 1"
    assert sorted(case.arguments) in (["list", "tasks", "²"], ["list", "²"])


def test_a_case_can_be_kept_and_run_again(tmp_path: Path) -> None:
    tree = {"a/b": b"\0\xff", "l": Special("link", "a"), "p": Special("pipe"), "f": Special("folder")}
    case = Case(["show", "\x1b\U0001f99c"], tree, {"a/b": b"\0", "gone": b""})
    case.write(tmp_path / "case.json")
    again = Case.read(tmp_path / "case.json")
    assert (again.arguments, again.tree) == (case.arguments, tree)
    again.put(tmp_path / "there")
    assert (tmp_path / "there/l/b").read_bytes() == b"\0\xff"
    assert (tmp_path / "there/p").is_fifo()
    assert "gone is missing" in case.shown


@pytest.mark.skipif(sys.platform != "linux", reason="cases are forked")
def test_generated_inputs() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--count", str(COUNT)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[0]) >= COUNT
