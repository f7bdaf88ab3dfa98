"""The trained cells of a folder are evaluated further: nothing but their list of evaluations grows."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from statetrack.cli import main
from statetrack.errors import BadInput
from statetrack.results import Cell, Store, TrainingRecord, check, records, unpack
from statetrack.results.evaluations import Evaluation
from statetrack.results.records import FAILED, no_result
from statetrack.training import checkpoint, folder, loop, train_many
from statetrack.training.folder import evaluate_folder
from statetrack.training.further import Wanted
from statetrack.training.weights import load
from tests.strangers import SHORT, archive, hub

MODEL = "gru[dim=4,hidden=8]"
ASKED = Wanted(lengths=(6, 100), streams=(2048,), words=20_000)


def trained(place: Path, seeds: int = 2, model: str = MODEL, **more: Any) -> list[TrainingRecord]:
    own = {"length": 4, "settings": SHORT, "words": 0, "device": "cpu", "out": place} | more
    return [result.record for result in train_many("txc", model, seeds=list(range(seeds)), **own)]


def files(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.glob("[!.]*")}


def kept(place: Path, cell: Cell) -> TrainingRecord:
    record = Store(place).read(cell)
    assert isinstance(record, TrainingRecord)
    return record


def by_settings(record: TrainingRecord) -> dict[object, Evaluation]:
    return {each.settings: each for each in record.evaluations}


def test_streams_and_words_are_those_that_train_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = trained(tmp_path / "later")
    at_once = trained(tmp_path / "at once", stream=2048, words=20_000)
    monkeypatch.setattr(loop.Stepper, "__call__", None)  # a step of training would fail
    tally = evaluate_folder(tmp_path / "later", Wanted(streams=(2048,), words=20_000), device="cpu")
    assert (tally.grown, tally.left_out) == (2, [])
    for one, other in zip(before, at_once):
        assert by_settings(kept(tmp_path / "later", one.cell)) == by_settings(other)


def test_nothing_but_the_evaluations_changes_and_a_second_run_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = trained(tmp_path)
    there = files(tmp_path)
    evaluate_folder(tmp_path, ASKED, device="cpu")
    after = files(tmp_path)
    for record in before:
        old, new = (json.loads(held[f"{record.cell.key}.json"]) for held in (there, after))
        more = new["evaluations"][len(old["evaluations"]) :]
        assert [(each["kind"], each.get("length")) for each in more] == [
            ("rows", 6), ("rows", 100), ("stream", None), ("words", None)
        ]  # fmt: skip
        assert all(each["seed"] == record.cell.seed for each in more)
        new["evaluations"] = new["evaluations"][: len(old["evaluations"])]
        clocks = {"sha256", "evaluation_seconds"}
        assert {key: value for key, value in new.items() if key not in clocks} == {
            key: value for key, value in old.items() if key not in clocks
        }
        weights = f"{record.cell.key}.safetensors"
        assert after[weights] == there[weights]
    monkeypatch.setattr(folder, "load", None)  # nothing is lacking, so that no weights are read
    tally = evaluate_folder(tmp_path, ASKED, device="cpu")
    assert (len(tally.records), tally.grown) == (2, 0)
    assert files(tmp_path) == after
    assert check.check(Store(tmp_path)).damaged == []


class Killed(BaseException):
    pass


def test_killed_between_cells_it_goes_on_with_those_that_lack_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained(tmp_path, seeds=3)
    honest, done = folder.measured, []

    def killed_in_the_second(task, model, cell, *rest):  # type: ignore[no-untyped-def]
        done.append(cell)
        found = honest(task, model, cell, *rest)
        if len(done) == 2:
            raise Killed
        return found

    there = files(tmp_path)
    monkeypatch.setattr(folder, "measured", killed_in_the_second)
    with pytest.raises(Killed):
        evaluate_folder(tmp_path, ASKED, device="cpu")
    changed = [name for name, content in files(tmp_path).items() if there[name] != content]
    assert changed == [f"{done[0].key}.json"]
    assert not ASKED.lacking_in(kept(tmp_path, done[0]))
    monkeypatch.setattr(folder, "measured", honest)
    tally = evaluate_folder(tmp_path, ASKED, device="cpu")
    assert (tally.grown, len(tally.records)) == (2, 3)
    assert not any(ASKED.lacking_in(record) for record in tally.records)


def test_one_damaged_file_of_weights_fails_its_own_cell_and_the_rest_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged, bare, nan, whole = (record.cell for record in trained(tmp_path, seeds=4))
    store = Store(tmp_path)
    path = store.path(damaged, "safetensors")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    store.path(bare, "safetensors").unlink()
    network = load(store, nan)
    with torch.no_grad():
        next(network.parameters()).fill_(float("nan"))
    note = {"cell": nan.to_dict(), "training": kept(tmp_path, nan).training.fingerprint}
    checkpoint.save_weights(store.path(nan, "safetensors"), network, note)
    failed = Cell("txc", MODEL, 8, 0, whole.protocol)
    store.write(no_result(failed, FAILED, "no memory"))
    main(["ask", "txc", "--solver", "oracle", "--samples", "1", "--length", "4", "--out", str(tmp_path)])
    (tmp_path / f"{'0' * 20}.json").write_text("{")
    assert main(["evaluate", str(tmp_path), "--lengths", "6", "--device", "cpu"]) == 1
    said = capsys.readouterr()
    assert said.out.splitlines()[-1] == f"1 record of {tmp_path} has grown; 0 held it already; 6 left out"
    whys = dict(line.removeprefix("left out: ").split(": ", 1) for line in said.err.splitlines() if "left out" in line)
    assert whys[str(damaged)].endswith("(its checksum is wrong); remove it to start over")
    assert whys[str(bare)] == "no weights are kept"
    assert "holds NaN" in whys[str(nan)]
    assert whys[str(failed)] == "it failed: no memory"
    assert (
        next(why for what, why in whys.items() if "oracle" in what)
        == "a language model that was asked has no weights here"
    )
    assert whys[f"{'0' * 20}.json"] == "its record is damaged: not whole JSON"
    assert 6 in kept(tmp_path, whole).rows
    assert 6 not in kept(tmp_path, damaged).rows


def test_a_cell_whose_task_has_changed_is_left_out_and_the_rest_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where its record holds all that is asked for, so that nothing of it is run again."""
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from dataclasses import dataclass\n"
        "from statetrack.tasks.finite import BinaryTask, FiniteTask\n\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        "class Mine(FiniteTask, BinaryTask):\n"
        "    base_name, outputs = 'ones', 2\n"
        "    def step(self, state, symbol):\n"
        "        return state ^ symbol\n"
    )
    trained(tmp_path / "out", 1)
    train_many(f"{mine}:Mine", MODEL, length=4, seeds=[0], settings=SHORT, words=0, device="cpu", out=tmp_path / "out")
    mine.write_text(mine.read_text() + "\n")
    for more in ([], ["--json"]):
        assert main(["evaluate", str(tmp_path / "out"), "--lengths", "8", "--device", "cpu", *more]) == 1
        said = capsys.readouterr()
        assert "txc" in said.out
        (line,) = (line for line in said.err.splitlines() if "left out" in line)
        assert "the code of" in line
        assert "has changed" in line


def test_what_a_model_cannot_do_is_named_and_the_rest_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (record,) = trained(tmp_path, 1, "transformer[dim=8,layers=1,heads=1,positions=64]")
    arguments = ["evaluate", str(tmp_path), "--device", "cpu"]
    assert main([*arguments, "--lengths", "6,100", "--stream", "1024"]) == 0
    said = capsys.readouterr()
    assert "has 64 positions; length 100 does not fit" in said.err
    assert "cannot be streamed: the model shows no state of constant size" in said.err
    found = kept(tmp_path, record.cell)
    assert (6 in found.rows, 100 in found.rows, found.streams) == (True, False, [])
    assert main([*arguments, "--stream", "1024", "--key", record.cell.key[:6]]) == 2  # nothing of it can be done
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_an_evaluation_that_fails_is_not_kept_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (record,) = trained(tmp_path, 1)
    monkeypatch.setattr("statetrack.training.evaluate.Evaluator._stream", None)  # as when memory runs out
    tally = evaluate_folder(tmp_path, ASKED, device="cpu")
    assert ["TypeError" in left.why for left in tally.left_out] == [True]
    assert kept(tmp_path, record.cell).streams == []
    assert list(ASKED.lacking_in(kept(tmp_path, record.cell)).streams) == [2048]
    monkeypatch.undo()
    assert evaluate_folder(tmp_path, ASKED, device="cpu").left_out == []
    assert [stream.steps for stream in kept(tmp_path, record.cell).streams] == [2048]


def test_a_folder_of_0_1_0_is_evaluated_further(tmp_path: Path) -> None:
    for path in (Path(__file__).parents[1] / "diagnosis" / "weights").glob("dfe5*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    ((_, before),) = Store(tmp_path).entries()
    assert isinstance(before, TrainingRecord)
    tally = evaluate_folder(tmp_path, Wanted(lengths=(11,)), device="cpu")
    ((_, after),) = Store(tmp_path).entries()
    assert isinstance(after, TrainingRecord)
    assert tally.grown == 1
    assert by_settings(after) == by_settings(before) | {after.rows[11].settings: after.rows[11]}
    assert after.training == before.training


def test_code_that_a_record_names_is_not_run(tmp_path: Path) -> None:
    mark = tmp_path / "it ran"
    unpack(archive(tmp_path, hub(tmp_path, mark)), tmp_path / "mine")
    (left,) = evaluate_folder(tmp_path / "mine", Wanted(lengths=(6,))).left_out
    assert "is code of a file that may come from elsewhere, and is not run" in left.why
    assert not mark.exists()


def test_an_own_model_that_peeks_at_a_new_length_gets_no_number(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(
        "import torch\n"
        "class Late(torch.nn.Module):\n"
        "    def __init__(self, inputs, outputs):\n"
        "        super().__init__()\n"
        "        self.table = torch.nn.Embedding(inputs, outputs)\n"
        "    def forward(self, ids):\n"
        "        return self.table(ids.flip(1) if ids.shape[1] > 64 else ids)\n"
    )
    (record,) = trained(tmp_path / "out", 1, f"{tmp_path}/late.py:Late")
    (left,) = evaluate_folder(tmp_path / "out", Wanted(lengths=(6, 100))).left_out
    assert left.why == "Late is not causal at length 100: logits change with inputs that come later"
    assert kept(tmp_path / "out", record.cell) == record


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        (Wanted(), "there is nothing to measure: ask for lengths, a stream or hard words"),
        (Wanted(lengths=tuple(range(1, 258))), "257 lengths are more than 256"),
        (Wanted(lengths=(0,)), "length 0 should lie in"),
        (Wanted(streams=(2**40,)), "stream 1099511627776 should lie in"),
        (Wanted(words=-1), "words -1 should be 0, or a number of tokens"),
    ],
)
def test_what_no_cell_could_be_tested_on_is_refused_before_any_is(tmp_path: Path, wanted: Wanted, line: str) -> None:
    with pytest.raises(BadInput, match=line):
        evaluate_folder(tmp_path, wanted)


def test_cells_are_chosen_by_the_beginning_of_their_keys(tmp_path: Path) -> None:
    first, second = trained(tmp_path)
    assert evaluate_folder(tmp_path, Wanted(lengths=(6,)), keys=[second.cell.key[:8]], device="cpu").grown == 1
    assert 6 not in kept(tmp_path, first.cell).rows
    with pytest.raises(BadInput, match=r"no cell of .* has a key that begins with 'zz'"):
        evaluate_folder(tmp_path, Wanted(lengths=(6,)), keys=["zz"])


def test_what_another_process_adds_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (record,) = trained(tmp_path, 1)
    honest = folder.measured

    def beside_another(*given):  # type: ignore[no-untyped-def]
        found = honest(*given)
        monkeypatch.setattr(folder, "measured", honest)
        evaluate_folder(tmp_path, Wanted(lengths=(7,)), device="cpu")
        return found

    monkeypatch.setattr(folder, "measured", beside_another)
    evaluate_folder(tmp_path, Wanted(lengths=(6,)), device="cpu")
    assert {6, 7} < kept(tmp_path, record.cell).rows.keys()
    assert records.read(records.write(kept(tmp_path, record.cell))) == kept(tmp_path, record.cell)


def test_a_full_disk_ends_the_run_instead_of_failing_every_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained(tmp_path)

    def full(*given: Any) -> None:
        raise BadInput("cannot be written: No space left on device") from OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(folder, "add", full)
    with pytest.raises(BadInput, match="No space left on device"):
        evaluate_folder(tmp_path, Wanted(lengths=(6,)), device="cpu")
