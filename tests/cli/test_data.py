"""`statetrack data --out -`: rows on the standard output and nothing else, also into a pipe that closes early."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-m", "statetrack"]


def data(*words: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*PROGRAM, "data", *words], cwd=folder, capture_output=True, check=False)


@pytest.mark.parametrize("words", [["s4", "--length", "3..9", "--prefixes"], ["rtc", "--length", "7"]])
def test_rows_on_the_standard_output_are_those_of_a_file(tmp_path: Path, words: list[str]) -> None:
    told = data(*words, "--count", "40", "--out", "-", folder=tmp_path)
    assert (told.returncode, told.stderr) == (0, b"")
    assert list(tmp_path.iterdir()) == []
    assert all(json.loads(line) for line in told.stdout.splitlines())
    assert data(*words, "--count", "40", "--out", "rows.jsonl", folder=tmp_path).returncode == 0
    assert (tmp_path / "rows.jsonl").read_bytes() == told.stdout


def test_a_reader_that_has_seen_enough_is_no_error_to_tell_of(tmp_path: Path) -> None:
    words = ["data", "s5", "--length", "500", "--count", "20000", "--out", "-"]
    with subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        assert writer.stdout
        assert writer.stderr
        assert writer.stdout.readline().startswith(b'{"input_sequence": "')
        writer.stdout.close()
        assert writer.stderr.read() == b""


def test_what_cannot_be_made_leaves_the_standard_output_empty(tmp_path: Path) -> None:
    told = data("txc", "--out", "-", folder=tmp_path)
    assert (told.returncode, told.stdout) == (2, b"")
    assert told.stderr.count(b"\n") == 1
