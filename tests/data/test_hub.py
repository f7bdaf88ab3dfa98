"""Data sets by their name on the hub, fetched from a stand-in on loopback, audited as any folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from statetrack import BadInput, task
from statetrack.cli import main
from statetrack.data.audit import audit
from statetrack.data.hub import HubName, located
from statetrack.data.lengths import Lengths
from statetrack.data.write import DataRequest, write
from tests.data.hub_stand_in import TOKEN, Answer, Hub, standing_in
from tests.data.published_sets import publish
from tests.data.test_audit import S3, S4

pytestmark = pytest.mark.needs("huggingface_hub")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with standing_in(tmp_path / "cache", monkeypatch) as server:
        yield server


@pytest.fixture
def collection(hub: Hub, tmp_path: Path) -> Hub:
    """Two groups in one data set, beside what is not fetched."""
    for name, elements in (("s4", S4), ("s3", S3)):
        publish(tmp_path / name, elements, "symmetric")
        hub.put("somebody/groups", tmp_path / name, f"data/{name}_data/")
    hub.repos["somebody/groups"] |= {"README.md": b"# Groups", "loading.py": b"raise SystemExit"}
    return hub


def test_a_folder_of_a_data_set_is_audited_by_name(collection: Hub, tmp_path: Path) -> None:
    found, local = audit(Path("hub:somebody/groups/data/s4_data")), audit(tmp_path / "s4")
    assert found.facts["path"] == "hub:somebody/groups/data/s4_data"
    assert {**found.facts, "path": ""}["labels"] == local.facts["labels"]
    assert found.facts["group"]["claimed"] == "s4"
    assert found.facts["group"]["claimed_in"] == "the name s4_data"
    assert found.findings == local.findings
    assert found.facts["rows"] == {"train": 60, "test": 30}
    assert set(collection.fetched) == {
        f"data/s4_data/{name}" for name in ("train.jsonl", "test.jsonl", "metadata.json")
    }


def test_a_whole_data_set_is_named_by_its_own_name(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    for split in ("train", "test"):
        write(
            DataRequest(task("a5"), Lengths.read("9..30"), 40, split=split), out=tmp_path / "rows" / f"{split}.parquet"
        )
    hub.put("somebody/a5", tmp_path / "rows", "data/")
    result = audit(Path("hub:somebody/a5"))
    assert result.clean
    assert result.facts["rows"] == {"train": 40, "test": 40}
    assert list(result.facts["files"].values()) == [True, True]
    for name in list(hub.repos["somebody/a5"]):
        if name.endswith("meta.json"):
            del hub.repos["somebody/a5"][name]
    assert audit(Path("hub:somebody/a5@main")).facts["group"]["claimed_in"] == "the name a5@main"


def test_a_single_file_and_its_metadata(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    for name in ("s3", "a4"):
        write(DataRequest(task(name), Lengths.read("9"), 40), out=tmp_path / "rows" / f"{name}.jsonl")
    hub.put("somebody/rows", tmp_path / "rows")
    assert audit(Path("hub:somebody/rows/a4.jsonl")).clean
    assert set(hub.fetched) == {"a4.jsonl", "a4.jsonl.meta.json"}


def test_what_was_fetched_is_enough_when_the_hub_is_not_reached(collection: Hub) -> None:
    before = audit(Path("hub:somebody/groups/data/s4_data")).facts
    collection.refuses = 503
    assert audit(Path("hub:somebody/groups/data/s4_data")).facts == before
    with pytest.raises(BadInput, match=r"s3_data cannot be read: the hub is not reached \(.*503"):
        audit(Path("hub:somebody/groups/data/s3_data"))


def test_of_a_collection_only_what_has_the_name_is_fetched(collection: Hub) -> None:
    place = located("hub:somebody/groups", stems=["s3", "s3_data"])
    assert sorted(path.name for path in place.rglob("*") if path.is_file()) == [
        "metadata.json",
        "test.jsonl",
        "train.jsonl",
    ]
    assert all("s3_data" in path for path in collection.fetched)
    located("hub:somebody/groups", stems=["a5"])
    assert any("s4_data" in path for path in collection.fetched)  # none has that name: all of it


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hub:somebody/nothing", "the hub has no data set of that name, or does not show it to you"),
        ("hub:somebody/groups@gone", "somebody/groups has no revision gone"),
        ("hub:somebody/groups/data/a5_data", "somebody/groups has no data/a5_data with data in it"),
        ("hub:groups", "should name a data set of the hub, as in hub:OWNER/NAME"),
        ("hub:some body/groups", "is no name of the hub's"),
        ("hub:", "should name a data set of the hub"),
    ],
)
def test_names_that_lead_nowhere(collection: Hub, name: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", name]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("statetrack: ")
    assert said in error


def test_names() -> None:
    assert HubName.read("hub:o/n") == HubName("o/n")
    assert HubName.read("hub:o/n/") == HubName("o/n")
    assert HubName.read("hub:o/n/a/b") == HubName("o/n", "a/b")
    assert HubName.read("hub:o/n@v1/2") == HubName("o/n", "", "v1/2")


def test_without_the_library_the_pip_line_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(BadInput, match=r"reading hub:o/n needs huggingface_hub: pip install .*\[hub\]'"):
        audit(Path("hub:o/n"))


def test_the_command_line_asks_the_hub_that_the_environment_names(collection: Hub, tmp_path: Path) -> None:
    environment = os.environ | {"HF_ENDPOINT": collection.url, "HF_HUB_OFFLINE": "0", "HF_TOKEN": TOKEN,
                                "HF_HOME": str(tmp_path / "home")}  # fmt: skip
    words = [sys.executable, "-m", "statetrack", "audit", "hub:somebody/groups/data/s3_data", "--json"]
    told = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert json.loads(told.stdout)["labels"]["follows"] == "published"


KEY = "hf_ABCDEFGHIJKLMNOPQRSTUV0123456789"


def echo(self: Answer, status: int) -> None:
    sent = self.headers["Authorization"]
    self.say(status, {"error": f"you sent {sent}"}, {"X-Error-Message": f"bad {sent}", "X-Request-Id": sent})


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
def test_a_hub_that_repeats_the_token_is_not_repeated(
    hub: Hub, status: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_TOKEN", KEY)
    monkeypatch.setattr(Answer, "do_GET", lambda self: echo(self, status))
    monkeypatch.setattr(Answer, "do_HEAD", lambda self: echo(self, status))
    with pytest.raises(BadInput) as refused:
        located("hub:somebody/rows")
    told = "".join(traceback.format_exception(refused.value))
    assert main(["audit", "hub:somebody/rows"]) == 2
    captured = capfd.readouterr()
    for text in (told, captured.out, captured.err):
        assert KEY not in text
        assert KEY[3:] not in text


@pytest.mark.parametrize(
    "told",
    [[1], None, {"id": "a/b", "sha": "0" * 40, "siblings": [{"x": 1}]}, {"id": "a/b", "siblings": []}, b"<html>",
     b"[" * 100_000, {"id": "a/b", "sha": "0" * 40, "siblings": [], "lastModified": 5, "tags": 5}],
)  # fmt: skip
def test_answers_that_are_none_are_one_line(
    hub: Hub, told: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Answer, "do_GET", lambda self: self.say(200, told))
    assert main(["audit", "hub:somebody/rows"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "what the hub answers cannot be read" in line
    assert len(line) < 500


def test_files_that_would_lie_elsewhere_are_refused(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    hub.repos["somebody/rows"] = {"train.jsonl": b"", "/tmp/elsewhere.jsonl": b""}
    assert main(["audit", "hub:somebody/rows"]) == 2
    assert "Invalid filename" in capsys.readouterr().err
