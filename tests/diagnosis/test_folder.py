"""A folder of results as a whole: what is done, what is left out, what is compared."""

from __future__ import annotations

import errno
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import statetrack as st
from statetrack.cli import main
from statetrack.results import Cell, Store, TrainingRecord, merge, seal
from statetrack.results.diagnosis import comparison, of_cell, of_dict, read, rounded
from statetrack.results.records import FAILED, no_result
from statetrack.results.sections import SHAPES
from statetrack.training import checkpoint

WEIGHTS = Path(__file__).parent / "weights"
SHORT = {"check_every": 2, "most_checks": 1, "polish": 2, "batch": 4, "validation_rows": 4}


def test_an_empty_folder_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(tmp_path)]) == 0
    assert "holds no cells" in capsys.readouterr().out
    written = comparison(Store(tmp_path))
    assert written is not None
    assert written.cells == []
    assert {each["key"] for each in written.patterns} == {
        "6.1-e88", "6.1-mamba", "6.1-linear", "6.2-e88", "6.2-mamba", "6.3", "6.4"
    }  # fmt: skip


def test_a_folder_that_is_not_there_and_a_key_that_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(tmp_path / "none")]) == 2
    assert main(["diagnose", str(WEIGHTS), "--key", "zz"]) == 2
    assert main(["diagnose", str(WEIGHTS), "--cells", "0"]) == 2
    assert main(["diagnose", str(WEIGHTS), "--length", "0"]) == 2
    assert capsys.readouterr().err.count("statetrack: ") == 4
    assert not (WEIGHTS / "diagnosis").exists()


@pytest.mark.parametrize("size", ["gru[hidden=40000]", "transformer[positions=2000000000]"])
def test_a_model_that_its_weights_do_not_fit_is_not_built(
    size: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A record of a few bytes may name one of a terabyte."""
    store = Store(tmp_path)
    done = st.train("txc", "gru[hidden=8,dim=4]", length=8, settings=SHORT, out=tmp_path, device="cpu", words=0).cell
    record = store.read(done)
    assert record is not None
    large = replace(done, subject=size)
    store.write(replace(record, cell=large))
    weights, note = checkpoint.load(store.path(done, "safetensors"))
    checkpoint.save(store.path(large, "safetensors"), weights, note | {"cell": large.to_dict()})
    empty = torch.empty
    with torch.device("meta"):  # torch notes its own `empty` when a device is first set, and only then
        empty(1)

    def small(*shape: Any, **more: Any) -> torch.Tensor:
        asked = empty(*shape, device="meta").numel() if shape else 0
        assert asked < 10**8 or torch.get_default_device().type == "meta", "it is built"
        return empty(*shape, **more)

    monkeypatch.setattr(torch, "empty", small)
    assert main(["diagnose", str(tmp_path), "--key", large.key]) == 1
    assert f"does not fit {size}" in capsys.readouterr().err
    assert main(["evaluate", "txc", str(store.path(large, "safetensors")), "--device", "cpu"]) == 2
    assert f"does not fit {size} for txc" in capsys.readouterr().err


def test_a_folder_that_takes_nothing_is_tried_before_anything_is_diagnosed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in WEIGHTS.glob("dfe5*"):
        shutil.copy(path, tmp_path)
    honest = Path.write_bytes

    def refused(path: Path, data: bytes) -> int:
        if path.is_relative_to(tmp_path):
            raise OSError(errno.EROFS, "Read-only file system")
        return honest(path, data)

    monkeypatch.setattr(Path, "write_bytes", refused)
    monkeypatch.setattr("statetrack.diagnosis.folder.diagnose", None)  # its work would fail
    assert main(["diagnose", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"statetrack: {tmp_path} cannot be written to: Read-only file system\n"


def test_failed_damaged_and_foreign_cells_are_named_and_the_others_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path)
    done = st.train("txc", "gru[hidden=8,dim=4]", length=8, settings=SHORT, out=tmp_path, device="cpu").cell
    flat = st.train("txc", "mlp[hidden=8]", length=8, settings=SHORT, out=tmp_path, device="cpu").cell
    broken, bare = (Cell("txc", name, 8, 0, {"name": "curriculum"}) for name in ("lstm", "tanh-rnn"))
    store.write(no_result(broken, FAILED, "it fell over"))
    record = store.read(done)
    assert record is not None
    store.write(replace(record, cell=bare))
    (tmp_path / ("0" * 20 + ".json")).write_text("{")
    lost = Cell("txc", "gru", 8, 5, {"name": "curriculum"})
    store.write(replace(record, cell=lost))
    shutil.copy(store.path(done, "safetensors"), store.path(lost, "safetensors"))

    assert main(["diagnose", str(tmp_path), "--json", "--stream", "64"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert {each["key"] for each in found["cells"]} == {done.key, flat.key}
    why = {each["key"]: each["why"] for each in found["left_out"]}
    assert "it fell over" in why[broken.key]
    assert why[bare.key] == "no weights are kept"
    assert "damaged" in why["0" * 20]
    assert "another cell" in why[lost.key]
    assert main(["diagnose", str(tmp_path), "--key", done.key]) == 0  # the others are still named, and not its fault
    assert "it fell over" in capsys.readouterr().err
    assert main(["diagnose", str(tmp_path), "--key", broken.key]) == 1
    without = of_cell(store, flat)
    assert without is not None
    assert without.conclusion == "no state"
    assert set(without["probe"]) == set(without["gradient"]) == {"absent"}
    assert without["positions"]["accuracy"][0] is not None


def test_a_second_run_does_only_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(3):
        st.train("txc", "gru[hidden=8,dim=4]", length=8, seed=seed, settings=SHORT, out=tmp_path, device="cpu")
    assert main(["diagnose", str(tmp_path), "--cells", "1", "--length", "16", "--stream", "64"]) == 0
    (made,) = (tmp_path / "diagnosis").glob("?" * 20 + ".json")
    first = made.stat().st_mtime_ns
    assert capsys.readouterr().err.startswith("left out: 2 cells, the first of them ")
    assert main(["diagnose", str(tmp_path), "--length", "16", "--stream", "64"]) == 0
    assert made.stat().st_mtime_ns == first
    assert len(list((tmp_path / "diagnosis").glob("*.json"))) == 4
    assert "3 diagnosed, 0 left out" in capsys.readouterr().out
    key = made.stem[:6]
    assert main(["diagnose", str(tmp_path), "--key", key, "--length", "16", "--stream", "64", "--again"]) == 0
    told = capsys.readouterr().out
    assert all(sentence in told for sentence in json.loads(made.read_text())["sentences"])
    assert made.stat().st_mtime_ns > first
    made.write_text("{")
    assert main(["diagnose", str(tmp_path), "--key", key, "--stream", "64"]) == 0
    record = read(made)
    assert record.length == 128
    assert record.cell is not None
    assert record.cell.seed == record.seed


def test_a_cell_is_either_diagnosed_or_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell = st.train("txc", "gru[hidden=8,dim=4]", length=8, settings=SHORT, out=tmp_path, device="cpu").cell
    assert main(["diagnose", str(tmp_path), "--stream", "64"]) == 0
    (tmp_path / f"{cell.key}.safetensors").write_bytes(b"cut")
    assert main(["diagnose", str(tmp_path), "--stream", "64", "--again"]) == 1
    assert "0 diagnosed, 1 left out" in capsys.readouterr().out


def test_diagnoses_are_packed_merged_and_compared_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home, packed, back = tmp_path / "home", tmp_path / "home.tar.gz", tmp_path / "back"
    for seed in range(2):
        st.train("txc", "gru[hidden=8,dim=4]", length=8, seed=seed, settings=SHORT, out=home, device="cpu")
    assert main(["diagnose", str(home), "--length", "16", "--stream", "64"]) == 0
    (bare,) = (path for path in home.glob("*.json") if '"seed": 1' in path.read_text())
    (home / "diagnosis" / bare.name).write_text("{")  # a diagnosis that is damaged stays behind
    assert main(["pack", str(home), str(packed)]) == 0
    assert main(["unpack", str(packed), str(back)]) == 0
    assert "2 cells taken, 0 were there already; 1 diagnosis taken" in capsys.readouterr().out
    (kept,) = (path for path in (home / "diagnosis").glob("?" * 20 + ".json") if path.name != bare.name)
    assert (back / "diagnosis" / kept.name).read_bytes() == kept.read_bytes()
    assert not (back / "diagnosis" / bare.name).exists()
    compared = comparison(Store(back))
    assert compared is not None
    assert [each["key"] for each in compared.cells] == [kept.stem]
    assert [(each.key, each.why) for each in compared.left_out] == [(bare.stem, "no weights are kept")]
    assert main(["diagnose", str(back)]) == 0  # what is diagnosed is shown, also without its weights
    assert "1 diagnosed, 1 left out" in capsys.readouterr().out

    assert main(["diagnose", str(back), "--again"]) == 0  # it cannot be done again, so it stays
    assert "1 diagnosed, 1 left out" in capsys.readouterr().out

    assert main(["unpack", str(packed), str(back)]) == 0
    assert "0 cells taken, 2 were there already\n" in capsys.readouterr().out
    foreign = json.loads(kept.read_text())
    del foreign["error"]
    kept.write_text(json.dumps(foreign))
    assert main(["merge", str(home), "--out", str(tmp_path / "foreign")]) == 0  # one that lacks a part stays behind
    assert not (tmp_path / "foreign" / "diagnosis").exists()
    kept.write_bytes((back / "diagnosis" / kept.name).read_bytes())
    assert main(["merge", str(home), str(back), "--out", str(tmp_path / "all")]) == 0
    assert (tmp_path / "all" / "diagnosis" / kept.name).read_bytes() == kept.read_bytes()
    assert main(["pack", str(home), str(packed), "--no-diagnoses"]) == 0
    assert main(["unpack", str(packed), str(tmp_path / "none")]) == 0
    assert not (tmp_path / "none" / "diagnosis").exists()


def test_a_diagnosis_does_not_go_to_the_record_of_another_run(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    cell = st.train("txc", "gru[hidden=8,dim=4]", length=8, settings=SHORT, out=home, device="cpu").cell
    assert main(["diagnose", str(home), "--length", "16", "--stream", "64"]) == 0
    record = Store(home).read(cell)
    assert isinstance(record, TrainingRecord)
    another = replace(record, training=replace(record.training, final_train_loss=0.25))
    Store(other).write(another)  # as good, so it stays; its weights are not those diagnosed
    merge([home], other)
    assert Store(other).read(cell) == another
    assert not (other / "diagnosis").exists()


def test_a_diagnosis_of_a_newer_version_is_refused_and_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    st.train("txc", "gru[hidden=8,dim=4]", length=8, settings=SHORT, out=tmp_path, device="cpu")
    assert main(["diagnose", str(tmp_path), "--length", "16", "--stream", "64"]) == 0
    (path,) = (tmp_path / "diagnosis").glob("?" * 20 + ".json")
    newer = seal.seal(seal.unseal(path.read_bytes()) | {"format": 2})
    path.write_bytes(newer)
    assert main(["diagnose", str(tmp_path)]) != 0
    assert "needs a newer version" in capsys.readouterr().err
    assert path.read_bytes() == newer


def test_a_diagnosis_of_an_earlier_version_is_read_and_has_a_mechanism() -> None:
    """As 0.2.0 wrote it: other words, and none of the fields that came later."""
    made = st.diagnose("txc", st.model("linear-rnn", inputs=2, outputs=2), trained=16, length=32, stream=64)
    assert made["mechanism"] == "never tracked"
    made["conclusion"] = "never represented"
    later = {"mechanism": made, "over_all": made["gradient"], "gap": made["probe"]["state"],
             "decoding": made["probe"], "shrunk": made["separation"]}  # fmt: skip
    for name, part in later.items():
        del part[name]
    found = of_dict(made)
    assert (found.conclusion, found.mechanism) == ("not decodable", "never tracked")
    assert of_dict(made | {"conclusion": "fades"}).mechanism == "fades"
    assert of_dict(made | {"conclusion": "fails"}).mechanism == "unclear"


def test_a_record_is_small(tmp_path: Path) -> None:
    for path in WEIGHTS.glob("dfe5*"):
        shutil.copy(path, tmp_path)
    assert main(["diagnose", str(tmp_path), "--stream", "64"]) == 0
    (made,) = (tmp_path / "diagnosis").glob("dfe5*.json")
    assert made.stat().st_size < 60_000


def test_numbers_are_rounded_and_what_is_none_is_null() -> None:
    given = {"a": [0.123456, float("inf")], "b": True, "c": 123456.0, "d": np.int64(7), "e": (np.float32(0.25),)}
    assert rounded(given) == {"a": [0.1235, None], "b": True, "c": 123500.0, "d": 7, "e": [0.25]}
    assert type(rounded(np.int64(7))) is int


def test_a_model_that_does_not_fit_the_task_is_refused() -> None:
    with pytest.raises(st.BadInput, match="3 inputs"):
        st.diagnose("txc", st.model("gru", inputs=3, outputs=2))
    with pytest.raises(st.BadInput, match=r"torch\.nn\.Module"):
        st.diagnose("txc", "gru")
    with pytest.raises(st.BadInput, match="positions"):
        st.diagnose(
            "txc", st.model("transformer", inputs=2, outputs=2, positions=32, dim=8, layers=1), trained=16, length=64
        )


@pytest.mark.parametrize("name", ["transformer", "mlp"])
def test_a_model_without_a_state_is_told_what_can_be(name: str) -> None:
    options: dict[str, Any] = {"dim": 8, "layers": 1} if name == "transformer" else {"hidden": 8}
    model = st.model(name, inputs=2, outputs=2, seed=0, **options)
    found = st.diagnose("txc", model, trained=16, length=32, stream=64)
    assert found["conclusion"] == "no state"
    assert len(found["positions"]["position"]) > 8
    assert all(weight.requires_grad for weight in model.parameters())


@pytest.mark.parametrize(
    "name",
    [
        "rtc",
        "fsm",
        "s3_composition",
        "s5_composition",
        "dyck",
        "stream.majority",
        "track_the_stat.median",
        "txc[ask=end]",
    ],
)
def test_every_kind_of_task_can_be_diagnosed(name: str) -> None:
    task = st.task(name)
    model = st.model("gru", inputs=task.inputs, outputs=task.outputs, seed=0, hidden=8, dim=4)
    found = st.diagnose(task, model, trained=16, length=32, stream=64)
    assert found["task"] == task.name
    others = [part for key, part in found.items() if key not in SHAPES and isinstance(part, dict)]
    said = {part.get("says") for part in others}
    assert 2 <= len([line for line in found["sentences"] if line not in said]) <= 4
    json.dumps(found, allow_nan=False)
