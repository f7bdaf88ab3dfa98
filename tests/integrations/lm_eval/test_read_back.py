"""What the harness writes with --output_path, read into tables and the report."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker

from statetrack.asking.external import read
from statetrack.cli import main
from statetrack.intervals import wilson
from statetrack.reports import page_of
from tests.integrations.lm_eval.scripted_models import Scripted, sequence, symmetric_by_id

Evaluate = Callable[..., dict[str, Any]]
Write = Callable[..., Path]
SOLVE = symmetric_by_id(3)


def until(length: int) -> LM:
    """Right on rows up to this length."""
    return Scripted(lambda prompt: SOLVE(prompt) if len(sequence(prompt)) <= length else " -")


@pytest.fixture
def write(evaluate: Evaluate, tmp_path: Path) -> Write:
    """The harness's own files of a run: its command line writes them so."""

    def run(model: LM, tasks: list[str], name: str = "net", samples: bool = True, **arguments: Any) -> Path:
        tracker = EvaluationTracker(output_path=str(tmp_path / "results"))
        tracker.general_config_tracker.model_source, tracker.general_config_tracker.model_name = "hf", name
        tracker.general_config_tracker.model_name_sanitized = "net"
        found = evaluate(model, tasks, bootstrap_iters=0, **arguments)
        found["lm_eval_version"], found["date"] = "0.4.13", 1_800_000_000.0  # of `add_env_info`, which takes a second
        told = found.pop("samples")
        tracker.save_results_aggregated(results=found, samples=told)
        for task in tasks if samples else ():
            tracker.save_results_samples(task_name=task, samples=told[task])
        return tmp_path / "results"

    return run


def results_file(folder: Path) -> Path:
    [path] = folder.glob("net/results_*.json")
    return path


def test_accuracies_by_length_with_their_rows_interval_and_chance(write: Write) -> None:
    folder = write(until(250), ["s3_composition"], limit=20)
    [found] = read(folder).scores
    assert (found.task, found.model, found.how, found.rows) == ("s3_composition", "hf/net", "", 20)
    assert found.source.by == "lm-evaluation-harness 0.4.13"
    assert found.chance == 1 / 6
    assert [each.length for each in found.lengths] == sorted(each.length for each in found.lengths)
    assert len(found.lengths) == 20
    assert all(each.accuracy == (each.length <= 250) and each.rows == 1 for each in found.lengths)
    assert found.interval == wilson(found.accuracy * 20, 20)
    assert found.falls_below_half == min(each.length for each in found.lengths if each.length > 250)


def test_rows_of_each_length_are_those_of_the_samples_or_at_least_so_many(write: Write) -> None:
    folder = write(until(500), ["s3_composition"], limit=350, metadata={"per_length": 4})
    [found] = read(folder).scores
    assert sorted({each.rows for each in found.lengths}) == [3, 4]
    assert (sum(each.rows for each in found.lengths), any(each.at_least for each in found.lengths)) == (350, False)
    for path in folder.glob("net/samples_*"):
        path.write_bytes(path.read_bytes()[:5000])  # cut off
    [found] = read(folder).scores
    assert all(each.rows == 3 and each.at_least for each in found.lengths)


def test_generated_replies_options_and_shots_tell_runs_apart(write: Write) -> None:
    folder = write(until(500), ["s3_composition_gen"], limit=4, metadata={"seed": 2, "parser": "lenient"})
    write(until(0), ["s3_composition"], limit=4, num_fewshot=2)
    first, second = read(folder).scores
    assert (first.how, first.violations, first.accuracy) == ("generated, lenient, seed=2", 0, 1)
    assert (second.how, second.violations) == ("shots=2", None)


def changed(path: Path, name: str, **told: Any) -> None:
    """The same run once more, of which this is told otherwise."""
    path.with_name(f"results_{name}.json").write_text(json.dumps(json.loads(path.read_text()) | told, indent=2))


def test_of_runs_that_asked_the_same_the_latest_counts_and_both_commands_say_so(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(until(0), ["s3_composition", "c3_composition"], limit=4, samples=False)
    path = results_file(folder)
    data = json.loads(path.read_text())
    for day, accuracy in ((1.9e9, 0.5), (1.85e9, 0.25)):
        told = {**data["results"]["s3_composition"], "acc,none": accuracy}
        changed(path, str(day), date=day, results={"s3_composition": told})
    found = read(folder)
    assert [(each.task, each.accuracy) for each in found.scores] == [("c3_composition", 0), ("s3_composition", 0.5)]
    said = (
        "of what was asked the same the latest counts, and not net/results_1850000000.0.json: s3_composition (asked "
        f"again in net/results_1900000000.0.json); net/{path.name}: s3_composition (asked again in "
        "net/results_1900000000.0.json)"
    )
    assert found.notices == [said]
    assert f"{said}." in page_of(folder).notices
    capsys.readouterr()
    assert main(["results", str(folder)]) == 0
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("told", "names"),
    [
        ({"chat_template": "{{ m }}", "chat_template_sha": "abcdef0123456789"}, {"", "chat template"}),
        ({"system_instruction": "Be brief."}, {"", "system instruction"}),
        ({"config": {"limit": None}}, {"limit=4", "no limit"}),
        ({"config": {"limit": 4.0, "gen_kwargs": {"temperature": 0.5}}}, {"no gen_kwargs", "temperature=0.5"}),
        ({"versions": {"s3_composition": 3.0}}, {"version 2", "version 3"}),
    ],
)
def test_runs_that_asked_something_else_are_both_there_with_what_differs(
    write: Write, capsys: pytest.CaptureFixture[str], told: dict[str, Any], names: set[str]
) -> None:
    folder = write(until(250), ["s3_composition"], limit=4, samples=False)
    changed(results_file(folder), "again", date=1.9e9, **told)
    found = read(folder)
    assert {each.how for each in found.scores} == names
    assert found.left_out == []
    capsys.readouterr()
    assert main(["results", str(folder)]) == 0
    printed = capsys.readouterr().out
    [table] = [table for table in page_of(folder).tables if table.key == "s3-composition-elsewhere"]
    labels = {row[0] for row in table.rows}
    assert len(labels) == 2
    for name in names:
        assert name in printed
        assert any(name in label for label in labels)


def test_two_templates_and_other_options_are_told_apart(write: Write) -> None:
    folder = write(until(250), ["s3_composition"], limit=4, samples=False, metadata={"lengths": "5,165,325"})
    path = results_file(folder)
    for name in ("one", "two"):
        changed(path, name, chat_template=name, chat_template_sha=8 * name)
    data = json.loads(path.read_text())
    data["configs"]["s3_composition"]["metadata"]["options"] |= {"lengths": [10, 5], "per_length": 9}
    changed(path, "lengths", configs=data["configs"])
    assert {each.how for each in read(folder).scores} == {
        "lengths 5 165 325, per_length=20", "lengths 5 10, per_length=9",
        "chat template, template oneoneon, lengths 5 165 325, per_length=20",
        "chat template, template twotwotw, lengths 5 165 325, per_length=20",
    }  # fmt: skip


def test_prompts_that_differ_where_nothing_else_is_told_to(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(until(250), ["s3_composition"], limit=4)
    path = results_file(folder)
    assert len(read(folder).scores[0].prompts) == 8
    changed(path, "unlogged", task_hashes={}, date=1.9e9)
    assert len(read(folder).scores) == 1
    changed(path, "other", task_hashes={"s3_composition": "a1c3e5f7b2d4c6e8"})
    logged = json.loads(path.read_text())["task_hashes"]["s3_composition"][:8]
    found = read(folder)
    assert {each.how for each in found.scores} == {f"prompts {logged}", "prompts a1c3e5f7", "prompts not kept"}
    capsys.readouterr()
    assert main(["results", str(folder)]) == 0
    assert "  prompts " in capsys.readouterr().out.splitlines()[1]
    [table] = [table for table in page_of(folder).tables if table.key == "s3-composition-elsewhere"]
    assert {row[table.headers.index("prompts")] for row in table.rows} == {logged, "a1c3e5f7", None}


def test_models_of_one_name_that_were_loaded_differently_are_two(write: Write) -> None:
    folder = write(until(0), ["s3_composition"], limit=4)
    path = results_file(folder)
    data = json.loads(path.read_text())
    for revision in ("one", "two"):
        data["config"]["model_args"] = {"pretrained": "net", "revision": revision}
        path.with_name(f"results_{revision}.json").write_text(json.dumps(data, indent=2))
    path.unlink()
    names = {each.model for each in read(folder).scores}
    assert len(names) == 2
    assert all(name.startswith("hf/net (") for name in names)


def test_statetrack_results_prints_lengths_in_order_and_empty_ones_not(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(until(100), ["s3_composition", "c3_composition"], limit=6)
    capsys.readouterr()
    for place in (folder, results_file(folder)):
        assert main(["results", str(place)]) == 0
        printed, said = capsys.readouterr()
        assert said == ""
        head, _, table = printed.partition("\n\n")
        assert "s3_composition  hf/net       6     0.3333    0.0968 to 0.7000  0.167 " in head
        assert [line.split()[0] for line in table.splitlines()] == ["length", "5", "85", "165", "325", "405", "485"]
        assert "-1" not in printed
        of_s3 = [line.split()[3:] for line in table.splitlines()[1:]]
        assert of_s3 == 2 * [["1.0000", "1"]] + 4 * [["0.0000", "1"]]
    assert main(["results", str(folder), "--long", "--csv", "-"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [int(row["tested"]) for row in rows] == 2 * [5, 85, 165, 325, 405, 485]
    assert {row["of"] for row in rows} == {"prompts"}
    assert main(["results", str(folder), "--csv", "-"]) == 0  # no cell has a wide table of its own here
    assert len(list(csv.DictReader(io.StringIO(capsys.readouterr().out)))) == 12
    assert {(row["n"], row["note"]) for row in rows} == {("1", f"net/{results_file(folder).name}")}


def test_the_report_shows_them_beside_n_interval_and_chance(write: Write, tmp_path: Path) -> None:
    folder = write(until(250), ["s3_composition"], limit=40)
    page = page_of(folder)
    said = "On s3_composition, scored elsewhere: hf/net · lm-eval .500 (.352 to .648) of 40 rows; a guess scores .167."
    assert said in page.summary
    tables = {table.key: table for table in page.tables}
    assert tables["s3-composition-elsewhere"].rows[0][-1] == "lm-evaluation-harness 0.4.13"
    lengths = tables["s3-composition-lengths"].rows
    assert [row[1] for row in lengths] == sorted(row[1] for row in lengths)
    assert lengths[0] == ["hf/net · lm-eval", 5, 1, "1", ".207 to 1", ".167"]
    [figure] = [each for each in page.figures if each.key == "s3-composition-asked"]
    assert [row["n"] for row in figure.rows] == [10] * 4
    assert [row["accuracy"] for row in figure.rows] == [1, 1, 0, 0]
    assert {row["floor"] for row in figure.rows} == {1 / 6}
    assert ("read from", f"net/{results_file(folder).name} (lm-evaluation-harness 0.4.13)") in page.provenance


@pytest.mark.parametrize(("asked", "drawn"), [("5,20", [5, 20]), ("5,10,15,20,25,30,35,40,45", [25])])
def test_a_few_lengths_are_drawn_where_they_were_asked_and_many_are_pooled(
    write: Write, asked: str, drawn: list[int]
) -> None:
    count = len(asked.split(","))
    folder = write(until(500), ["s3_composition"], limit=count, metadata={"lengths": asked, "per_length": 1})
    [figure] = [each for each in page_of(folder).figures if each.key == "s3-composition-asked"]
    assert [row["length"] for row in figure.rows] == drawn
    assert sum(row["n"] for row in figure.rows) == count


def test_ninety_four_groups_are_one_table_and_not_ninety_four_tabs(write: Write) -> None:
    draw = random.Random(0)
    folder = write(Scripted(lambda prompt: f" {draw.randrange(2)}"), ["permutation_groups"], samples=False, limit=1)
    page = page_of(folder)
    assert [section.title for section in page.sections] == ["Other programs", "About this run"]
    [table] = [each for each in page.tables if each.key == "elsewhere"]
    assert len(table.rows) == 94
    means = {mean.selector: len(mean.tasks) for mean in read(folder).means}
    assert means == {"permutation_groups": 94, "tc0_groups": 72, "nc1_groups": 22}
    assert ("94", "tasks") in page.facts


def test_means_over_a_selector_and_the_lengths_of_many_tasks(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {"lengths": ",".join(map(str, range(5, 55, 5))), "per_length": 1}
    folder = write(Scripted(lambda prompt: " 0"), ["nc1_groups"], samples=False, metadata=asked, limit=10)
    [mean] = read(folder).means
    scores = read(folder).scores
    assert (mean.selector, len(mean.tasks), len(scores)) == ("nc1_groups", 22, 22)
    assert mean.accuracy == pytest.approx(sum(each.accuracy for each in scores) / 22)
    assert list(mean.by_length) == list(range(5, 55, 5))
    capsys.readouterr()
    assert main(["results", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert f"mean of nc1_groups  hf/net       22      {mean.accuracy:.4f}" in printed
    turned = printed.partition("accuracy by length:\n")[2].splitlines()
    assert turned[0].split() == ["task", "5", "10", "20", "25", "30", "35", "45", "50"]
    assert turned[1].split()[:3] == ["mean", "of", "nc1_groups"]
    assert len(turned) == 1 + 1 + 22 + 1 + 1
    assert turned[-1] == "8 of 10 lengths; each with its rows and interval: --long, or --long --csv FILE"
    [table] = [table for table in page_of(folder).tables if table.key == "elsewhere-means"]
    assert table.rows[0][:3] == ["nc1_groups", "hf/net · lm-eval", 22]
    assert main(["results", str(folder), "--long", "--csv", "-"]) == 0
    rows = [row for row in csv.DictReader(io.StringIO(capsys.readouterr().out)) if row["of"] == "mean"]
    assert [(row["task"], row["rows"]) for row in rows] == [("nc1_groups", "22")] * 10


def test_a_length_that_nobody_was_asked_about_and_a_mean_that_is_none(write: Write) -> None:
    folder = write(Scripted(lambda prompt: " 0"), ["nc1_groups"], samples=False, limit=2, metadata={"lengths": "5,10"})
    path = results_file(folder)
    data = json.loads(path.read_text())
    data["groups"]["nc1_groups"] |= {"10,none": -1}
    path.write_text(json.dumps(data, indent=2))
    assert list(read(folder).means[0].by_length) == [5]
    data["groups"]["nc1_groups"]["acc,none"] = 7.0
    path.write_text(json.dumps(data, indent=2))
    assert read(folder).means == []
    assert "nc1_groups: a mean that is no share" in read(folder).notices[0]
    data["groups"] = {"nc1_groups": data["groups"]["nc1_groups"] | {"acc,none": 0.5}}
    data["group_subtasks"]["nc1_groups"] = ["nc1_groups"]
    path.write_text(json.dumps(data, indent=2))
    assert read(folder).means == []


def test_nothing_is_written_into_a_folder_of_the_harness_unasked(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(until(0), ["s3_composition"], limit=2)
    before = sorted(folder.rglob("*"))
    assert main(["report", str(folder)]) == 2
    assert "holds logs of other programs and no cell of statetrack" in capsys.readouterr().err
    assert sorted(folder.rglob("*")) == before
    assert main(["report", str(folder), "--out", str(tmp_path / "page.html")]) == 0
    assert sorted(folder.rglob("*")) == before
    assert "s3_composition" in (tmp_path / "page.md").read_text().replace("\\", "")
