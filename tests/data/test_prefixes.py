"""Every prefix's answer in the data of groups, against plain composition of tuples; and what the audit says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from statetrack import BadInput, group, task
from statetrack.data.audit import audit
from statetrack.data.lengths import Lengths
from statetrack.data.write import DataRequest, write


def request(name: str, lengths: str = "1..30", count: int = 80, **more: Any) -> DataRequest:
    return DataRequest(task(name), Lengths.read(lengths), count=count, **({"prefixes": True} | more))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def product(permutations: list[tuple[int, ...]], convention: str) -> tuple[int, ...]:
    """p_n ∘ ... ∘ p_1, or p_1 ∘ ... ∘ p_n."""
    points = tuple(range(len(permutations[0])))
    for each in permutations if convention == "mathematical" else reversed(permutations):
        points = tuple(each[point] for point in points)
    return points


@pytest.mark.parametrize("convention", ["mathematical", "published"])
@pytest.mark.parametrize("name", ["s4", "a5", "q8", "psl2_7", "s3[over=generators]"])
def test_every_prefix_has_its_answer(tmp_path: Path, name: str, convention: str) -> None:
    out = tmp_path / "rows.jsonl"
    write(request(name, convention=convention), out=out)
    elements = [tuple(images) for images in group(name.partition("[")[0]).elements.tolist()]
    for row in lines(out):
        ids = [int(word) for word in row["input_sequence"].split()]
        chosen = [elements[element] for element in ids]
        expected = [elements.index(product(chosen[: t + 1], convention)) for t in range(len(ids))]
        assert row["targets"] == expected
        assert row["target"] == str(expected[-1])


def test_without_it_the_columns_and_the_bytes_are_the_published_ones(tmp_path: Path) -> None:
    write(request("s4", prefixes=False), out=tmp_path / "plain.jsonl")
    write(request("s4"), out=tmp_path / "more.jsonl")
    plain, more = lines(tmp_path / "plain.jsonl"), lines(tmp_path / "more.jsonl")
    published = ["input_sequence", "target", "sequence_length", "group_degree", "group_order", "group_type"]
    assert [list(row) for row in plain] == [published] * 80
    assert [{name: row[name] for name in published} for row in more] == plain
    assert "prefixes" not in json.loads((tmp_path / "plain.jsonl.meta.json").read_text())
    assert json.loads((tmp_path / "more.jsonl.meta.json").read_text())["prefixes"] is True


@pytest.mark.parametrize("convention", ["mathematical", "published"])
def test_other_formats_hold_the_same_and_all_are_clean(tmp_path: Path, convention: str) -> None:
    wanted = request("a5", "10..60", 200, convention=convention)
    write(wanted, out=tmp_path / "a5.jsonl")
    write(wanted, out=tmp_path / "a5.parquet")
    write(wanted, hf=tmp_path / "a5")
    assert pyarrow.parquet.read_table(tmp_path / "a5.parquet").to_pylist() == lines(tmp_path / "a5.jsonl")
    for place in ("a5.jsonl", "a5.parquet", "a5"):
        result = audit(tmp_path / place)
        assert result.clean
        assert result.facts["labels"]["follows"] == convention
        assert result.facts["labels"]["both"] == 0  # all answers of a row in both orders: not by chance


def change(file: Path, row: int, targets: Any) -> None:
    rows = lines(file)
    rows[row]["targets"] = targets(rows[row]["targets"]) if callable(targets) else targets
    file.write_text("".join(json.dumps(each) + "\n" for each in rows))


def test_a_wrong_answer_on_the_way_is_found(tmp_path: Path) -> None:
    file = tmp_path / "s4.jsonl"
    write(request("s4", "9"), out=file)
    change(file, 6, lambda answers: [*answers[:3], (answers[3] + 1) % 24, *answers[4:]])
    change(file, 8, lambda answers: [*answers[:3], 24, *answers[4:]])
    findings = "\n".join(audit(file).findings)
    assert "1 row of train has a label that is right in neither convention; the first is row 7" in findings
    assert "1 row of train has an ID outside the map; the first is row 9 (ID 24)" in findings


@pytest.mark.parametrize(
    "wrong", [None, "1 2 3", [1, 2], [1, 2, 3.5], [1, 2, -1], [1, 2, True], [0, 1, 2, 3], [1, 2, 10**30]]
)
def test_what_is_no_list_of_answers_is_named(tmp_path: Path, wrong: Any) -> None:
    file = tmp_path / "s4.jsonl"
    write(request("s4", "3"), out=file)
    change(file, 4, wrong)
    with pytest.raises(BadInput, match=r"row 5: targets should be a list of 3 numbers of elements"):
        audit(file)


@pytest.mark.parametrize(
    ("name", "said"),
    [("txc", "prefixes are for groups; the rows of txc hold all"), ("s3[ask=end]", "asks at the end alone")],
)
def test_where_prefixes_make_no_sense(name: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        request(name)
