"""What was computed or paid for is never dropped: by a later run, a merge or a tidy-up."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from statetrack.cli import main
from statetrack.results import AskedRecord, Cell, Store, TrainingRecord, merge, pack, plans, unpack
from statetrack.results.conflicts import aside, difference
from statetrack.results.evaluations import OnStream
from statetrack.results.leftovers import OLD, tidy
from statetrack.results.plans import PlannedCell, Sweep
from statetrack.results.records import EpisodeRecord, no_result
from statetrack.sweeps import Options, run
from tests.sweeps.counted_cells import made, sweep

CELL = Cell("t", "s", 4, 0, {})
ASKED = Cell("t", "m implicit", 4, 0, {"name": "ask"})


def asked(count: int, status: str = "failed", **changes: object) -> AskedRecord:
    episode = EpisodeRecord(
        ended="server", max_length=count, asked=4, outcomes="+" * count, positions=list(range(count)),
        changes="-" * count, replies=[f"[{number}]" for number in range(count)], tokens={"sent": 10 * count},
    )  # fmt: skip
    return AskedRecord(cell=ASKED, status=status, reason="503", episode=replace(episode, **changes))


def replies(store: Store) -> int:
    record = store.record(ASKED)
    assert isinstance(record, AskedRecord)
    return len(record.episode.replies)


@pytest.mark.parametrize("later", [no_result(ASKED, "failed", "no key"), no_result(ASKED, "skipped", "x"), asked(0)])
def test_a_later_failure_keeps_the_replies(later: AskedRecord, tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(asked(3))
    store.write(later)
    record = store.record(ASKED)
    assert record is not None
    assert (replies(store), record.status, record.reason) == (3, later.status, later.reason)
    store.write(asked(4, "done"))
    assert replies(store) == 4


def test_a_failure_does_not_replace_a_result(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(made(CELL))
    store.write(no_result(CELL, "failed", "x"))
    assert store.read(CELL) == made(CELL)


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_merge_keeps_the_longer_of_two_dialogues(order: str, tmp_path: Path) -> None:
    Store(tmp_path / "a").write(asked(0))
    Store(tmp_path / "b").write(asked(3))
    merge([tmp_path / name for name in order], tmp_path / "all")
    assert replies(Store(tmp_path / "all")) == 3


def other(record: TrainingRecord) -> TrainingRecord:
    return replace(record, training=replace(record.training, final_train_loss=0.25))


def test_two_results_that_differ_are_both_kept_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = made(CELL), other(made(CELL))
    Store(tmp_path / "a").write(replace(first, training=replace(first.training, final_train_loss=0.5)))
    Store(tmp_path / "b").write(second)
    Store(tmp_path / "b").path(CELL, "safetensors").write_bytes(b"weights")  # those of the first are not kept
    folders = [str(tmp_path / name) for name in "ab"]
    for _ in range(2):  # again, and nothing stands twice
        assert main(["merge", *folders, "--out", str(tmp_path / "all")]) == 1
        assert "t, s, length 4, seed 0: training.final_train_loss differs" in capsys.readouterr().err
    store = Store(tmp_path / "all")
    kept = store.read(CELL)
    assert isinstance(kept, TrainingRecord)
    assert kept.training.final_train_loss == 0.5
    ((path, held),) = aside(store.folder)
    assert held == second
    assert path.with_suffix(".safetensors").read_bytes() == b"weights"
    assert [key for key, _ in store.entries()] == [CELL.key]  # nobody else reads it
    assert (list(store.damaged()), store.foreign()) == ([], [])
    assert main(["check", str(store.folder)]) == 1
    assert "conflict: " in capsys.readouterr().out
    pack(store.folder, tmp_path / "a.tar.gz", weights=True)
    assert len(unpack(tmp_path / "a.tar.gz", tmp_path / "back").conflicts) == 1
    assert next(iter(aside(tmp_path / "back")))[1] == second
    assert main(["merge", str(store.folder), "--out", str(tmp_path / "third")]) == 1


def test_a_result_that_a_later_run_replaces_is_kept_aside(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(replace(made(CELL), training=replace(made(CELL).training, final_train_loss=0.5)))
    store.write(other(made(CELL)))
    assert store.read(CELL) == other(made(CELL))
    assert len(list(aside(tmp_path))) == 1


def test_seconds_machines_and_versions_are_no_conflict(tmp_path: Path) -> None:
    record = made(CELL)
    training = replace(record.training, device="H200", torch="3.0", train_seconds=9.0, tokens_per_second=1.0)
    later = replace(record, version="9.9", seconds=77.0, training=training, evaluation_seconds=2.0)
    assert difference(record, later) is None
    stream = OnStream(seed=0, steps=8, rows=8, accuracy={"8": 1.0})
    assert difference(record, later.with_evaluations([stream])) is None
    wrong = replace(record, evaluations=(replace(record.at_length, accuracy=0.25),))
    assert difference(record, wrong) == "accuracy of the evaluation rows 4 0 0"
    assert difference(asked(4, "done"), asked(4, "done", tokens={"sent": 1})) is None
    assert difference(asked(4, "done"), asked(3, "done")) == "replies"


def test_weights_come_from_whoever_has_them(tmp_path: Path) -> None:
    """Also where the folder without them is merged first, and its training took other seconds."""
    slower = replace(made(CELL), training=replace(made(CELL).training, train_seconds=9.0))
    Store(tmp_path / "a").write(made(CELL))
    Store(tmp_path / "b").write(slower)
    Store(tmp_path / "b").path(CELL, "safetensors").write_bytes(b"weights")
    assert main(["merge", str(tmp_path / "a"), str(tmp_path / "b"), "--out", str(tmp_path / "all")]) == 0
    assert Store(tmp_path / "all").weights(CELL) is not None


def test_weights_that_differ_are_a_conflict(tmp_path: Path) -> None:
    for name, weights in (("a", b"one"), ("b", b"two")):
        store = Store(tmp_path / name)
        store.write(made(CELL))
        store.path(CELL, "safetensors").write_bytes((2).to_bytes(8, "little") + b"{}" + weights)
    joined = merge([tmp_path / "b"], tmp_path / "a")
    assert [conflict.what for conflict in joined.conflicts] == ["weights"]
    (path,) = (tmp_path / "a").glob("*.conflict.safetensors")
    assert path.read_bytes().endswith(b"two")


def checkpoint_of(store: Store, cell: Cell) -> Path:
    """One that a run left two days ago."""
    folder = store.scratch([cell])
    folder.mkdir(parents=True)
    (folder / f"{cell.siblings}.checkpoint.safetensors").write_bytes(b"half way")
    long_ago = time.time() - 2 * OLD
    os.utime(folder, (long_ago, long_ago))
    return folder


def test_a_checkpoint_lives_until_its_cell_is_done(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    done, planned, unknown = (Cell("t", subject, 4, 0, {}) for subject in ("done", "planned", "unknown"))
    plans.save(store, Sweep("other", "", tuple(PlannedCell(cell, "counted") for cell in (done, planned))))
    store.write(made(done))
    folders = [checkpoint_of(store, cell) for cell in (done, planned, unknown)]
    run(sweep(1), store.folder, Options(workers=0))  # another sweep that ends in this folder
    assert [folder.exists() for folder in folders] == [False, True, True]
    store.write(made(planned))
    tidy(store)
    assert [folder.exists() for folder in folders] == [False, False, True]


def test_a_cell_that_failed_keeps_its_checkpoint(tmp_path: Path) -> None:
    store, failing = Store(tmp_path / "out"), sweep(1, "counted:fails")
    folder = checkpoint_of(store, failing.cells[0])
    assert run(failing, store.folder, Options(workers=0)).counts["failed"] == 1
    assert folder.exists()


def test_old_records_are_read_without_a_checksum(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = store.write(made(CELL))
    held = json.loads(path.read_text())
    del held["sha256"]
    path.write_text(json.dumps(held))
    assert store.read(CELL) == made(CELL)


def test_a_pipe_among_the_files_makes_nobody_wait(tmp_path: Path) -> None:
    store = Store(tmp_path / "a")
    store.write(made(CELL))
    store.write(asked(0))
    (store.hidden / "plans").mkdir(parents=True, exist_ok=True)
    beside = (store.path(CELL, "safetensors"), store.path(ASKED, "replies.jsonl"))
    for path in (*beside, store.hidden / "plans" / "p.json"):
        os.mkfifo(path)
    assert pack(tmp_path / "a", tmp_path / "a.tar", weights=True, checkpoints=True) == 2
    merge([tmp_path / "a"], tmp_path / "b")
    assert {path.name for path in (tmp_path / "b").glob("*.*")} == {f"{cell.key}.json" for cell in (CELL, ASKED)}


@pytest.mark.needs("torch")
def test_weights_stay_where_their_record_is_damaged(tmp_path: Path) -> None:
    """The record of another folder that has no weights makes them whole again."""
    import torch

    from statetrack.training import checkpoint

    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    record = made(CELL)
    assert isinstance(record, TrainingRecord)
    for store in (one, two):
        store.write(record)
    note = {"cell": CELL.to_dict(), "training": record.training.fingerprint}
    checkpoint.save(one.path(CELL, "safetensors"), {"w": torch.ones(3)}, note)
    one.path(CELL).write_text("{")
    merge([two.folder], one.folder)
    assert isinstance(one.read(CELL), TrainingRecord)
    assert one.weights(CELL) is not None
    checkpoint.save(one.path(CELL, "safetensors"), {"w": torch.ones(3)}, note | {"training": [0.5]})
    one.path(CELL).write_text("{")
    merge([two.folder], one.folder)
    assert one.weights(CELL) is None, "those of another training would be taken for its own"
