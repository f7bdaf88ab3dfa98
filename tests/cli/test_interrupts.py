"""Ctrl-C says in one line what was kept and how to go on; the command that it names goes on from there."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from statetrack.asking.solvers import SOLVERS, Solver
from statetrack.cli import main
from statetrack.diagnosis import folder as diagnosis
from statetrack.results import Store
from statetrack.sweeps import local, work
from statetrack.sweeps.schedule import Schedule
from statetrack.training import loop, train_many
from tests.sweeps.test_runners import finished, sweep

SHORT = {"check_every": 5, "most_checks": 2, "polish": 10, "batch": 8, "warmup": 0, "validation_rows": 16}
MODEL = "mlp[hidden=8]"
TRAIN = ["train", "txc", MODEL, "--length=8", "--seeds=2", "--words=0", "--device=cpu"]
TRAIN += [f"--set={name}={value}" for name, value in SHORT.items()]


def interrupting(honest: Any, at: int, counted: list[int]) -> Any:
    """The same function, which is interrupted at its n-th call and not again."""

    def watched(*given: Any, **named: Any) -> Any:
        counted.append(1)
        if len(counted) == at:
            raise KeyboardInterrupt
        return honest(*given, **named)

    return watched


def said(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line on standard error that is no progress."""
    (line,) = [each for each in capsys.readouterr().err.splitlines() if "interrupted" in each]
    return line


def command_in(line: str) -> list[str]:
    """What the line says to type, without the program."""
    words = shlex.split(line.partition(" with: ")[2])
    return words[words.index("statetrack") + 1 :] if "statetrack" in words else words[1:]


def test_a_training_goes_on_from_its_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, steps = tmp_path / "my results", []
    monkeypatch.setattr(loop, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(loop.Stepper, "__call__", interrupting(loop.Stepper.__call__, 18, steps))
    assert main([*TRAIN, "--out", str(out)]) == 130
    line = said(capsys)
    assert f"statetrack: interrupted; a checkpoint at update 15 is kept in {out}; go on with: " in line
    assert command_in(line) == [*TRAIN, "--out", str(out)]
    assert main(["status", str(out)]) == 0
    assert (
        f"checkpoint: txc, {MODEL}, length 8, seeds 0 to 1: update 15, at length 8; saved " in capsys.readouterr().out
    )
    assert main(command_in(line)) == 0
    assert len(steps) == 18 + 15  # 30 updates in all, and none of the first 15 again
    assert "trained in" in capsys.readouterr().out
    uncut = train_many("txc", MODEL, length=8, seeds=[0, 1], settings=SHORT, words=0)
    records = [Store(out).read(result.cell) for result in uncut]
    assert [record.training.curve for record in records] == [result.record.training.curve for result in uncut]  # type: ignore[union-attr]


def test_without_a_folder_nothing_is_kept_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for out, kept in (
        ([], "nothing was kept: --out DIR"),
        (["--out", str(tmp_path)], f"nothing of it is in {tmp_path}"),
    ):
        monkeypatch.setattr(loop.Stepper, "__call__", interrupting(None, 1, []))
        assert main([*TRAIN, *out]) == 130
        line = said(capsys)
        assert f"interrupted; {kept}" in line
        assert f"start again with: {line.partition(' with: ')[2]}" in line


def test_a_second_training_says_that_it_was_there_already(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = [each for each in TRAIN if each != "--seeds=2"]
    assert main([*one, "--out", str(tmp_path)]) == 0
    assert "; trained in " in capsys.readouterr().out
    assert main([*one, "--out", str(tmp_path)]) == 0
    again = capsys.readouterr().out
    assert "; it was there already, and nothing of that was trained again\n" in again
    assert "trained in" not in again
    assert main([*TRAIN, "--out", str(tmp_path)]) == 0  # one seed more
    assert ", 1 of them was there already, and nothing of that was trained again\n" in capsys.readouterr().out
    assert main([*TRAIN, "--out", str(tmp_path)]) == 0
    assert "; all of them were there already" in capsys.readouterr().out


def test_a_sweep_says_how_many_cells_are_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ", ".join(f"{name}: {value}" for name, value in SHORT.items())
    text = f"{{tasks: [txc], subjects: ['{MODEL}'], lengths: [8], seeds: 3, settings: {{words: 0, {settings}}}}}"
    (tmp_path / "s.yaml").write_text(text)
    words = ["sweep", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "out"), "--workers=0", "--device=cpu"]
    monkeypatch.setattr(loop, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(loop.Stepper, "__call__", interrupting(loop.Stepper.__call__, 40, []))
    assert main(words) == 130
    kept = (
        f"1 of 3 cells are finished and kept in {tmp_path / 'out'}, with 1 checkpoint of cells under way; go on with: "
    )
    line = said(capsys)
    assert f"interrupted; {kept}" in line
    assert main(command_in(line)) == 0
    assert "3 cells: 3 done, 0 failed, 0 skipped, 0 left; 1 was there before" in capsys.readouterr().out
    monkeypatch.setattr(work, "perform", interrupting(None, 1, []))
    assert main([*words[:2], "--out", str(tmp_path / "new"), *words[4:]]) == 130
    assert f"interrupted; 0 of 3 cells are finished and kept in {tmp_path / 'new'}; go on with" in said(capsys)


def test_what_workers_finished_is_counted_when_they_are_ended_by_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local.Worker, "collect", lambda worker, schedule: None)
    store = Store(tmp_path / "out")
    schedule = Schedule(sweep(2), store)

    def tick() -> bool:
        if len(finished(store.folder)) == 2:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        local.with_workers(schedule, [local.WorkerDevice("cpu")] * 2, False, tick)
    assert schedule.tally.finished == 2


def test_asking_says_how_many_samples_are_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["ask", "txc", "--solver=random", "--samples=3", "--length=4", "--history=own"]
    monkeypatch.setattr("statetrack.asking.run.ALL_AT_ONCE", 1)
    monkeypatch.setattr(Solver, "prepare", interrupting(Solver.prepare, 6, []))
    assert main([*words, "--out", str(tmp_path)]) == 130
    line = said(capsys)
    assert f"interrupted; 1 of 3 samples are over, and every reply so far is kept in {tmp_path}; go on with: " in line
    assert main(command_in(line)) == 0
    assert "3 episodes" in capsys.readouterr().out
    monkeypatch.setattr(Solver, "prepare", interrupting(None, 1, []))
    assert main(words) == 130
    assert "interrupted; nothing was kept: --out DIR keeps every reply; start again with: " in said(capsys)
    assert "random" in SOLVERS


def test_diagnosing_says_how_many_cells_are_diagnosed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    train_many("txc", MODEL, length=8, seeds=[0, 1], settings=SHORT, words=0, out=tmp_path)
    words = ["diagnose", str(tmp_path), "--length=16", "--stream=64"]
    for at, kept in ((1, "no cell was diagnosed yet; start again"), (2, "1 of 2 cells are diagnosed and kept in ")):
        monkeypatch.setattr(diagnosis, "diagnose", interrupting(diagnosis.diagnose, at, []))
        assert main(words) == 130
        assert f"interrupted; {kept}" in said(capsys)
        monkeypatch.undo()


def test_certifying_says_how_many_cells_are_certified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from statetrack.certificates import folder

    train_many("txc", MODEL, length=8, seeds=[0, 1], settings=SHORT, words=0, out=tmp_path)
    for at, kept in ((1, "no cell was certified yet; start again"), (2, "1 of 2 cells are certified and kept in ")):
        monkeypatch.setattr(folder, "_one", interrupting(folder._one, at, []))
        assert main(["certify", str(tmp_path), "--seconds", "1"]) == 130
        assert f"interrupted; {kept}" in said(capsys)
        monkeypatch.undo()
