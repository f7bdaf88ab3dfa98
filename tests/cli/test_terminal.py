"""What a person sees in a narrow terminal: nothing is cut off, and numbers stay whole."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statetrack import progress
from statetrack.cli import VERBS, main, output
from statetrack.formatting import short_names
from statetrack.results import Cell, Store, TrainingRecord
from statetrack.results.diagnosis import Comparison
from statetrack.results.evaluations import BreakingWord, OnRows, OnWords, Power
from statetrack.results.records import Training

LONG = "e88-published-1l-small-notanh"
OWN = "runs/own.py:Counter[width=8,sha256=4f46d472]"

Terminal = Callable[[int], None]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """A terminal of a width."""

    def open_(width: int) -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TERM", "xterm")  # rich takes any other to have 80 columns

    return open_


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What was printed, without colours and the spaces at the end."""
    return [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in capsys.readouterr().out.splitlines()]


def trained(folder: Path, *subjects: str) -> Store:
    store = Store(folder)
    for subject in subjects:
        for length in (8, 16):
            for name in ("curriculum", "design"):
                cell = Cell("txc", subject, length, 0, {"name": name})
                rows = OnRows(length=length, seed=0, accuracy=0.12345, floor=0.5, tail_accuracy=0.98765)
                training = Training(learning_rate=1e-3, steps=1, parameters=1)
                word = BreakingWord(parts=(Power([1]), Power([0, 1, 1, 0], 1234)), family="f", expected=1, given=0)
                words = OnWords(seed=0, budget=10**6, words=9, wrong=1, breaking=word)
                held = (rows, words) if length == 16 else (rows,)
                store.write(TrainingRecord(cell=cell, status="diverged", training=training, evaluations=held))
    return store


def test_results_fit_80_columns(tmp_path: Path, terminal: Terminal, capsys: pytest.CaptureFixture[str]) -> None:
    trained(tmp_path / "out", LONG, OWN)
    terminal(80)
    assert main(["results", str(tmp_path / "out")]) == 0
    shown = lines(capsys)
    assert max(map(len, shown)) <= 80
    assert not any("…" in line for line in shown)
    headings = [f"txc, {name}, {protocol}, 1 parameter" for name in (LONG, "own.py:Counter[width=8]")
                for protocol in ("curriculum", "design")]  # fmt: skip
    assert [line for line in shown if line.startswith("txc")] == headings
    rows = [line.split() for line in shown if "diverged" in line]
    numbers = ["0", "diverged", "0.1235", "0.5000", "0.9877", "no"]
    assert rows == [["8", *numbers], ["16", *numbers, "1", "(0", "1", "1", "0", "..."]] * 4
    terminal(200)
    assert main(["results", str(tmp_path / "out")]) == 0
    assert lines(capsys)[0].split() == ["task", "subject", "protocol", "size", "length", "seed", "status", "accuracy",
                                        "floor", "tail_accuracy", "solved", "broken", "by"]  # fmt: skip


def test_names_are_short_for_people_and_whole_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained(tmp_path / "out", OWN)
    assert main(["results", str(tmp_path / "out")]) == 0
    assert "sha256" not in capsys.readouterr().out
    assert main(["results", str(tmp_path / "out"), "--csv", "-"]) == 0
    assert OWN in capsys.readouterr().out
    edited = OWN.replace("4f46", "0000")
    assert short_names(["mlp", OWN, edited]) == {"mlp": "mlp", OWN: OWN, edited: edited}
    lamp = "automaton[file=here/lamp.yaml,sha256=01234567]"
    assert short_names([lamp, "own.py:A[sha256=01234567]"]) == {
        lamp: "automaton[file=lamp.yaml]",
        "own.py:A[sha256=01234567]": "own.py:A",
    }


def test_long_cells_are_broken_and_a_table_that_fits_nowhere_is_a_list(
    terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal(44)
    output.print_table(["model", "accuracy", "why"], [["x" * 20, "0.1234", "word " * 9], ["mlp", "0.5000", ""]])
    shown = lines(capsys)
    assert max(map(len, shown)) <= 44
    assert sum(line.count("word") for line in shown) == 9
    assert sum(line.count("x") for line in shown) == 20
    assert sum(line.count("0.1234") for line in shown) == 1
    output.print_table(list("abcdefgh"), [["0.1234"] * 8])
    assert lines(capsys) == [f"{name}  0.1234" for name in "abcdefgh"]


SHORT = ["--set", "check_every=2", "--set", "most_checks=1", "--set", "polish=2", "--set", "batch=4"]
BARE = """
import torch

class Bare(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.table = torch.nn.Embedding(inputs, outputs)

    def forward(self, ids):
        return self.table(ids)
"""


@pytest.mark.needs("torch")
def test_training_fits_80_columns_and_says_why_there_is_no_stream(
    tmp_path: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bare.py").write_text(BARE)
    monkeypatch.chdir(tmp_path)
    terminal(80)
    train = ["train", "txc", "bare.py:Bare", "--length", "8", "--out", "out", *SHORT]
    assert main([*train, "--seeds", "2", "--stream", "64"]) == 0
    shown = lines(capsys)
    assert shown[0] == "txc, bare.py:Bare: 4 parameters, it shows no state of constant size"
    head = next(place for place, line in enumerate(shown) if line.startswith("seed  accuracy  95 %"))
    for row in shown[head + 1 : head + 3]:
        assert len(row.split()) == 10  # the interval is three words, and on the line of its accuracy
    (reason,) = [line for line in shown if line.startswith("no stream: ")]
    assert "a class of your own does by initial_state" in reason
    assert max(len(line) for line in shown if line != reason) <= 80
    assert shown[-2:] == ["2 results in out", "Next: statetrack diagnose out, statetrack report out --open"]
    assert main([*train, "--seed", "5"]) == 0
    assert "1 result in out" in lines(capsys)


def diagnosed(model: str, sentence: str) -> dict[str, Any]:
    return {
        "key": "0" * 20, "task": "txc", "model": model, "trained": 64, "seed": 0, "conclusion": "never represented",
        "sentence": sentence, "sentences": [sentence], "at_90": None, "streamed": 16384, "predicted_at_90": 12345.0,
        "machine_equal": True,
    }  # fmt: skip


@pytest.mark.needs("torch")
def test_a_diagnosis_keeps_its_columns_in_80(
    tmp_path: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence = "It fades: right up to about 278 steps, " + "and so on, " * 9
    pattern = {"section": "6.1, accuracy by position", "says": "E88: flat over positions", "task": "txc",
               "subject": LONG, "outcome": "confirmed", "why": "first quarter 1, last quarter 1"}  # fmt: skip
    cells = [diagnosed(LONG, sentence), diagnosed(OWN, sentence)]
    found = Comparison(cells=cells, left_out=[], ablations=[], patterns=[pattern])
    monkeypatch.setattr("statetrack.verdicts.comparison.compare", lambda *_: found)
    monkeypatch.chdir(tmp_path)
    terminal(80)
    assert main(["diagnose", "."]) == 0
    shown = lines(capsys)
    own = "own.py:Counter[width=8]"
    told = [f"txc, {name}, trained at 64, seed 0: {sentence}".rstrip() for name in (LONG, own)]
    assert [line for line in shown if "It fades" in line] == told  # a sentence is no column
    assert max(len(line) for line in shown if line not in told) <= 80
    assert f"txc, {LONG}" in shown
    row = "64       0     never represented  beyond 16,384  12,345     the task's"
    assert shown.count(row) == 2
    assert f"txc   {LONG}  confirmed  first quarter 1, last quarter 1" in shown


@pytest.mark.needs("torch")
def test_outside_a_terminal_progress_is_a_line_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = "gru[dim=4,hidden=8]"
    arguments = ["train", "txc", model, "--length", "8", "--out", str(tmp_path), *SHORT]
    monkeypatch.setattr(progress, "SECONDS", 1000.0)
    assert main(arguments) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "SECONDS", 0.0)
    assert main(["diagnose", str(tmp_path), "--stream", "64"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert f"diagnose: 0 of 1, txc, {model}, length 8, seed 0: positions" in said
    assert said[-1].startswith("diagnose: 1 of 1")
    assert main([*arguments, "--seed", "1"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("train: 0%, length ")
    assert any(line.startswith("train: testing: ") for line in said)


def test_the_first_page_of_help_is_whole(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert not [line for line in shown.splitlines() if line.endswith("...") and "[ARGS]" not in line]
    assert all(f"  {verb} " in shown for verb in VERBS)


@pytest.mark.parametrize("found", [True, False])
def test_a_page_that_no_browser_opens_is_named(
    found: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: asked.append(address) or found)
    output.open_page(tmp_path / "page.html")
    assert asked == [(tmp_path / "page.html").as_uri()]
    assert ("no browser was found" in capsys.readouterr().err) == (not found)


def test_no_verb_prints_past_the_one_place_that_cleans() -> None:
    """Names of files and texts of records may hold what a terminal obeys; `say` writes that out."""
    for path in sorted(Path(output.__file__).parent.glob("*.py")):
        tree = ast.parse(path.read_text())
        calls = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Call)
                 and isinstance(node.func, ast.Name) and node.func.id == "print"]  # fmt: skip
        assert not calls or path.name == "output.py", (path.name, calls)


def test_a_file_whose_name_turns_the_terminal_red(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "\x1b[31mred.json").write_text("{}")
    (tmp_path / f"{'a' * 20}.json").write_text('{"kind": "\x1b]0;title\x07"}')
    for verb in ("status", "check", "results"):
        main([verb, str(tmp_path)])
        said = capsys.readouterr()
        assert "\x1b" not in said.out + said.err
        assert "\x07" not in said.out + said.err


@pytest.mark.parametrize("width", [60, 80])
def test_a_bar_keeps_its_count_and_its_clock_and_cuts_the_words(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    with progress.progress("bar count spent words", verb="evaluate") as move:
        now = "stream 1,041,408 of 1,048,576; s3_composition, own.py:Counter, length 12, seed 1"
        move(completed=1, total=6, description=now)
    shown = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err))
    last = [line for line in shown if line][-1]
    assert "━" in last
    assert " 1/6 0:00:00 stream 1,041," in last
    assert last.endswith("…")
    assert len(last) <= width
