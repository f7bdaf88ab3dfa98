"""What theory says, on the command line, and what importing it brings along."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from statetrack.cli import main
from statetrack.tasks.catalogue import names, select


def out(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(line.split()) == 0
    return capsys.readouterr().out


def test_the_known_floors_by_one_command(capsys: pytest.CaptureFixture[str]) -> None:
    lines = out("floors", capsys).splitlines()
    assert lines[1].split() == ["16", "0.5731", "0.6713", "0.6713", "0.5000", "0.6877", "0.8830"]
    assert len(lines) == 6
    rows = json.loads(out("floors --json", capsys))
    assert [row["T"] for row in rows] == [16, 64, 256, 1024, 2048]
    assert round(rows[0]["rtc position"], 4) == 0.5731


def test_the_floors_of_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    text = out("floors s3 txc --length 8", capsys)
    for part in ("s3, length 8\n", "abelianisation", "0.333", "txc, length 8\n", "linear logit"):
        assert part in text
    assert [known["length"] for known in json.loads(out("floors s3 txc --length 8 --json", capsys))] == [8, 8]


def test_predictions_about_weights_and_about_training(capsys: pytest.CaptureFixture[str]) -> None:
    assert out("predict mamba2-4l txc", capsys).startswith("cannot: linear steps")
    row = out("predict mamba2-4l flip_flop", capsys)
    assert row.startswith("every length: ")
    assert "\n  bounded error  fades [proved]: " in row
    assert out("predict deltaproduct-2 s3 --training", capsys).startswith("fades: ")
    assert json.loads(out("predict mine.py:Model s3 --json", capsys))["outcome"] == "unknown"


def test_reflections(capsys: pytest.CaptureFixture[str]) -> None:
    a5, s7 = out("reflections a5 s7", capsys).splitlines()
    assert "a5         2 reflections per token" in a5
    assert "at most 6" in s7
    assert json.loads(out("reflections a5 s7 --json", capsys))["s7"]["exact"] is False


def test_documents(capsys: pytest.CaptureFixture[str]) -> None:
    """What no number can decide is refuted by its argument; the rest waits for numbers."""
    text = out("documents", capsys)
    assert "4.1-crossover: section 4.1: the crossover T = D n log T is at exp(D n)\n    refuted: by argument: " in text
    told = json.loads(out("documents --json", capsys))
    assert {entry["outcome"] for entry in told if entry["judged_by"]} == {"undecided"}
    by_argument = [entry for entry in told if entry["false"] and not entry["judged_by"]]
    assert [entry["outcome"] for entry in by_argument] == ["refuted"] * text.count("by argument: ")


def test_passports_alone_and_of_many_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    one = out("show txc --passport", capsys)
    assert one.startswith("== txc\nstates ")
    assert "C2, order 2" in one
    assert "An example" not in one
    assert out("show all --passport", capsys).count("== ") == len(list(names()))
    assert len(json.loads(out("show nc1_groups --passport --json", capsys))) == len(select("nc1_groups"))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("floors txd", "did you mean txc"),
        ("floors txc --length 0", "length 0 should lie in"),
        ("predict mamba2-4l", "Missing argument 'task'"),
        ("predict mamba2-4x txc", "unknown model 'mamba2-4x'; did you mean mamba2-4l"),
        ("reflections", "Missing argument"),
        ("reflections s55", "unknown group 's55'"),
        ("documents 4.1", "4.1 is not there; a folder of results is needed"),
        ("show txd --passport", "did you mean txc"),
    ],
)
def test_bad_input_is_one_line_and_2(line: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert problem in captured.err


def test_theory_needs_numpy_alone() -> None:
    code = "import sys, statetrack.theory; print(sorted({'torch', 'numba', 'scipy', 'yaml'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
