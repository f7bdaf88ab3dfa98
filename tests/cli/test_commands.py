"""What the verbs print and write."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import statetrack
from statetrack.cli import main
from statetrack.tasks.catalogue import names, select


def out(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert out(["--version"], capsys) == f"statetrack {statetrack.__version__}\n"
    for verb in ("", "list", "show", "floors", "predict", "reflections", "documents", "data", "audit"):
        text = out([*verb.split(), "--help"], capsys)
        assert "Example: statetrack " in text
    assert "Usage: statetrack" in out([], capsys)


def test_list_tasks_names_every_task(capsys: pytest.CaptureFixture[str]) -> None:
    entries = json.loads(out(["list", "tasks", "--json"], capsys))
    assert [entry["task"] for entry in entries] == list(names())
    lines = out(["list"], capsys).splitlines()
    assert len(lines) == len(entries) + 1
    assert lines[1].startswith("rtc ")
    assert all(entry["what"] for entry in entries)
    assert entries[1] | {"what": ""} == {"task": "txc", "title": "parity", "inputs": 2, "classes": 2, "what": ""}
    s9 = next(entry for entry in entries if entry["task"] == "s9_composition")
    assert (s9["inputs"], s9["classes"]) == (362880, 362880)


def test_show_accepts_a_title_and_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    shown = out(["show", "parity", "--length", "4"], capsys)
    assert shown == out(["show", "txc", "--length", "4"], capsys)
    assert shown.startswith("txc: parity\n\n")
    assert json.loads(out(["show", "s5", "--length", "4", "--json"], capsys))["title"] == "composition in S5"


def test_list_groups_and_selectors(capsys: pytest.CaptureFixture[str]) -> None:
    groups = {entry["group"]: entry for entry in json.loads(out(["list", "groups", "--json"], capsys))}
    assert len(groups) == 96
    assert groups["psl3_4"] == {
        "group": "psl3_4", "usual_name": "PSL(3,4)", "family": "psl", "order": 20160, "degree": 21, "solvable": False
    }  # fmt: skip
    for selector, count in (("permutation_groups", 94), ("tc0_groups", 72), ("nc1_groups", 22)):
        listed = [entry["task"] for entry in json.loads(out(["list", selector, "--json"], capsys))]
        assert listed == select(selector)
        assert len(listed) == count


def test_list_models(capsys: pytest.CaptureFixture[str]) -> None:
    listed = [entry["model"] for entry in json.loads(out(["list", "models", "--json"], capsys))]
    assert {"e88-1l", "mamba2-32l", "linear-rnn", "mlp"} <= set(listed)


def test_show_names_the_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    shown = out(["show", "regex[pattern=(aa)*]", "--length", "4"], capsys)
    assert shown.startswith('regex[pattern="(aa)*"]: ')  # the name that results have
    assert "\ninputs    2: a, b\nclasses   2: no, yes\n" in shown
    alone = out(["show", "regex[pattern=(aa)*,alphabet=a]", "--length", "4"], capsys)
    assert "\ninputs    1: a\n" in alone
    assert "\ninputs   2\n" in out(["show", "txc", "--length", "4"], capsys)
    assert main(["show", "regex[pattern=(cd)*]"]) == 2
    assert "'c' is not in the alphabet 'ab'; alphabet=... names all inputs" in capsys.readouterr().err


def test_show_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    shown = json.loads(out(["show", "s4", "--json"], capsys))
    group = shown["group"]
    assert (shown["task"], shown["inputs"], shown["classes"], shown["passport"]["states"]) == (
        "s4_composition",
        24,
        24,
        24,
    )
    assert group["derived_series"] == [24, 12, 4, 1]
    assert (group["order"], group["degree"], group["conjugacy_classes"], group["centre"]) == (24, 4, 5, 1)
    assert (group["solvable"], group["abelianisation"]) == (True, [2])
    text = out(["show", "S4"], capsys)
    for line in ("derived series     24, 12, 4, 1", "abelianisation     Z2", "generators         (0 1), (0 1 2 3)"):
        assert line in text


def test_the_example_that_is_shown_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    from statetrack import task

    for name in ("s4", "fsm[k=2]", "track_the_stat.median", "cups", "stream.echo[k=2]", "rtc[ask=end]"):
        shown = json.loads(out(["show", name, "--json"], capsys))
        rows, chosen = shown["example"], task(name)
        inputs = [row["input"] for row in rows]
        batch = chosen.batch([inputs])
        assert [row["class"] is not None for row in rows] == batch.mask[0].astype(bool).tolist()
        assert [row["class"] or 0 for row in rows] == (batch.targets * batch.mask)[0].tolist()
        assert all(row["input_words"] and (row["answer"] is None) == (row["class"] is None) for row in rows)
    assert "swap cups" in out(["show", "cups"], capsys)


def test_show_gives_the_states_of_the_smallest_machine(capsys: pytest.CaptureFixture[str]) -> None:
    def states(name: str) -> int | None:
        return json.loads(out(["show", name, "--json"], capsys))["passport"]["states"]

    assert (states("fsm[k=5]"), states("txc"), states("track_the_stat.mode")) == (6, 2, None)


def test_show_sets_the_floors_of_a_length_beside_the_task(capsys: pytest.CaptureFixture[str]) -> None:
    shown = json.loads(out(["show", "fsm", "--length", "20", "--json"], capsys))["floors"]
    assert shown["length"] == 20
    constant = next(floor for floor in shown["floors"] if floor["name"] == "constant")
    assert constant["average"] == pytest.approx(1 - 5 / 20, abs=1e-3)


def test_every_catalogued_task_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    for name in (*(name for name in names() if "_composition" not in name), "s3", "q8", "a4xz5", "m11"):
        assert main(["show", name]) == 0
        assert "An example, worked out:" in capsys.readouterr().out


def test_an_empty_folder_has_no_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert out(["results", str(tmp_path)], capsys) == f"{tmp_path} holds no results yet\n"


def test_data_and_audit_go_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rows.parquet"
    data = ["data", "s4", "--length", "5..60", "--count", "300", "--seed", "7", "--split", "test", "--out", str(file)]
    assert out(data, capsys) == f"{file}: 300 rows of s4_composition\n"
    text = out(["audit", str(file)], capsys)
    assert "300 rows of test" in text
    assert text.endswith("clean: nothing is wrong\n")
    facts = json.loads(out(["audit", str(file), "--json"], capsys))
    assert facts["labels"]["follows"] == "mathematical"
    buckets = re.findall(r"(\d+): \d+\.\d\d \(\d+\.\d\d\)", text)
    assert buckets == [b for b, near in facts["lengths"]["nearest"].items() if near["share"]]
    assert len(buckets) < len(facts["lengths"]["nearest"])
    assert facts["findings"] == []
    text = out(["audit", str(file), "--group", "d12"], capsys, code=1)
    assert "2 findings" in text  # the group and its family in group_type
    assert "the group is not d12 (D12, order 24): its permutations generate a group of order 24, the same as s4" in text


def test_track_the_stat_is_written_as_the_original_unless_asked_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rows.jsonl"
    out(["data", "track_the_stat.median", "--count", "2", "--out", str(file)], capsys)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["seed"] for row in rows] == [0, 1]
    assert rows[0]["numbers"][:4] == [85, 63, 51, 26]
    assert rows[0]["answers"][:4] == [85, 74, 63, 57]
    assert len(rows[1]["answers"]) == 300
    out(["data", "track_the_stat", "--split", "train", "--length", "9", "--count", "2", "--out", str(file)], capsys)
    assert list(json.loads(file.read_text().splitlines()[1])) == ["seed", "row", "numbers", "answers"]


@pytest.mark.needs("datasets")
def test_hf_folder_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import datasets

    folder = tmp_path / "rows"
    out(["data", "a5", "--length", "9", "--count", "50", "--hf", str(folder), "--convention", "published"], capsys)
    assert len(datasets.load_from_disk(str(folder))) == 50
    assert json.loads(out(["audit", str(folder), "--json"], capsys))["labels"]["follows"] == "published"
    text = out(["audit", str(folder)], capsys)  # clean, since it says so itself: and yet the prompt says otherwise
    assert "clean: nothing is wrong\nwarning: labels follow p_1 ∘ ... ∘ p_n and the benchmark's prompt asks for" in text
    assert main(["data", "a5", "--length", "9", "--count", "60", "--hf", str(folder)]) == 2
    assert f"{folder} holds a data set already; --overwrite" in capsys.readouterr().err
    out(["data", "a5", "--length", "9", "--count", "60", "--hf", str(folder), "--overwrite"], capsys)
    assert len(datasets.load_from_disk(str(folder))) == 60


def python(arguments: list[str], **more: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, **more)  # type: ignore[call-overload]


def test_python_m_statetrack_is_the_command(tmp_path: Path) -> None:
    done = python(["-m", "statetrack", "--version"], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"statetrack {statetrack.__version__}\n")


def test_help_needs_no_heavy_library() -> None:
    code = (
        "import sys; from statetrack.cli import main; main(['--help']); "
        "print([m for m in ('torch', 'pyarrow', 'numba', 'datasets') if m in sys.modules])"
    )
    done = python(["-c", code])
    assert done.stdout.splitlines()[-1] == "[]"
