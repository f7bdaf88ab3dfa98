"""A small fixed share of `python -m tests.fuzz`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.fuzz import MOST_BYTES, MOST_SECONDS, Ended

COUNT = 40


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (Ended(2, 0.1, 0, "", "statetrack: no"), ""),
        (Ended(2, 0.1, 0, "", ""), "exit code 2 without a line"),
        (Ended(1, 0.1, 0, "", "Traceback (most recent call last):\n  x\nKeyError: 1"), "traceback: KeyError: 1"),
        (Ended(-9, MOST_SECONDS, 0, "", ""), "no end after 20 s"),
        (Ended(-9, 1.0, 0, "", ""), "exit code -9"),
        (Ended(0, 1.0, MOST_BYTES + 1, "", ""), "2.0 GiB"),
    ],
)
def test_what_is_a_problem(ended: Ended, said: str) -> None:
    assert ended.problem == said


@pytest.mark.skipif(sys.platform != "linux", reason="cases are forked")
def test_generated_inputs() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--count", str(COUNT)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    assert f"{COUNT} cases, 0 problems" in done.stdout, done.stdout + done.stderr
