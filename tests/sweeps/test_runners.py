"""Runners: every cell once, whatever is killed, and what goes wrong is said."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from statetrack.errors import BadInput
from statetrack.results import Cell, Store, merge, status
from statetrack.results.records import FAILED, TrainingRecord
from statetrack.sweeps import Options, from_blocks, local, run, sweep_of
from statetrack.sweeps.local import Worker
from statetrack.sweeps.schedule import Schedule
from statetrack.sweeps.units import LOST, MEMORY, Unit, units_of
from statetrack.sweeps.work import meaning
from statetrack.tasks import task
from statetrack.theory import predict
from tests.sweeps.counted_cells import KINDS, begun, ended, sweep, with_root

RUNNER = """
import sys
from tests.sweeps.counted_cells import sweep
from statetrack.sweeps import Options, run
print(run(sweep(int(sys.argv[2]), log=sys.argv[3], seconds=0.1), sys.argv[1], Options(workers=int(sys.argv[4]))).counts)
"""


SECONDS = 0.1  # a cell


def start(folder: Path, cells: int, log: Path, workers: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", RUNNER, str(folder), str(cells), str(log), str(workers)],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": with_root()},
    )


def finished(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.json")} if folder.exists() else set()


@pytest.mark.parametrize("workers", [0, 2])
def test_every_cell_once_and_the_second_run_does_nothing(workers: int, tmp_path: Path) -> None:
    log, cells = tmp_path / "log", sweep(10, log=str(tmp_path / "log"), weights=True)
    tally = run(cells, tmp_path / "out", Options(workers=workers))
    assert tally.counts == {"done": 10}
    assert sorted(begun(log)) == sorted(cell.key for cell in cells.cells)
    again = run(cells, tmp_path / "out", Options(workers=workers))
    assert again.found == 10
    assert len(begun(log)) == 10
    weights = {path.stem: path.read_bytes().split()[-1].decode() for path in (tmp_path / "out").glob("*.safetensors")}
    assert weights == {cell.key: cell.key for cell in cells.cells}
    assert list((tmp_path / "out/.sweep/work").glob("*")) == []


def test_kills_at_random_moments_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    """After each kill, what is finished is noted; nothing of it may begin again."""
    log, folder, moments = tmp_path / "log", tmp_path / "out", random.Random(0)
    cells = sweep(40, log=str(log), seconds=SECONDS)
    cut = 0
    for _ in range(4):
        done_before, begun_before = finished(folder), len(begun(log))
        runner = start(folder, 40, log, workers=2)
        while len(begun(log)) == begun_before and runner.poll() is None:
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.2))
        os.kill(runner.pid, signal.SIGKILL)
        runner.wait()
        time.sleep(0.2)  # its workers die with it
        assert not done_before & set(begun(log)[begun_before:])
        cut += len(set(begun(log)) - finished(folder))
    assert cut > 0  # some kills hit a cell in its middle
    done_before, begun_before = finished(folder), len(begun(log))
    tally = run(cells, folder, Options(workers=2))
    assert tally.finished == 40
    assert not done_before & set(begun(log)[begun_before:])
    assert status(Store(folder)).damaged == []
    assert finished(folder) == {cell.key for cell in cells.cells}


def test_two_runners_on_one_folder_share_the_work(tmp_path: Path) -> None:
    log, folder = tmp_path / "log", tmp_path / "out"
    folder.mkdir()
    runners = [start(folder, 40, log, workers) for workers in (1, 0)]
    assert [runner.wait() for runner in runners] == [0, 0]
    assert len(begun(log)) == len(set(begun(log))) == 40
    assert len(finished(folder)) == 40


def test_a_failure_is_recorded_in_one_line_and_tried_again(tmp_path: Path) -> None:
    log, store = tmp_path / "log", Store(tmp_path / "out")
    for attempt in (1, 2):
        tally = run(sweep(2, "counted:fails", log=str(log)), store.folder, Options(workers=0))
        assert tally.counts == {"failed": 2}
        assert tally.failures[0].reason == "ValueError: this cell fails"
        assert len(begun(log)) == 2 * attempt
    assert status(store).counts["failed"] == 2


def test_a_record_that_is_no_json_is_a_failure_of_its_cell(tmp_path: Path) -> None:
    tally = run(sweep(1, "counted:nan"), tmp_path / "out", Options(workers=0))
    assert tally.counts == {"failed": 1}
    assert tally.failures[0].reason == "BadRecord: an accuracy lies in 0..1"


def test_a_gpu_that_is_not_there_is_refused_before_a_folder_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("statetrack.sweeps.local.count_gpus", lambda: 0)
    for workers in (0, None):
        with pytest.raises(BadInput, match="torch sees no GPU here"):
            run(sweep(1), tmp_path / "out", Options(workers=workers, device="cuda"))
    assert not (tmp_path / "out").exists()


def test_divergence_is_a_result(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for _ in range(2):
        tally = run(sweep(2, "counted:diverges", log=str(log)), tmp_path / "out", Options(workers=0))
        assert tally.counts == {"diverged": 2}
    assert len(begun(log)) == 2


def test_a_worker_that_dies_takes_its_cell_only(tmp_path: Path) -> None:
    cells = sweep_of("mixed", [*sweep(5).cells, *sweep(1, "counted:dies").cells], KINDS)
    tally = run(cells, tmp_path / "out", Options(workers=2))
    assert tally.counts == {"done": 5, "failed": 1}
    assert tally.failures[0].reason == "its worker died (signal 9), 3 times"


def test_seeds_run_together_and_apart_where_they_do_not_fit(tmp_path: Path) -> None:
    cells = [Cell("none", "counted:memory", 8, seed, {}) for seed in range(5)]
    units = units_of(sweep_of("seeds", cells, KINDS).entries, 3)
    assert [len(unit.cells) for unit in units] == [3, 2]
    tally = run(sweep_of("seeds", cells, KINDS), tmp_path / "out", Options(workers=2, together=5))
    assert tally.counts == {"done": 5}


def test_the_longest_go_first() -> None:
    units = units_of(from_blocks("order", [
        {"tasks": ["txc"], "subjects": ["mlp", "mamba2-32l"], "lengths": [16, 256], "protocol": "design"},
    ]).entries, 1)  # fmt: skip
    order = [(unit.cells[0].subject, unit.length) for unit in units]
    assert order[0] == ("mamba2-32l", 256)
    assert order[-1] == ("mlp", 16)
    assert isinstance(units[0], Unit)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_full_disk_stops_the_run_with_one_line(workers: int, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="No space left on device"):
        run(sweep(3, "counted:full"), tmp_path / "out", Options(workers=workers))
    assert finished(tmp_path / "out") == set()  # the cells are not to blame


def test_a_file_that_may_not_grow_leaves_finished_cells_whole(tmp_path: Path) -> None:
    """Records above the limit cannot be written: the run stops, and those below it are whole."""
    small, large = sweep(3).cells, sweep(1, padding=20_000).cells
    cells = sweep_of("grow", [*small, *large], KINDS)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(BadInput, match=r"\.json cannot be written: File too large"):
            run(cells, tmp_path / "out", Options(workers=0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert status(Store(tmp_path / "out")).damaged == []
    assert run(cells, tmp_path / "out", Options(workers=0)).finished == 4


def test_a_gpu_that_faults_costs_its_process_and_no_cell(tmp_path: Path) -> None:
    """After such an error nothing works in that process: the cell, and those after it, are done by another."""
    log = str(tmp_path / "log")
    cells = sweep_of("mixed", [*sweep(5).cells, *sweep(1, "counted:faults", log=log).cells], KINDS)
    assert run(cells, tmp_path / "out", Options(workers=1)).counts == {"done": 6}


@pytest.mark.parametrize(
    "said",
    ["CUDA error: unspecified launch failure", "CUDA driver error: invalid", "Triton Error [CUDA]: an illegal access"],
)
def test_what_the_gpu_itself_failed_at_is_told_from_what_a_cell_did(said: str) -> None:
    assert meaning(RuntimeError(said)) == LOST
    assert meaning(RuntimeError("CUDA out of memory. Tried to allocate")) == MEMORY
    assert meaning(ValueError("no such shape")) == FAILED


def test_in_one_process_a_faulty_gpu_ends_the_run_and_the_checkpoint_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.sweeps.counted_cells.faulty", False)
    cells = sweep(3, "counted:faults", log=str(tmp_path / "log"))
    with pytest.raises(
        BadInput, match="the GPU failed, and nothing more runs on it in this process: RuntimeError: CUDA"
    ):
        run(cells, tmp_path / "out", Options(workers=0))
    assert finished(tmp_path / "out") == set()
    assert len(list((tmp_path / "out/.sweep/work").glob("*/checkpoint"))) == 1
    monkeypatch.setattr("tests.sweeps.counted_cells.faulty", False)
    assert run(cells, tmp_path / "out", Options(workers=0)).counts == {"done": 3}


def test_at_the_time_limit_workers_are_asked_to_end(tmp_path: Path) -> None:
    """A worker that is killed in the midst of its work makes others that share its GPU fault."""
    log = tmp_path / "log"
    schedule = Schedule(sweep(20, seconds=30, log=str(log), notes_end=True), Store(tmp_path / "out"))
    local.with_workers(schedule, [local.WorkerDevice("cpu")] * 2, False, lambda: len(begun(log)) == 2)
    assert schedule.tally.finished == 0
    assert len(begun(log)) == 2
    assert sorted(ended(log)) == sorted(begun(log))


def test_workers_that_stay_are_all_halted_before_one_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def noted(name: str) -> Callable[..., None]:
        done = getattr(Worker, name)
        return lambda worker, *signals: (calls.append((name, *signals)), done(worker, *signals))[1]

    for name in ("signal", "kill"):
        monkeypatch.setattr(Worker, name, noted(name))
    monkeypatch.setattr(local, "GRACE", 0.1)
    log = tmp_path / "log"
    schedule = Schedule(sweep(20, "counted:stays", seconds=30, log=str(log)), Store(tmp_path / "out"))
    local.with_workers(schedule, [local.WorkerDevice("cpu")] * 2, False, lambda: len(begun(log)) == 2)
    assert schedule.tally.finished == 0
    ask, halt = ("signal", signal.SIGTERM), ("signal", signal.SIGSTOP)
    assert calls == [ask, ask, halt, halt, ("kill",), ("kill",)]


def test_a_time_limit_leaves_the_rest_for_the_next_run(tmp_path: Path) -> None:
    local.count_gpus()  # which imports torch, and takes some of the time
    cells = sweep(400, seconds=0.1)
    tally = run(cells, tmp_path / "out", Options(workers=2, limit_seconds=5.0))
    assert 0 < tally.finished < 400
    assert tally.settled == len(finished(tmp_path / "out"))
    assert status(Store(tmp_path / "out")).counts["running"] == 0


def test_what_workers_could_not_tell_any_more_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worker, "collect", lambda worker, schedule: None)
    store = Store(tmp_path / "out")
    schedule = Schedule(sweep(2), store)
    local.with_workers(schedule, [local.WorkerDevice("cpu")] * 2, False, lambda: len(finished(store.folder)) == 2)
    assert schedule.tally.counts == {"done": 2}
    assert schedule.over


def test_an_interrupt_ends_the_workers_and_keeps_what_was_finished(tmp_path: Path) -> None:
    log, folder = tmp_path / "log", tmp_path / "out"
    runner = start(folder, 400, log, workers=2)
    while len(finished(folder)) < 5:
        time.sleep(0.05)
    runner.send_signal(signal.SIGINT)
    assert runner.wait(20) != 0
    count = len(begun(log))
    time.sleep(0.3)
    assert len(begun(log)) == count  # nobody works any more
    assert status(Store(folder)).damaged == []


def test_lengths_that_a_shorter_one_makes_pointless_are_skipped_with_the_reason(tmp_path: Path) -> None:
    cells = [Cell("none", "counted:well", n, seed, {}) for n in (4, 8, 16) for seed in (0, 1)]
    tally = run(sweep_of("ladder", cells, KINDS), tmp_path / "out", Options(workers=2, prune=True))
    assert tally.counts == {"done": 2, "skipped": 4}
    record = json.loads((tmp_path / "out" / f"{cells[-1].key}.json").read_text())
    assert record["reason"] == "at length 4 no seed was above the floor (2 of 2 seeds)"
    again = run(sweep_of("ladder", cells, KINDS), tmp_path / "out", Options(workers=0))
    assert again.counts == {"done": 6}  # without --prune they are done after all


def test_what_theory_calls_hopeless_is_run_all_the_same(tmp_path: Path) -> None:
    quick = {"most_checks": 1, "check_every": 2, "batch": 8, "polish": 0, "validation_rows": 16, "patience": 0}
    cells = from_blocks("theory", [{
        "tasks": ["txc"], "subjects": ["mlp"], "lengths": [8, 16], "protocol": "design", "settings": quick,
    }])  # fmt: skip
    store = Store(tmp_path / "out")
    run(cells, store.folder, Options(workers=0, device="cpu"))
    short, long = cells.cells
    record = store.read(short)
    assert isinstance(record, TrainingRecord)
    assert not record.solved
    first, *others = record.evaluations
    above = replace(first, interval=[0.6, 0.7])  # above the floor, on a task that theory denies to it
    store.write(replace(record, evaluations=(above, *others)))
    store.path(long).unlink()
    assert predict("mlp", task("txc")).outcome == "cannot"
    assert run(cells, store.folder, Options(workers=0, prune=True)).counts == {"done": 2}


def test_a_run_that_diverged_shows_no_limit(tmp_path: Path) -> None:
    cells = [Cell("none", "counted:diverges", n, 0, {}) for n in (4, 8)]
    tally = run(sweep_of("ladder", cells, KINDS), tmp_path / "out", Options(workers=0, prune=True))
    assert tally.counts == {"diverged": 2}


def test_trained_cells_are_the_same_from_any_runner(tmp_path: Path) -> None:
    quick = {"most_checks": 1, "check_every": 2, "batch": 4, "polish": 2, "first_length": 4, "validation_rows": 16}
    cells = from_blocks("quick", [{
        "tasks": ["txc"], "subjects": ["mlp"], "lengths": [4], "seeds": 2, "settings": quick,
    }])  # fmt: skip
    run(cells, tmp_path / "one", Options(workers=0, device="cpu"))
    run(cells, tmp_path / "two", Options(workers=1, device="cpu", together=2))
    numbers = []
    for folder in ("one", "two"):
        store = Store(tmp_path / folder)
        numbers.append([store.read(cell) for cell in cells.cells])
        assert all(store.path(cell, "safetensors").exists() for cell in cells.cells)
    for one, two in zip(*numbers):
        assert isinstance(one, TrainingRecord)
        assert isinstance(two, TrainingRecord)
        assert (one.evaluations, one.cell) == (two.evaluations, two.cell)
        assert one.seconds is not None
        assert one.seconds > 0


def test_parts_in_folders_of_their_own_merge_to_the_whole(tmp_path: Path) -> None:
    whole = sweep(7)
    for number in (1, 2, 3):
        run(whole.part(number, 3), tmp_path / f"part{number}", Options(workers=0))
    joined = merge([tmp_path / f"part{number}" for number in (1, 2, 3)], tmp_path / "all")
    assert (joined.taken, joined.kept) == (7, 0)
    assert finished(tmp_path / "all") == {cell.key for cell in whole.cells}


@pytest.mark.parametrize("said", [b"", struct.pack("!i", 40)])
def test_a_worker_whose_runner_was_killed_ends_without_a_word(said: bytes, tmp_path: Path) -> None:
    """Also in the middle of what it was told."""
    ours, theirs = socket.socketpair()
    alive, lifeline = os.pipe()
    command = [
        sys.executable,
        "-m",
        "statetrack.sweeps.worker",
        str(theirs.fileno()),
        str(alive),
        str(tmp_path),
        "cpu",
        "",
    ]
    worker = subprocess.Popen(command, pass_fds=(theirs.fileno(), alive), stderr=subprocess.PIPE, text=True)
    theirs.close()
    ours.sendall(said)
    ours.close()
    assert worker.communicate() == (None, "")
    assert worker.returncode == 0
    os.close(alive)
    os.close(lifeline)
