"""The command line of theory, and what importing it brings along."""

from __future__ import annotations

import subprocess
import sys

import pytest

from statetrack.theory.__main__ import main


def test_the_known_floors_by_one_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["floors"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["16", "0.5731", "0.6713", "0.6713", "0.5000", "0.6877", "0.8830"]
    assert len(lines) == 6


def test_the_other_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["floors", "s3", "--length", "8"]) == 0
    assert main(["passport", "txc"]) == 0
    assert main(["predict", "mamba2-4l", "txc"]) == 0
    assert main(["reflections", "a5", "s7"]) == 0
    assert main(["documents"]) == 0
    out = capsys.readouterr().out
    for part in ("abelianisation", "C2, order 2", "cannot: every entry", "at most 6", "FALSE 4.1-crossover"):
        assert part in out


def test_bad_input_is_one_line_and_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["passport", "txd"]) == 2
    assert main(["predict", "mamba2-4l"]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 2
    assert "did you mean" in errors[0]


def test_theory_needs_numpy_alone() -> None:
    code = "import sys, statetrack.theory; print(sorted({'torch', 'numba', 'scipy', 'yaml'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
