"""Data sets of anybody: whatever stands in rows, metadata, lists and columns is one line, in bounded memory."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from statetrack.data.audit import audit
from statetrack.errors import BadInput

NESTED = "[" * 100_000


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (NESTED, "row 1: broken JSON"),
        ('{"input_sequence": ' + NESTED, "row 1: broken JSON"),
        ('{"input_sequence": "0", "target": ' + "9" * 5000 + "}", "row 1: broken JSON"),
        ('{"input_sequence": "' + "0 " * 2**24 + '", "target": "0"}', "row 1: it has more than the 33,554,432 bytes"),
    ],
)
def test_hostile_rows_are_named(tmp_path: Path, line: str, problem: str) -> None:
    (tmp_path / "s3.jsonl").write_text(line + "\n")
    with pytest.raises(BadInput, match=problem):
        audit(tmp_path / "s3.jsonl")


@pytest.mark.parametrize(
    "told", [NESTED, '{"a": ' + "9" * 5000 + "}", '{"a": [' + "{}," * 2**24 + "{}]}", "[1]", "\ud800"]
)
def test_hostile_metadata_is_named(tmp_path: Path, told: str) -> None:
    (tmp_path / "s3.jsonl").write_text('{"input_sequence": "0", "target": "0"}\n')
    (tmp_path / "metadata.json").write_bytes(told.encode(errors="surrogatepass"))
    with pytest.raises(BadInput, match=r"metadata\.json cannot be read"):
        audit(tmp_path / "s3.jsonl")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("dataset_dict.json", {"splits": 5}),
        ("dataset_dict.json", {"splits": ["../../etc"]}),
        ("state.json", {"_data_files": 5}),
        ("state.json", {"_data_files": "abc"}),
        ("state.json", {"_data_files": [{}]}),
        ("state.json", {"_data_files": [{"filename": "/etc/passwd"}]}),
        ("state.json", {"_data_files": [{"filename": ".."}]}),
    ],
)
def test_a_saved_data_set_lists_files_beside_it(tmp_path: Path, name: str, told: object) -> None:
    (tmp_path / name).write_text(json.dumps(told))
    with pytest.raises(BadInput, match="it should list names of files or folders beside it"):
        audit(tmp_path, "s3")


def test_what_is_no_plain_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "s3.jsonl")
    with pytest.raises(BadInput, match="a pipe or a device"):
        audit(tmp_path / "s3.jsonl")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "train.jsonl").symlink_to("/dev/zero")
    with pytest.raises(BadInput, match="a pipe or a device"):
        audit(folder, "s3")


def test_odd_columns_of_parquet_are_named(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    both = ["input_sequence", "target"]
    for table, problem in [
        (pa.table({both[0]: [b"\xff"], both[1]: [b"1"]}), "input_sequence should be text"),
        (pa.Table.from_arrays([pa.array(["0"])] * 3, names=[both[0], *both]), "two columns have one name"),
        (pa.table({both[0]: ["0 " * 2**26], both[1]: ["0"]}), "its rows are longer than are read"),
    ]:
        pq.write_table(table, tmp_path / "s3.parquet", compression="zstd")
        with pytest.raises(BadInput, match=problem):
            audit(tmp_path / "s3.parquet")


@pytest.mark.parametrize(("count", "said"), [(8, "IDs are given in groups of up to"), (30, "a product may have 16")])
def test_a_group_without_end_in_metadata_is_one_line(tmp_path: Path, count: int, said: str) -> None:
    (tmp_path / "rows.jsonl").write_text('{"input_sequence": "0", "target": "0"}\n')
    (tmp_path / "metadata.json").write_text(json.dumps({"group": "x".join(["s5"] * count)}))
    with pytest.raises(BadInput, match=said):
        audit(tmp_path / "rows.jsonl")
