"""The audit: what it says of data sets whose faults are known because they were put there."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from statetrack import BadInput, task
from statetrack.data.audit import audit
from statetrack.data.lengths import Lengths
from statetrack.data.write import DataRequest, write
from tests.data.published_sets import closure, publish, seven_wrong_ones

S4 = list(permutations(range(4)))
S3 = list(permutations(range(3)))
ORDERS = {"q8": 8, "q16": 16, "q32": 32, "psl2_4": 10, "psl2_8": 18, "psl2_9": 60, "psl3_4": 168}


def rewrite(file: Path, change: Any) -> None:
    """Change a JSONL file row by row; `change` gets (index, row)."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for i, row in enumerate(rows):
        change(i, row)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize(("name", "elements", "really"), list(seven_wrong_ones()), ids=ORDERS)
def test_the_seven_wrong_groups_are_caught(
    tmp_path: Path, name: str, elements: list[tuple[int, ...]], really: list[str]
) -> None:
    assert len(elements) == ORDERS[name]
    publish(tmp_path / name, elements, "quaternion" if name[0] == "q" else "psl")
    result = audit(tmp_path / name)
    assert result.facts["group"]["claimed"] == name
    assert result.facts["group"]["is_claimed"] is False
    assert result.facts["group"]["order"] == ORDERS[name]
    assert result.facts["group"]["same_as"] == really
    assert result.facts["labels"]["follows"] == "published"
    assert result.facts["labels"]["published"] + result.facts["labels"]["both"] == 90
    assert [finding for finding in result.findings if finding.startswith(f"the group is not {name}")]
    assert len(result.findings) == 2  # the group and the reversed labels, and nothing that is not there


@pytest.mark.parametrize(("published", "follows"), [(True, "published"), (False, "mathematical")])
def test_the_convention_is_counted_row_by_row(tmp_path: Path, published: bool, follows: str) -> None:
    publish(tmp_path / "s4", S4, "symmetric", published=published)
    result = audit(tmp_path / "s4")
    labels = result.facts["labels"]
    assert labels["follows"] == follows
    assert labels["neither"] == labels["not_checked"] == 0
    assert labels[follows] + labels["both"] == 90
    assert labels["both"] < 15  # by chance about one row in 24
    assert result.facts["group"]["same_as"] == ["s4"]
    assert result.clean is not published
    if published:
        match = f"labels follow p_1 ∘ ... ∘ p_n (published): 90 of 90 rows match it, {labels['both']} match"
        assert result.findings[0].startswith(match)


def test_an_abelian_group_has_no_convention(tmp_path: Path) -> None:
    publish(tmp_path / "c6", closure([(1, 2, 3, 4, 5, 0)]), "cyclic")
    result = audit(tmp_path / "c6")
    assert result.facts["labels"]["follows"] == "either"
    assert result.clean


def test_wrong_labels_and_mixed_conventions_are_named(tmp_path: Path) -> None:
    shuffled = publish(tmp_path / "s4", S4, "symmetric", published=False)
    publish(tmp_path / "other", S4, "symmetric", published=True)

    def spoil(i: int, row: dict[str, Any]) -> None:
        if i in (7, 9):
            row["target"] = str((int(row["target"]) + 1) % 24)

    def turn(i: int, row: dict[str, Any]) -> None:
        ids = [int(word) for word in row["input_sequence"].split()]
        points = list(range(4))
        for element in reversed(ids):
            points = [shuffled[element][point] for point in points]
        row["target"] = str(shuffled.index(tuple(points)))

    rewrite(tmp_path / "s4" / "test.jsonl", turn)
    rewrite(tmp_path / "s4" / "train.jsonl", spoil)
    result = audit(tmp_path / "s4")
    assert result.facts["labels"]["follows"] == "mathematical"
    assert result.facts["labels"]["neither"] + result.facts["labels"]["published"] >= 25
    assert any("follow the other convention, p_1 ∘ ... ∘ p_n" in finding for finding in result.findings)
    neither = [finding for finding in result.findings if "right in neither convention" in finding]
    assert len(neither) == 1
    assert "rows of train" in neither[0]
    assert "row 8 " in neither[0] or "row 10 " in neither[0]


def test_ids_outside_the_map_and_columns_that_do_not_fit(tmp_path: Path) -> None:
    publish(tmp_path / "s4", S4, "symmetric", published=False)

    def spoil(i: int, row: dict[str, Any]) -> None:
        if i == 4:
            row["input_sequence"] = "1 99 " + row["input_sequence"]
            row["sequence_length"] += 2
        if i == 5:
            row["target"] = "24"
        if i == 6:
            row["sequence_length"] += 1
        if i >= 50:
            row["group_order"] = 12
        row["group_type"] = "alternating"
        del row["group_degree"]

    rewrite(tmp_path / "s4" / "train.jsonl", spoil)
    result = audit(tmp_path / "s4")
    assert result.facts["ids"]["rows_outside"] == {"test": 0, "train": 2}
    assert result.facts["labels"]["not_checked"] == 2
    assert sorted(result.findings) == [
        "1 row of train has a sequence_length that does not fit; the first is row 7 (it says "
        + f"{json.loads((tmp_path / 's4/train.jsonl').read_text().splitlines()[6])['sequence_length']})",
        "10 rows of train have a group_order that does not fit; the first is row 51 (it says 12)",
        "2 rows of train have an ID outside the map; the first is row 5 (ID 99)",
        "60 rows of train have a group_type that does not fit; the first is row 1 (it says alternating)",
        "column group_degree is missing in 60 rows",
    ]


def test_a_map_that_is_no_group(tmp_path: Path) -> None:
    publish(tmp_path / "s4", S4, "symmetric", published=False)
    path = tmp_path / "s4" / "metadata.json"
    metadata = json.loads(path.read_text())
    metadata["permutation_map"]["3"] = metadata["permutation_map"]["8"]
    path.write_text(json.dumps(metadata))
    findings = audit(tmp_path / "s4").findings
    assert "the permutation map gives 1 permutations under more than one ID" in findings
    assert "the permutation map is not a group: its 23 permutations generate 24" in findings


def test_lengths_go_to_the_nearest_bucket(tmp_path: Path) -> None:
    write(DataRequest(task("s3"), Lengths.read("3,7,8,10,498,500,501,1024"), 800), out=tmp_path / "s3.jsonl")
    lengths = audit(tmp_path / "s3.jsonl").facts["lengths"]
    nearest = {bucket: n["rows"] for bucket, n in lengths["nearest"].items() if n["rows"]}
    exact = {bucket: n["rows"] for bucket, n in lengths["exact"].items() if n["rows"]}
    assert nearest == {"5": 200, "10": 200, "500": 400}
    assert exact == {"10": 100, "500": 100}
    assert (lengths["in_last_bucket"], lengths["exactly_on_a_bucket"]) == (400, 200)
    assert len(lengths["nearest"]) == 100
    assert sum(n["share"] for n in lengths["nearest"].values()) == pytest.approx(1)


def test_duplicates_within_and_across_splits(tmp_path: Path) -> None:
    publish(tmp_path / "s4", S4, "symmetric", published=False)
    train, test = tmp_path / "s4" / "train.jsonl", tmp_path / "s4" / "test.jsonl"
    assert audit(tmp_path / "s4").clean
    rows = train.read_text().splitlines(keepends=True)
    test.write_text(test.read_text() + rows[3] + rows[4])
    train.write_text("".join([*rows, rows[0], rows[0], rows[1]]))
    result = audit(tmp_path / "s4")
    assert {split: n["rows"] for split, n in result.facts["duplicates"]["within"].items()} == {"test": 0, "train": 3}
    assert [n["rows"] for n in result.facts["duplicates"]["across"].values()] == [2]
    assert "3 rows of train repeat an earlier one" in result.findings
    assert len(result.findings) == 2
    assert "2 of the 32 rows of test are also in train" in result.findings


def test_repeats_that_chance_explains_are_counted_and_no_finding(tmp_path: Path) -> None:
    for split in ("train", "test"):  # 216 sequences of length 3: 500 rows must repeat
        write(DataRequest(task("s3"), Lengths.read("3"), 500, split=split), out=tmp_path / f"{split}.parquet")
    result = audit(tmp_path, "s3")
    assert result.clean
    within = result.facts["duplicates"]["within"]["train"]
    assert within["rows"] >= 500 - 216
    assert within["by_chance"] == pytest.approx(within["rows"], abs=30)


@pytest.mark.parametrize("form", ["rows.jsonl", "rows.parquet", "folder"])
@pytest.mark.parametrize("convention", ["mathematical", "published"])
@pytest.mark.parametrize("name", ["a5", "q16", "a4xz5", "s5_composition[over=generators]"])
def test_what_statetrack_writes_is_clean(tmp_path: Path, name: str, convention: str, form: str) -> None:
    place = {"hf" if form == "folder" else "out": tmp_path / form}
    write(DataRequest(task(name), Lengths.read("10..60"), 200, seed=1, split="test", convention=convention), **place)
    result = audit(tmp_path / form)
    assert result.findings == []
    beware = [f"labels follow p_1 ∘ ... ∘ p_n and the benchmark's prompt asks for p_n ∘ ... ∘ p_1: by the prompt "
              f"{result.facts['labels']['published']} of 200 labels are wrong"]  # fmt: skip
    assert result.warnings == result.facts["warnings"] == (beware if convention == "published" else [])
    assert result.facts["rows"] == {"test": 200}
    assert result.facts["labels"]["follows"] == convention
    assert result.facts["group"]["claimed"] == task(name).label.removesuffix("_composition")
    assert list(result.facts["files"].values()) == [True]


def test_a_file_that_was_changed_after_it_was_written(tmp_path: Path) -> None:
    write(DataRequest(task("s3"), Lengths.read("50"), 20), out=tmp_path / "s3.jsonl")
    (tmp_path / "s3.jsonl").write_text("".join((tmp_path / "s3.jsonl").read_text().splitlines(keepends=True)[:-1]))
    assert [finding for finding in audit(tmp_path / "s3.jsonl").findings if "sha256 differs" in finding]


@pytest.mark.needs("datasets")
def test_a_dataset_dict_and_sharded_parquet_are_read(tmp_path: Path) -> None:
    import datasets

    publish(tmp_path / "s4", S4, "symmetric")
    wanted = audit(tmp_path / "s4").facts
    files = {split: str(tmp_path / "s4" / f"{split}.jsonl") for split in ("train", "test")}
    opened = datasets.load_dataset("json", data_files=files, cache_dir=str(tmp_path / "cache"))
    opened.save_to_disk(str(tmp_path / "dict"))
    sharded = tmp_path / "hub" / "data"
    sharded.mkdir(parents=True)
    for shard in range(3):
        part = opened["train"].shard(3, shard, contiguous=True)
        part.to_parquet(str(sharded / f"train-0000{shard}-of-00003.parquet"))
    opened["test"].to_parquet(str(sharded / "test-00000-of-00001.parquet"))
    for folder in ("dict", "hub"):
        (tmp_path / folder / "metadata.json").write_bytes((tmp_path / "s4" / "metadata.json").read_bytes())
        facts = audit(tmp_path / folder, "s4").facts
        assert dict(sorted(facts["rows"].items())) == {"test": 30, "train": 60}
        assert facts["labels"] == wanted["labels"]
        assert facts["lengths"] == wanted["lengths"]


def test_without_a_map_our_own_ids_are_taken(tmp_path: Path) -> None:
    write(DataRequest(task("s4"), Lengths.read("30"), 50), out=tmp_path / "rows.jsonl")
    (tmp_path / "rows.jsonl.meta.json").unlink()
    with pytest.raises(BadInput, match="neither a permutation map nor a group's name; with --group NAME"):
        audit(tmp_path / "rows.jsonl")
    (tmp_path / "rows.jsonl").rename(tmp_path / "s4_rows.jsonl")
    result = audit(tmp_path / "s4_rows.jsonl")
    assert result.clean
    assert result.facts["group"] == {
        "claimed": "s4", "claimed_in": "the name s4_rows.jsonl", "map": None, "map_entries": 24
    }  # fmt: skip
    assert not audit(tmp_path / "s4_rows.jsonl", "d4").clean  # IDs up to 23 in a group of 8


def test_isomorphic_groups_on_other_points_are_the_same_group(tmp_path: Path) -> None:
    publish(tmp_path / "s3", closure([(1, 2, 0, 4, 5, 3), (3, 5, 4, 0, 2, 1)]), "symmetric", published=False)
    result = audit(tmp_path / "s3")
    assert result.facts["group"]["same_as"] == ["s3", "d3", "psl2_2"]
    assert result.facts["group"]["degree"] == 6
    assert result.clean


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"input_sequence": "1 2"', r"row 3: broken JSON \(Expecting ',' delimiter at character 25\)"),
        ("[1, 2]", "row 3: a row should be a JSON object"),
        ('{"input_sequence": "1 2"}', "row 3: no column 'target'; there are input_sequence"),
        ('{"target": "1"}', "row 3: no column 'input_sequence'"),
        ('{"input_sequence": "1 b", "target": "1"}', "row 3: input_sequence: 'b' is not the number"),
        ('{"input_sequence": "", "target": "1"}', "row 3: input_sequence: there is no number in it"),
        ('{"input_sequence": "1 2", "target": "1 2"}', "row 3: target should be the number of one element"),
        ('{"input_sequence": "1 2", "target": "-1"}', "row 3: target: '-1' is not the number"),
        ('{"input_sequence": [1, 2], "target": "1"}', r"row 3: input_sequence should be text, not \[1, 2\]"),
        ('{"input_sequence": "1 2", "target": null}', "row 3: target should be text, not null"),
        ("", "row 3: broken JSON"),
    ],
)
def test_unreadable_rows_are_named(tmp_path: Path, line: str, problem: str) -> None:
    publish(tmp_path / "s3", S3, "symmetric")
    file = tmp_path / "s3" / "train.jsonl"
    rows = file.read_text().splitlines()
    file.write_text("\n".join([*rows[:2], line, *rows[2:]]) + "\n")
    with pytest.raises(BadInput, match=problem):
        audit(tmp_path / "s3")


def test_unreadable_parquet_and_folders(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{"input_sequence": "1 2", "target": "3"}] * 3000 + [{"input_sequence": "1 z", "target": "3"}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "s3.parquet")
    with pytest.raises(BadInput, match="row 3001: input_sequence: 'z'"):
        audit(tmp_path / "s3.parquet")
    pq.write_table(pa.table({"inputs": [1]}), tmp_path / "s4.parquet")
    with pytest.raises(BadInput, match="no column 'input_sequence'; there are inputs"):
        audit(tmp_path / "s4.parquet")
    (tmp_path / "a5.parquet").write_bytes(b"PAR1 and then nothing of the kind")
    with pytest.raises(BadInput, match=r"a5\.parquet"):
        audit(tmp_path / "a5.parquet")
    (tmp_path / "s5.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match=r"s5\.jsonl cannot be read"):
        audit(tmp_path / "s5.jsonl")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="holds no"):
        audit(tmp_path / "empty")
    with pytest.raises(BadInput, match="does not exist"):
        audit(tmp_path / "nowhere")
    (tmp_path / "c3.jsonl").write_text("")
    with pytest.raises(BadInput, match="holds no rows"):
        audit(tmp_path / "c3.jsonl")


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ({"0": [0, 1, 2], "1": [0, 0, 1]}, "entry 1 is not a permutation of 0..2"),
        ({"0": [0, 1, 2], "1": [0, 1]}, "entry 1 is not a permutation of 0..2"),
        ({"0": [0, 1, 2], "1": ["a", "b", "c"]}, "entry 1 is not a permutation of 0..2"),
        ({"0": "012"}, "entry 0 should be a list"),
        ({"zero": [0, 1]}, "'zero' should be a whole number"),
        ({"1": [0, 1], "01": [1, 0]}, "gives an ID twice"),
        ([], "should hold an ID with its images"),
    ],
)
def test_unreadable_maps(tmp_path: Path, entries: Any, problem: str) -> None:
    publish(tmp_path / "s3", S3, "symmetric")
    (tmp_path / "s3" / "metadata.json").write_text(json.dumps({"permutation_map": entries}))
    with pytest.raises(BadInput, match=problem):
        audit(tmp_path / "s3")


def test_a_map_that_generates_a_huge_group_is_still_counted(tmp_path: Path) -> None:
    points = list(range(20))
    elements = [tuple(points), tuple([*points[1:], 0]), tuple([1, 0, *points[2:]])]
    folder = tmp_path / "c20"
    folder.mkdir()
    (folder / "metadata.json").write_text(json.dumps({"permutation_map": dict(enumerate(map(list, elements)))}))
    row = {"input_sequence": "1 0", "target": "1", "sequence_length": 2, "group_degree": 20, "group_order": 3}
    (folder / "train.jsonl").write_text(json.dumps({**row, "group_type": "cyclic"}) + "\n")
    result = audit(folder)
    assert result.facts["labels"]["both"] == 1
    assert result.facts["group"]["order"] == 2432902008176640000
    assert any("is not a group" in finding for finding in result.findings)
    assert any("is not c20" in finding for finding in result.findings)
