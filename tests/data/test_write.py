"""Data sets on disk: what stands in them, that equal requests give equal bytes, and that half files never stay."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

from statetrack import BadInput, group, task
from statetrack.cli import main
from statetrack.data import rows as rows_module
from statetrack.data.lengths import Lengths
from statetrack.data.write import DataRequest, write
from statetrack.files import Hashed


def request(name: str, length: str, count: int, **more: Any) -> DataRequest:
    return DataRequest(task(name), Lengths.read(length), count, **more)


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def composed(elements: np.ndarray, ids: list[int]) -> list[int]:
    """p_n ∘ ... ∘ p_1, point by point."""
    points = list(range(elements.shape[1]))
    for element in ids:
        points = [int(elements[element][point]) for point in points]
    return points


@pytest.mark.parametrize("convention", ["mathematical", "published"])
@pytest.mark.parametrize("name", ["s3", "a5", "psl3_4"])
def test_group_rows_are_the_sampled_ones_with_the_labels_of_the_convention(
    tmp_path: Path, name: str, convention: str
) -> None:
    out = tmp_path / "rows.jsonl"
    write(request(name, "3..40", 600, seed=5, split="test", convention=convention), out=out)
    chosen, elements, rows = task(name), group(name).elements, lines(out)
    assert len(rows) == 600
    for i, row in enumerate(rows):
        ids = [int(word) for word in row["input_sequence"].split(" ")]
        assert row["sequence_length"] == len(ids)
        assert ids == chosen.sample(len(ids), 1, seed=5, split="test", first=i).inputs[0].tolist()
        order = ids if convention == "mathematical" else ids[::-1]
        assert elements[int(row["target"])].tolist() == composed(elements, order)
        assert (row["group_order"], row["group_degree"]) == elements.shape
    assert len({row["sequence_length"] for row in rows}) > 30
    assert rows[0]["group_type"] == {"s": "symmetric", "a": "alternating", "p": "psl"}[name[0]]


def test_jsonl_lines_are_what_json_dumps_writes(tmp_path: Path) -> None:
    for name in ("s3", "fsm", "track_the_stat.median"):
        out = tmp_path / "rows.jsonl"
        write(request(name, "1,7", 50), out=out)
        assert out.read_text() == "".join(json.dumps(row) + "\n" for row in lines(out))


@pytest.mark.parametrize("name", ["rtc", "fsm[k=2,p=0.3]", "dyck", "mod_counter[ask=end]", "stream.echo[k=3]"])
def test_other_tasks_have_their_answers_and_nothing_where_none_is_asked(tmp_path: Path, name: str) -> None:
    out = tmp_path / "rows.jsonl"
    write(request(name, "2..20", 300, seed=3), out=out)
    chosen, stream = task(name), name.startswith("stream.")
    for i, row in enumerate(lines(out)):
        inputs, targets = row["numbers" if stream else "inputs"], row["answers" if stream else "targets"]
        batch = chosen.sample(len(inputs), 1, seed=3, first=i)
        assert inputs == batch.inputs[0].tolist()
        assert targets == [t if asked else None for t, asked in zip(batch.targets[0].tolist(), batch.mask[0])]
        assert list(row) == (["seed", "row", "numbers", "answers"] if stream else ["inputs", "targets"])
        if stream:
            assert (row["seed"], row["row"]) == (3, i)


def test_the_original_split_of_track_the_stat_has_the_originals_streams(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    write(request("track_the_stat.median", "300", 4, seed=2, split="original"), out=out)
    rows = lines(out)
    assert [list(row) for row in rows] == [["seed", "numbers", "answers"]] * 4
    assert [row["seed"] for row in rows] == [2, 3, 4, 5]
    for row in rows:
        numbers = np.random.default_rng(row["seed"]).integers(0, 100, size=300)
        assert row["numbers"] == numbers.tolist()
        assert row["answers"] == [float(np.median(numbers[: t + 1])) for t in range(300)]


@pytest.mark.parametrize("name", ["s5", "flip_flop", "stream.echo[k=3]", "track_the_stat.median"])
@pytest.mark.needs("datasets")
def test_all_formats_hold_the_same_rows(tmp_path: Path, name: str) -> None:
    import datasets

    wanted = request(name, "1..30", 500, seed=1, split="validation")
    write(wanted, out=tmp_path / "rows.jsonl")
    write(wanted, out=tmp_path / "rows.parquet")
    write(wanted, hf=tmp_path / "folder")
    rows = lines(tmp_path / "rows.jsonl")
    assert pyarrow.parquet.read_table(tmp_path / "rows.parquet").to_pylist() == rows
    opened = datasets.load_from_disk(str(tmp_path / "folder"))
    assert opened.to_list() == rows
    assert str(opened.split) == "validation"
    if name == "s5":
        types = {column: str(feature.dtype) for column, feature in opened.features.items()}
        assert types == {
            "input_sequence": "string", "target": "string", "sequence_length": "int64",
            "group_degree": "int64", "group_order": "int64", "group_type": "string",
        }  # fmt: skip


def test_equal_requests_give_equal_bytes_and_rows_do_not_depend_on_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = request("a5", "3..50", 400, seed=9)
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        for file in ("rows.jsonl", "rows.parquet"):
            write(wanted, out=tmp_path / place / file)
        write(wanted, hf=tmp_path / place / "folder")
    first, second = (sorted(p for p in (tmp_path / place).rglob("*") if p.is_file()) for place in ("one", "two"))
    assert [path.name for path in first] == [path.name for path in second]
    assert len(first) == 8
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(first, second))
    monkeypatch.setattr(rows_module, "CHUNK_VALUES", 1000)
    monkeypatch.setattr(rows_module, "BATCH_ROWS", 3)
    write(wanted, out=tmp_path / "chunked.jsonl")
    assert (tmp_path / "chunked.jsonl").read_bytes() == (tmp_path / "one" / "rows.jsonl").read_bytes()


def test_more_rows_begin_with_the_fewer(tmp_path: Path) -> None:
    write(request("s4", "3..50", 40), out=tmp_path / "few.jsonl")
    write(request("s4", "3..50", 90), out=tmp_path / "many.jsonl")
    assert lines(tmp_path / "many.jsonl")[:40] == lines(tmp_path / "few.jsonl")


def test_the_metadata_say_what_made_the_file(tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    sha256 = write(request("a4", "5,6", 10, seed=4, convention="published"), out=out)
    metadata = json.loads((tmp_path / "rows.parquet.meta.json").read_text())
    assert hashlib.sha256(out.read_bytes()).hexdigest() == sha256 == metadata["sha256"]["rows.parquet"]
    assert metadata["permutation_map"] == {str(i): images.tolist() for i, images in enumerate(group("a4").elements)}
    wanted = {"task": "a4_composition", "seed": 4, "count": 10, "length": "5,6", "split": "train", "group": "a4"}
    assert {**metadata, **wanted} == metadata
    assert metadata["convention"] == "published"
    write(request("txc", "5", 10), hf=tmp_path / "folder")
    metadata = json.loads((tmp_path / "folder" / "metadata.json").read_text())
    data = (tmp_path / "folder" / "data-00000-of-00001.arrow").read_bytes()
    assert metadata["sha256"] == {"data-00000-of-00001.arrow": hashlib.sha256(data).hexdigest()}
    assert "permutation_map" not in metadata


@pytest.mark.parametrize("target", ["rows.jsonl", "rows.parquet", "folder"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("no")])
def test_what_is_interrupted_leaves_nothing(tmp_path: Path, target: str, error: BaseException) -> None:
    def interrupt(rows: int) -> None:
        raise error

    with pytest.raises(type(error)):
        write(request("s3", "10", 10), **{"hf" if target == "folder" else "out": tmp_path / target}, progress=interrupt)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", ["rows.jsonl", "rows.parquet", "folder"])
def test_a_full_disk_is_one_line_and_leaves_what_was_there(
    tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = {"hf" if target == "folder" else "out": tmp_path / target}
    write(request("s3", "10", 10), **place)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def full(self: Hashed, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Hashed, "write", full)
    with pytest.raises(BadInput, match=rf"{target} cannot be written: No space left on device"):
        write(request("s3", "10", 20), **place, overwrite=True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("target", ["rows.parquet", "folder"])
def test_without_pyarrow_the_pip_line_is_named(tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("pyarrow", "pyarrow.parquet", "pyarrow.ipc"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(BadInput, match=r"pip install .*\[data\]'"):
        write(request("s3", "10", 10), **{"hf" if target == "folder" else "out": tmp_path / target})
    assert list(tmp_path.iterdir()) == []
    write(request("s3", "10", 10), out=tmp_path / "rows.jsonl")
    assert len(lines(tmp_path / "rows.jsonl")) == 10


def test_a_written_folder_is_replaced_where_that_is_asked_for_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()  # an empty one may be there
    write(request("s3", "10", 10), hf=tmp_path / "folder")
    before = {path.name: path.read_bytes() for path in (tmp_path / "folder").iterdir()}
    with pytest.raises(BadInput, match="folder holds a data set already; --overwrite"):
        write(request("s3", "10", 20), hf=tmp_path / "folder")
    assert {path.name: path.read_bytes() for path in (tmp_path / "folder").iterdir()} == before
    write(request("s3", "10", 20), hf=tmp_path / "folder", overwrite=True)
    assert json.loads((tmp_path / "folder" / "metadata.json").read_text())["count"] == 20
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    (tmp_path / "folder" / "thesis.tex").write_text("years of work")
    with pytest.raises(BadInput, match=r"holds other files, such as thesis\.tex"):
        write(request("s3", "10", 20), hf=tmp_path / "folder", overwrite=True)
    assert (tmp_path / "folder" / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ({"out": "rows.csv"}, r"should end in \.jsonl or \.parquet"),
        ({"out": "none/rows.jsonl"}, "none does not exist"),
        ({"out": "file/rows.jsonl"}, "file is not a folder"),
        ({"out": "folder.jsonl"}, "it is a folder"),
        ({"hf": "none/folder"}, "none does not exist"),
        ({"hf": "file"}, "it is a file"),
        ({"hf": Path()}, "give the new folder a name"),
        ({}, "give one of the two"),
        ({"out": "rows.jsonl", "hf": "new"}, "give one of the two"),
    ],
)
def test_impossible_targets(tmp_path: Path, target: dict[str, Any], problem: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.jsonl").mkdir()
    before = sorted(tmp_path.rglob("*"))
    places = {key: value if isinstance(value, Path) else tmp_path / value for key, value in target.items()}
    with pytest.raises(BadInput, match=problem):
        write(request("s3", "10", 10), **places)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("name", "more", "problem"),
    [
        ("s3", {"count": 0}, "count 0"),
        ("s3", {"seed": -1}, "seed -1"),
        ("s3", {"split": "original"}, "train, validation, test"),
        ("s3", {"convention": "upside down"}, "mathematical, published"),
        ("txc", {"convention": "published"}, "for groups"),
    ],
)
def test_impossible_requests(name: str, more: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        request(name, "10", **{"count": 10, **more})


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_what_a_killed_process_leaves_is_hidden_and_goes_with_the_next(tmp_path: Path, sent: signal.Signals) -> None:
    target = tmp_path / "rows.jsonl"
    words = ["data", "txc", "--length", "100", "--count", "10000000", "--out", str(target)]
    writer = subprocess.Popen([sys.executable, "-m", "statetrack", *words], stderr=subprocess.DEVNULL)
    while not any(path.stat().st_size for path in tmp_path.glob(".*.part")):
        assert writer.poll() is None
        time.sleep(0.01)
    writer.send_signal(sent)
    writer.wait()
    assert not target.exists()
    left = list(tmp_path.glob(".*"))
    assert bool(left) == (sent == signal.SIGKILL)
    for path in left:
        os.utime(path, (0, 0))  # as after an hour
    assert main(["data", "txc", "--length", "8", "--count", "2", "--out", str(target)]) == 0
    assert list(tmp_path.glob(".*")) == []
