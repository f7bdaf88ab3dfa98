"""Bad input from the command line: exit code 2, one line, no traceback, and no file that was not there before."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from statetrack.cli import main

BAD = [
    ("data s55 --length 5 --out a.jsonl", "unknown task 's55'; did you mean s5"),
    ("data psl2_44_composition --length 5 --out a.jsonl", "did you mean psl2_4_composition"),
    ("data s5xs99 --length 5 --out a.jsonl", "unknown group 's99'; did you mean s9"),
    ("show fms", "unknown task 'fms'; did you mean fsm"),
    ("show fsm[q=3]", "fsm has no parameter 'q'; it has"),
    ("show fsm[k=x]", "fsm: k=x should be a whole number"),
    ("show fsm[k=3", "does not end with ']'"),
    ("show regex", "regex needs pattern"),
    ("show nc1_groups", "`statetrack list nc1_groups` lists them"),
    ("show automaton[file=none.yaml]", "none.yaml"),
    ('show regex[pattern="(ab"]', "(ab"),
    ("show <[1,0,2],[1,0]>", "generator 2 has degree 2, but generator 1 has degree 3"),
    ("show <[0,0,1]>", "0 appears twice"),
    ("list taks", "did you mean tasks"),
    ("data s5 --length 0 --out a.jsonl", "length 0 should lie in 1..16777216"),
    ("data s5 --length -1 --out a.jsonl", "length -1 should lie in 1..16777216"),
    ("data s5 --length 1000000000 --out a.jsonl", "length 1000000000 should lie in 1..16777216"),
    ("data s5 --length 9..3 --out a.jsonl", "smaller end"),
    ("data s5 --length many --out a.jsonl", "3..1024"),
    ("data s5 --out a.jsonl", "needs a length"),
    ("data s5 --length 5 --count 0 --out a.jsonl", "count 0 should be at least 1"),
    ("data s5 --length 5 --count x --out a.jsonl", "'--count'"),
    ("data s5 --length 5 --seed -3 --out a.jsonl", "seed -3 not negative"),
    ("data track_the_stat.mode --seed 99999999999999999999999 --out a.jsonl", "should be at most 9223372036854775807"),
    ("data track_the_stat.mode --seed 9223372036854775807 --out a.jsonl", "should be at most 9223372036854775807"),
    ("data s5 --length 5 --seed 9223372036854775808 --out a.jsonl", "should be at most 9223372036854775807"),
    ("data s5 --length 5 --split exam --out a.jsonl", "train, validation, test"),
    ("data s5 --length 5 --convention french --out a.jsonl", "mathematical, published"),
    ("data txc --length 5 --convention published --out a.jsonl", "is for groups"),
    ("data s5 --length 5 --out a.csv", "should end in .jsonl or .parquet"),
    ("data s5 --length 5 --out none/a.jsonl", "none does not exist"),
    ("data s5 --length 5 --out file.txt/a.jsonl", "file.txt is not a folder"),
    ("data s5 --length 5 --out folder.jsonl", "it is a folder"),
    ("data s5 --length 5 --hf file.txt", "it is a file"),
    ("data s5 --length 5 --hf full", "holds other files, such as thesis.tex"),
    ("data s5 --length 5", "give one of the two"),
    ("data s5 --length 5 --out a.jsonl --hf b", "give one of the two"),
    ("data s5 --length 5 --colour red --out a.jsonl", "--colour"),
    ("data", "Missing argument"),
    ("sing", "No such command"),
    ("audit nowhere", "nowhere does not exist"),
    ("audit both", "both holds data files (rows.jsonl) and a data set for load_from_disk (saved): audit one at a time"),
    ("audit full", "full holds no .jsonl or .parquet file"),
    ("audit broken.jsonl --group s3", "row 2: broken JSON"),
    ("audit broken.jsonl --group s33", "unknown group 's33'; did you mean s3"),
    ("audit file.txt --group s3", "file.txt"),
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "file.txt").write_text("words")
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("years of work")
    (tmp_path / "both" / "saved").mkdir(parents=True)
    (tmp_path / "both" / "saved" / "state.json").write_text("{}")
    (tmp_path / "both" / "rows.jsonl").write_text('{"input_sequence": "1", "target": "1"}\n')
    (tmp_path / "broken.jsonl").write_text('{"input_sequence": "1", "target": "1"}\n{"input_seq')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(error: str) -> str:
    """The one line, which is all there may be."""
    assert error.startswith("statetrack: ")
    assert error.count("\n") == 1
    assert error.endswith("\n")
    assert "Traceback" not in error
    return error


@pytest.mark.parametrize(("line", "problem"), BAD, ids=[line for line, _ in BAD])
def test_bad_input_is_one_line(place: Path, line: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(place.rglob("*"))
    assert main(line.split()) == 2
    captured = capsys.readouterr()
    assert problem in refused(captured.err)
    assert captured.out == ""
    assert sorted(place.rglob("*")) == before


def statetrack(*arguments: str, **more: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "statetrack", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)  # type: ignore[call-overload, no-any-return]


def test_bad_input_of_the_real_command(place: Path) -> None:
    run = statetrack("data", "s55", "--length", "5", "--out", "a.jsonl")
    _, error = run.communicate()
    assert run.returncode == 2
    assert "did you mean" in refused(error)


@pytest.mark.parametrize("target", ["--out=a.jsonl", "--out=a.parquet", "--hf=a"])
def test_a_disk_that_takes_no_more_leaves_no_half_file(place: Path, target: str) -> None:
    before = sorted(place.rglob("*"))

    def small_files() -> None:  # as a full disk would, this lets a write fail halfway
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    environment = {**os.environ, "NUMBA_CACHE_DIR": "", "STATETRACK_NUMBA": "0"}
    run = statetrack("data", "s5", "--length=500", "--count=2000", target, preexec_fn=small_files, env=environment)
    _, error = run.communicate()
    assert run.returncode == 2, error
    assert "cannot be written: File too large" in refused(error)
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize(("number", "target"), [(signal.SIGINT, "--out=a.jsonl"), (signal.SIGTERM, "--hf=a")])
def test_an_interrupt_leaves_no_half_file(place: Path, number: signal.Signals, target: str) -> None:
    before = sorted(place.rglob("*"))
    run = statetrack("data", "s5", "--length=500", "--count=100000000", target)
    deadline = time.monotonic() + 60
    while sorted(place.rglob("*")) == before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert sorted(place.rglob("*")) != before, "it never began to write"
    run.send_signal(number)
    try:
        _, error = run.communicate(timeout=60)
    finally:
        run.kill()  # where it did not hear, it would write on for hours
    assert run.returncode == 130
    assert error.count("\n") == 1
    assert f"interrupted; nothing was written: {target.partition('=')[2]} is as it was; start again with: " in error
    assert error.endswith(f"statetrack data s5 --length=500 --count=100000000 {target}\n")
    assert sorted(place.rglob("*")) == before


def test_a_reader_that_stops_reading_is_no_error() -> None:
    run = statetrack("list", "permutation_groups", "--json")
    assert run.stdout is not None
    run.stdout.close()
    assert run.stderr is not None
    assert run.stderr.read() == ""
    assert run.wait() in (0, 1)
