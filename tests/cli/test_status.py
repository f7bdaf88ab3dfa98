"""`statetrack status --watch`: it looks until nothing is left, redraws in a terminal and prints a line elsewhere."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from statetrack import results
from statetrack.cli import main
from statetrack.cli import status as verb
from statetrack.results import Cell, Status, Store
from statetrack.results.checkpoints import Checkpoint
from statetrack.results.folder_status import ORDER
from statetrack.results.plans import save
from statetrack.sweeps import sweep_of
from tests.sweeps.counted_cells import made


def standing(done: int, running: int, missing: int, checkpoints: int = 0) -> Status:
    counts = dict.fromkeys(ORDER, 0) | {"done": done, "running": running, "missing": missing}
    seconds = 7.0 * (running + missing)
    held = [Checkpoint(Path("x"), "txc", "gru", 64, (0,), 450, 16, 0.0)] * checkpoints
    return Status(counts, {"small": counts}, [], [], Counter(), running, seconds, checkpoints=held)


def looks(*seen: Status) -> tuple[Iterator[Status], list[float]]:
    return iter(seen), []


def test_it_looks_until_nothing_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    seen, rests = looks(
        standing(0, 1, 2), standing(0, 1, 2), standing(1, 1, 1), standing(2, 0, 0, 1), standing(3, 0, 0)
    )
    now = iter(range(1000))  # every look takes a second
    last = verb.watched(lambda: next(seen), verb.line_by_line(), lambda: float(next(now)), rests.append)
    assert last.counts["done"] == 3
    assert rests == [5.0] * 4  # a look of a second is followed by five of rest
    assert capsys.readouterr().out.splitlines() == [  # the second look saw nothing new
        "0 done, 0 diverged, 1 running, 0 failed, 0 skipped, 2 missing, time left: 21 s",
        "1 done, 0 diverged, 1 running, 0 failed, 0 skipped, 1 missing, time left: 14 s",
        "2 done, 0 diverged, 0 running, 0 failed, 0 skipped, 0 missing, 1 checkpoint",
        "3 done, 0 diverged, 0 running, 0 failed, 0 skipped, 0 missing",
    ]


def test_a_short_look_is_followed_by_a_rest_of_two_seconds() -> None:
    seen, rests = looks(standing(0, 1, 0), standing(1, 0, 0))
    verb.watched(lambda: next(seen), lambda _: None, lambda: 0.0, rests.append)
    assert rests == [verb.EVERY]


def test_in_a_terminal_each_look_is_drawn_over_the_last(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    verb.redrawn(standing(1, 1, 1, checkpoints=7))
    shown = capsys.readouterr().out
    assert shown.startswith(verb.HOME)
    assert shown.endswith(verb.REST_OF_SCREEN)
    lines = shown.split(f"{verb.REST_OF_LINE}\n")
    assert len(lines) == 2 + 1 + 5 + 1 + 1 + 1  # the table, the time, five checkpoints, the rest, the clock, the end
    assert "small" in lines[1]
    assert lines[3].startswith("checkpoint: txc, gru, length 64, seed 0: update 450, at length 16; saved ")
    assert lines[-3] == "and 2 checkpoints more"
    assert lines[-2].endswith("; Ctrl-C ends the watch, and nothing else")
    verb.redrawn(standing(3, 0, 0))
    assert capsys.readouterr().out.split(f"{verb.REST_OF_LINE}\n")[-2].endswith("; nothing is left to do")


def test_the_verb_watches_a_folder_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path)
    cells = [Cell("txc", "mlp", 4, seed, {"name": "curriculum"}) for seed in range(2)]
    save(store, sweep_of("pair", cells))
    left, honest = list(cells), results.status

    def status(store: Store) -> Status:
        """As it is; then somebody finishes a cell."""
        standing = honest(store)
        if left:
            store.write(made(left.pop()))
        return standing

    monkeypatch.setattr(results, "status", status)
    monkeypatch.setattr(verb, "EVERY", 0.0)
    monkeypatch.setattr(verb, "SHARE", 0)
    assert main(["status", str(tmp_path), "--watch"]) == 0
    assert [line[:6] for line in capsys.readouterr().out.splitlines()] == ["0 done", "1 done", "2 done"]
    assert main(["status", str(tmp_path), "--watch", "--json"]) == 2
    assert "leave --json out" in capsys.readouterr().err


def test_a_folder_that_is_not_there_yet_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    late = tmp_path / "late"

    def somebody_begins(seconds: float) -> None:
        Store(late).write(made(Cell("txc", "mlp", 4, 0, {"name": "curriculum"})))

    verb.wait_for(late, rest=somebody_begins)
    assert main(["status", str(late), "--watch"]) == 0
    said = capsys.readouterr()
    assert said.err == f"waiting for {late}, which is not there yet\n"
    assert said.out.startswith("1 done")
    monkeypatch.setattr(verb, "PATIENCE", 0.0)
    assert main(["status", str(tmp_path / "never"), "--watch"]) == 2
    assert "never is not there; a folder of results is needed" in capsys.readouterr().err


def test_a_watch_in_a_real_terminal_is_drawn_over_and_ends_with_the_sweep(tmp_path: Path) -> None:
    """A pseudo-terminal, a process that watches, and cells that come in between."""
    store = Store(tmp_path / "cells")
    cells = [Cell("txc", "mlp", 4, seed, {"name": "curriculum"}) for seed in range(2)]
    save(store, sweep_of("pair", cells))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "statetrack", "status", str(store.folder), "--watch"]
    watcher = subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs)
    os.close(theirs)
    shown = read_until(ours, "Ctrl-C ends the watch")
    for cell in cells:
        store.write(made(cell))
    shown += read_until(ours, "nothing is left to do")
    assert watcher.wait(60) == 0
    os.close(ours)
    assert shown.count(verb.HOME) >= 2
    assert "pair   0     0         0        0       0        2" in shown
    assert "pair   2     0         0        0       0        0" in shown


def read_until(terminal: int, words: str) -> str:
    shown = ""
    while words not in shown:
        ready, _, _ = select.select([terminal], [], [], 60)
        assert ready, f"nothing more after {shown!r}"
        shown += os.read(terminal, 4096).decode()
    return shown
