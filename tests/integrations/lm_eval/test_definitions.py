"""The task files, and the order of the rows."""

from __future__ import annotations

from importlib.metadata import PackagePath, distribution
from pathlib import Path

import lm_eval
import pytest
from lm_eval.tasks import TaskManager

from statetrack.cli import main
from statetrack.integrations.lm_eval import definitions
from statetrack.integrations.lm_eval.definitions import LENGTHS, files
from statetrack.integrations.lm_eval.documents import Generated, spread
from statetrack.tasks.groups import catalogue, group
from statetrack.tasks.groups.task import GroupTask


def test_the_harness_knows_every_task_and_selector(task_files: Path) -> None:
    manager = TaskManager(include_path=str(task_files), include_defaults=False)
    both = [f"{name}_composition{kind}" for name in (*catalogue(), "z60", "a4xz5") for kind in ("", "_gen")]
    assert sorted(both) == manager.all_subtasks
    assert manager.all_groups == sorted(
        f"{name}{kind}" for name in ("permutation_groups", "tc0_groups", "nc1_groups") for kind in ("", "_gen")
    )
    assert manager.all_tags == ["matched_order_groups", "matched_order_groups_gen"]


def test_a_selector_reaches_each_of_its_groups_once(task_files: Path) -> None:
    loaded = TaskManager(include_path=str(task_files), include_defaults=False).load(["permutation_groups"])
    assert sorted(loaded["tasks"]) == sorted(f"{name}_composition" for name in catalogue())
    assert loaded["group_map"]["permutation_groups"] == ["tc0_groups", "nc1_groups"]
    for selector, solvable, count in (("tc0_groups", True, 72), ("nc1_groups", False, 22)):
        members = loaded["group_map"][selector]
        assert len(members) == count
        assert all(group(member.removesuffix("_composition")).is_solvable is solvable for member in members)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def test_pip_put_the_files_beside_the_harness_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    """What fails here after a change of the catalogue is mended by `pip install -e '.[lm-eval]'`: the files are made
    then.
    """
    assert main(["lm-eval-path"]) == 0
    printed, said = capsys.readouterr()
    place = Path(printed.strip())
    assert place == Path(lm_eval.__file__).parent / "tasks/state_tracking"
    assert "lm_eval has these tasks already" in said
    assert contents(place) == dict(files())
    assert all(str(path).startswith("lm_eval/tasks/") or ".dist-info/" in str(path) for path in owned())


def owned() -> list[PackagePath]:
    return distribution(definitions.DISTRIBUTION).files or []


def test_without_an_installation_the_files_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(definitions, "DISTRIBUTION", "no-such-distribution")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for _ in range(2):
        assert main(["lm-eval-path"]) == 0
        printed, said = capsys.readouterr()
        place = Path(printed.strip())
        assert place.parent == tmp_path / "cache/statetrack"
        assert not said
        assert contents(place) == dict(files())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    assert main(["lm-eval-path"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_any_first_rows_cover_the_lengths_evenly() -> None:
    order = spread(LENGTHS)
    assert sorted(order) == list(range(5, 501, 5))
    for first in range(1, 101):
        chosen = order[:first]
        for length in LENGTHS:
            share = sum(each <= length for each in chosen)
            assert abs(share - first * length / 500) < 4


def test_rows_are_the_test_split_of_their_length() -> None:
    """A document can be had again by `task.sample`, whatever the limit."""
    task = GroupTask(group="s4")
    documents = Generated(task, per_length=3, seed=5)
    assert len(documents) == 300
    assert [doc["row"] for doc in documents[98:103]] == [98, 99, 100, 101, 102]
    for doc in documents[::37]:
        turn = doc["row"] // 100
        batch = task.sample(doc["sequence_length"], 1, seed=5, split="test", first=turn)
        assert doc["input_sequence"] == " ".join(map(str, batch.inputs[0].tolist()))
        assert doc["target"] == str(batch.targets[0, -1])
    with pytest.raises(IndexError):
        documents[300]
