"""Merging, packing, tables, and the verbs of the command line."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import random
import tarfile
from pathlib import Path

import pytest

from statetrack.cli import main
from statetrack.errors import BadInput
from statetrack.results import Cell, Store, merge, pack, status, unpack
from statetrack.results.records import no_result
from statetrack.results.table import rows, write_csv, write_parquet
from statetrack.sweeps import Options, run
from tests.sweeps.counted_cells import made, sweep


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run(sweep(4, weights=True), tmp_path / "out", Options(workers=0))
    return tmp_path / "out"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


@pytest.mark.parametrize("ending", ["tar", "tar.gz"])
def test_a_folder_packs_into_one_file_and_back(ending: str, folder: Path, tmp_path: Path) -> None:
    first, second = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    assert pack(folder, first, weights=True) == 4
    assert pack(folder, second, weights=True) == 4
    assert first.read_bytes() == second.read_bytes()
    joined = unpack(first, tmp_path / "back")
    assert (joined.taken, joined.kept) == (4, 0)
    assert names(tmp_path / "back") == names(folder)
    for path in folder.glob("*.*"):
        if path.is_file():
            assert (tmp_path / "back" / path.name).read_bytes() == path.read_bytes()
    assert status(Store(tmp_path / "back")).counts["done"] == 4
    assert unpack(first, tmp_path / "back").kept == 4


def test_weights_and_checkpoints_are_packed_when_asked_for(folder: Path, tmp_path: Path) -> None:
    store = Store(folder)
    scratch = store.scratch(sweep(1).cells)
    scratch.mkdir(parents=True)
    (scratch / f"{sweep(1).cells[0].key}.checkpoint.safetensors").write_bytes(b"half way")
    pack(folder, tmp_path / "bare.tar")
    pack(folder, tmp_path / "full.tar", weights=True, checkpoints=True)
    with tarfile.open(tmp_path / "bare.tar") as bare, tarfile.open(tmp_path / "full.tar") as full:
        assert not any("safetensors" in name for name in bare.getnames())
        assert sum("safetensors" in name for name in full.getnames()) == 5
    unpack(tmp_path / "full.tar", tmp_path / "back")
    (moved,) = (tmp_path / "back/.sweep/work").glob("*/*")
    assert moved.read_bytes() == b"half way"


@pytest.mark.parametrize("name", ["../evil.json", "/evil.json", "a/b.json", ".sweep/plans/../../evil.json", "run.sh"])
def test_an_archive_with_other_files_is_refused_whole(name: str, folder: Path, tmp_path: Path) -> None:
    pack(folder, tmp_path / "a.tar")
    with tarfile.open(tmp_path / "a.tar", "a") as tar:
        member = tarfile.TarInfo(name)
        member.size = 2
        tar.addfile(member, io.BytesIO(b"{}"))
    with pytest.raises(BadInput, match="does not belong in a packed folder"):
        unpack(tmp_path / "a.tar", tmp_path / "back")
    assert not (tmp_path / "back").exists()
    assert not list(tmp_path.rglob("evil.json"))


def test_a_cut_archive_is_named(folder: Path, tmp_path: Path) -> None:
    pack(folder, tmp_path / "a.tar.gz")
    data = (tmp_path / "a.tar.gz").read_bytes()
    (tmp_path / "a.tar.gz").write_bytes(data[: len(data) // 2])
    with pytest.raises(BadInput, match=r"a\.tar\.gz cannot be read"):
        unpack(tmp_path / "a.tar.gz", tmp_path / "back")


def test_a_flipped_bit_of_a_compressed_archive_changes_no_number(folder: Path, tmp_path: Path) -> None:
    """It is refused, or was where it says nothing: in the header of the compressed file, or in a code nothing uses."""
    archive = tmp_path / "a.tar.gz"
    pack(folder, archive)
    data, whole = archive.read_bytes(), [path.read_bytes() for path in sorted(folder.glob("*.json"))]
    for number, place in enumerate(random.Random(0).sample(range(len(data)), 40)):
        flipped = bytearray(data)
        flipped[place] ^= 1 << number % 8
        archive.write_bytes(flipped)
        back = tmp_path / f"back{number}"
        try:
            unpack(archive, back)
        except BadInput:
            continue
        assert [path.read_bytes() for path in sorted(back.glob("*.json"))] == whole
        assert place < 10 or gzip.decompress(flipped) == gzip.decompress(data)


def test_a_merge_keeps_the_better_record_of_a_cell(folder: Path, tmp_path: Path) -> None:
    cell = Cell("t", "s", 1, 0, {})
    order = [no_result(cell, "failed", "x"), no_result(cell, "skipped", "x"), made(cell)]
    for worse, better in itertools.pairwise(order):
        for number, (there, comes) in enumerate([(worse, better), (better, worse)]):
            one, two = (tmp_path / f"{better.status}{number}{side}" for side in "ab")
            Store(one).write(there)
            Store(two).write(comes)
            merge([two], one)
            assert Store(one).record(cell) == better


def test_a_merge_names_damaged_files(folder: Path, tmp_path: Path) -> None:
    victim = sorted(folder.glob("*.json"))[0]
    victim.write_text("{")
    joined = merge([folder], tmp_path / "all")
    assert [damage.path for damage in joined.damaged] == [victim]
    assert joined.taken == 3


def test_results_are_one_row_a_cell(folder: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    failing = sweep(1, "counted:fails").cells[0]
    Store(folder).write(no_result(failing, "failed", "because"))
    assert write_csv(Store(folder), tmp_path / "a.csv", {}) == 5
    read = list(csv.DictReader((tmp_path / "a.csv").open()))
    assert sorted(row["key"] for row in read) == sorted(path.stem for path in folder.glob("*.json"))
    done = [row for row in read if row["status"] == "done"]
    assert {(row["accuracy"], row["interval_low"], row["interval_high"]) for row in done} == {("0.5", "0.4", "0.6")}
    assert [row["reason"] for row in read if row["status"] == "failed"] == ["because"]
    write_parquet(Store(folder), tmp_path / "a.parquet", {})
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.column("key").to_pylist() == [row["key"] for row in read]
    assert table.column("length").to_pylist() == [row["length"] for row in rows(Store(folder), {})]


QUICK = """\
tasks: [txc]
subjects: [mlp]
lengths: [4]
seeds: 2
settings: {most_checks: 1, check_every: 2, batch: 4, polish: 2, validation_rows: 16}
"""


@pytest.mark.needs("torch")
def test_the_verbs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out, packed = tmp_path / "quick.yaml", tmp_path / "out", tmp_path / "out.tar.gz"
    path.write_text(QUICK)
    assert main(["sweep", str(path), "--out", str(out), "--workers", "0", "--device", "cpu"]) == 0
    assert "2 cells: 2 done, 0 failed, 0 skipped, 0 left; 0 were there before" in capsys.readouterr().out
    assert main(["status", str(out), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["done"], said["missing"], said["seconds_left"]) == (2, 0, 0.0)
    assert main(["results", str(out)]) == 0
    assert "tail_accuracy" in capsys.readouterr().out
    assert main(["results", str(out), "--csv", "-"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert main(["pack", str(out), str(packed)]) == 0
    assert main(["unpack", str(packed), str(tmp_path / "back")]) == 0
    assert main(["merge", str(out), str(tmp_path / "back"), "--out", str(tmp_path / "all")]) == 0
    assert "2 cells taken, 2 were there already" in capsys.readouterr().out
    sorted(out.glob("*.json"))[0].write_text("")
    assert main(["status", str(out)]) == 1
    assert "damaged: " in capsys.readouterr().out
    assert main(["sweep", str(path), "--out", str(out), "--workers", "0", "--device", "cpu"]) == 0
    assert "damaged, its cell is run again: " in capsys.readouterr().err


REFUSED = [
    ("sweep none --out out", "unknown sweep or .yaml file 'none'"),
    ("sweep none.yaml --out out", "none.yaml cannot be read: No such file"),
    ("sweep demo --out out --part 5/4", "part 5/4 should be one of 1/4 to 4/4"),
    ("sweep demo --out out --part x", "--part x should be of the form 2/4"),
    ("sweep demo --out out --workers -1", "workers=-1 should lie in 0.."),
    ("sweep demo --out out --workers 1 --ray auto", "not on both"),
    ("sweep demo --out nowhere/out", "nowhere is not a folder"),
    ("sweep demo --out out --device gpu", "device 'gpu' should be auto, cpu or cuda"),
    ("sweep demo --out out --limit-seconds nan", "limit_seconds=nan should be above 0"),
    ("sweep demo --out out --model hf:x", "demo.yaml has no place for a language model"),
    ("sweep track-the-stat --out out --model x", "track-the-stat.yaml, line "),
    ("status nowhere", "nowhere is not there"),
    ("results nowhere", "nowhere is not there"),
    ("merge nowhere --out out", "nowhere is not there"),
    ("pack nowhere a.tar", "nowhere is not there"),
    ("pack . a.zip", "a.zip should end in .tar"),
    ("unpack nowhere.tar out", "nowhere.tar cannot be read"),
    ("unpack words.tar out", "words.tar cannot be read: it is not a whole tar file"),
]


NEEDS = {line: pytest.mark.needs("torch") for line, _ in REFUSED if line.startswith("sweep demo")}


@pytest.mark.parametrize(("line", "said"), [pytest.param(*row, marks=NEEDS.get(row[0], ())) for row in REFUSED])
def test_bad_input_is_one_line(
    line: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.tar").write_text("words")
    assert main(line.split()) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()
