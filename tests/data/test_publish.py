"""Data sets pushed to a stand-in for the hub: what lies there, what the card says, and that it reads back."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from statetrack import BadInput, task
from statetrack.cli import main
from statetrack.data.audit import audit
from statetrack.data.lengths import Lengths
from statetrack.data.publish import publish
from statetrack.data.write import DataRequest, write
from tests.data.hub_stand_in import Answer, Hub, standing_in

pytestmark = pytest.mark.needs("huggingface_hub")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with standing_in(tmp_path / "cache", monkeypatch) as server:
        yield server


def request(name: str = "s4", split: str = "train", **more: Any) -> DataRequest:
    return DataRequest(task(name), Lengths.read("5..20"), 50, seed=3, split=split, **more)


def card(hub: Hub, repo: str = "me/rows") -> tuple[dict[str, Any], str]:
    """The header of the card, and the page."""
    _, header, page = hub.repos[repo]["README.md"].decode().split("---\n", 2)
    return yaml.safe_load(header), page


def test_what_is_pushed_is_what_would_be_written(hub: Hub, tmp_path: Path) -> None:
    assert publish(request(), "me/rows") == f"{hub.url}/datasets/me/rows"
    write(request(), out=tmp_path / "train-00000-of-00001.parquet")
    files = hub.repos["me/rows"]
    assert set(files) == {
        "README.md",
        "data/train-00000-of-00001.parquet",
        "data/train-00000-of-00001.parquet.meta.json",
    }
    for name in ("train-00000-of-00001.parquet", "train-00000-of-00001.parquet.meta.json"):
        assert files[f"data/{name}"] == (tmp_path / name).read_bytes()
    assert hub.commits == [("me/rows", "s4_composition, train: 50 rows")]
    assert hub.private["me/rows"] is False


def test_splits_come_one_by_one_and_read_back_clean(hub: Hub) -> None:
    for split in ("train", "test"):
        publish(request(split=split, prefixes=True), "hub:me/rows")
    result = audit(Path("hub:me/rows"))
    assert result.clean
    assert result.facts["rows"] == {"train": 50, "test": 50}
    assert list(result.facts["files"].values()) == [True, True]
    header, page = card(hub)
    assert header["configs"][0]["data_files"] == [
        {"split": split, "path": f"data/{split}-00000-of-00001.parquet"} for split in ("train", "test")
    ]
    assert "| `targets` | the answer after every input |" in page


@pytest.mark.parametrize("more", [["--convention", "published"], ["--prefixes"]])
def test_the_command_on_the_card_makes_the_same_bytes(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["data", "s4[over=generators]", "--length", "4,9", "--count", "20", "--hub", "me/rows", *more]) == 0
    header, page = card(hub)
    (line,) = [line for line in page.splitlines() if line.startswith("statetrack data ")]
    assert main(shlex.split(line)[1:]) == 0
    assert (tmp_path / "train.parquet").read_bytes() == hub.repos["me/rows"]["data/train-00000-of-00001.parquet"]
    assert header["license"] == "apache-2.0"
    assert "apache-2.0. The rows follow from the task, the seed and the lengths alone" in page
    published = "published" in more
    assert ("the labels are p_1 ∘ ... ∘ p_n (published" in page) is published
    assert ("The prompt of the permutation benchmark asks for p_n ∘ ... ∘ p_1." in page) is published
    assert ("the labels are p_n ∘ ... ∘ p_1 (mathematical" in page) is not published


def test_a_card_of_another_task_has_its_words_and_columns(hub: Hub) -> None:
    publish(request("stream.max"), "me/rows", private=True, licence="cc0-1.0")
    header, page = card(hub)
    assert header["license"] == "cc0-1.0"
    assert hub.private["me/rows"] is True
    assert task("stream.max").instruction in page
    assert all(f"| `{name}` |" in page for name in ("seed", "row", "numbers", "answers"))
    assert "Convention" not in page


def test_what_is_there_is_replaced_where_that_is_asked_for(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    publish(request(), "me/rows")
    before = dict(hub.repos["me/rows"])
    words = ["data", "s4", "--length", "7", "--count", "9", "--hub", "me/rows"]
    assert main(words) == 2
    assert "me/rows has a split train already; --overwrite" in capsys.readouterr().err
    assert hub.repos["me/rows"] == before
    assert main([*words, "--overwrite"]) == 0
    assert f"{hub.url}/datasets/me/rows: 9 rows of s4_composition, split train" in capsys.readouterr().out
    about = json.loads(hub.repos["me/rows"]["data/train-00000-of-00001.parquet.meta.json"])
    assert (about["count"], about["length"]) == (9, "7")
    assert "| train | 9 | 7 | 0 |" in card(hub)[1]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"name": "s3"}, "me/rows holds rows of s4_composition; a data set has those of one task"),
        ({"convention": "published"}, "the split train of me/rows has other labels"),
        ({"prefixes": True}, "the split train of me/rows has other labels"),
    ],
)
def test_splits_that_do_not_go_together(hub: Hub, more: dict[str, Any], said: str) -> None:
    publish(request(), "me/rows")
    before = dict(hub.repos["me/rows"])
    with pytest.raises(BadInput, match=said):
        publish(request(split="test", **more), "me/rows")
    assert hub.repos["me/rows"] == before


def test_what_the_hub_does_not_take(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    for repo, said in (("rows", "should name a data set of the hub"), ("m e/rows", "is no name of the hub's"),
                       ("me/rows/deep", "without a folder or a revision")):  # fmt: skip
        with pytest.raises(BadInput, match=said):
            publish(request(), repo)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(BadInput, match=r"me/rows cannot be pushed: the hub is not reached \(ConnectError"):
        publish(request(), "me/rows")
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
    monkeypatch.setenv("HF_TOKEN", "hf_of_nobody")
    with pytest.raises(BadInput, match=r"the hub does not let you push there \(401\); `hf auth login`") as refused:
        publish(request(), "me/rows")
    assert "hf_of_nobody" not in str(refused.value)
    assert hub.repos == {}


def test_one_place_at_a_time(hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["data", "s4", "--length", "7", "--hub", "me/rows", "--out", str(tmp_path / "rows.jsonl")]
    assert main(words) == 2
    assert "give one of --out, --hf and --hub" in capsys.readouterr().err
    assert hub.repos == {}


def test_without_the_library_the_pip_line_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(BadInput, match=r"pushing to me/rows needs huggingface_hub: pip install .*\[hub\]'"):
        publish(request(), "me/rows")


@pytest.mark.needs("datasets")
def test_the_files_of_the_card_are_what_load_dataset_opens(hub: Hub, tmp_path: Path) -> None:
    import datasets

    for split in ("train", "test"):
        publish(request(split=split), "me/rows")
    for path, data in hub.repos["me/rows"].items():
        (tmp_path / "copy" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "copy" / path).write_bytes(data)
    opened = datasets.load_dataset(str(tmp_path / "copy"), cache_dir=str(tmp_path / "datasets"))
    assert {split: len(rows) for split, rows in opened.items()} == {"train": 50, "test": 50}


WELL = {"task": "s4_composition", "statetrack": "0.5.0", "split": "test", "seed": 0, "count": 5, "length": "5",
        "convention": "mathematical"}  # fmt: skip


@pytest.mark.parametrize(
    "told",
    [
        [1], "x", None, WELL | {"split": "x\n    path: /etc/passwd\n---\n<script>"}, WELL | {"count": "5"},
        WELL | {"count": [5]}, WELL | {"seed": {}}, WELL | {"length": 5}, WELL | {"statetrack": "1\n# more"},
        {key: value for key, value in WELL.items() if key != "split"},
    ],
)  # fmt: skip
def test_metadata_of_others_never_makes_the_card(hub: Hub, told: Any) -> None:
    """They would have become lines of the card's header, and of the commands on it."""
    files = {"README.md": b"old", "data/test-00000-of-00001.parquet.meta.json": json.dumps(told).encode()}
    hub.repos["me/rows"] = dict(files)
    with pytest.raises(BadInput, match="me/rows"):
        publish(request(), "me/rows")
    assert hub.repos["me/rows"] == files


@pytest.mark.parametrize("told", [b"<", b"[" * 100_000, b"\xff\xfe"])
def test_metadata_that_are_none_are_one_line(hub: Hub, told: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    hub.repos["me/rows"] = {"data/test-00000-of-00001.parquet.meta.json": told}
    assert main(["data", "s4", "--length", "5", "--count", "3", "--hub", "me/rows"]) == 2
    assert "me/rows" in capsys.readouterr().err


@pytest.mark.parametrize("licence", ["", "mit\nconfigs: x", "a b"])
def test_a_licence_is_a_name(hub: Hub, licence: str) -> None:
    with pytest.raises(BadInput, match="should be a name such as apache"):
        publish(request(), "me/rows", licence=licence)
    assert hub.repos == {}


def test_a_hub_that_answers_nonsense_when_pushed_to_is_one_line(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Answer, "create", lambda self, asked: self.say(409, {"error": "there"}))
    assert main(["data", "s4", "--length", "5", "--count", "3", "--hub", "me/new"]) == 2
    assert "what the hub answers cannot be read" in capsys.readouterr().err
