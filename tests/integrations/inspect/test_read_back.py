"""Inspect's own logs of our tasks, read without Inspect: the same episodes, in tables and in the report."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match

from statetrack.asking import Rules, solver, summary
from statetrack.asking.external import read
from statetrack.asking.run import ask
from statetrack.cli import main
from statetrack.integrations.inspect import registry as st
from statetrack.integrations.inspect import solvers
from statetrack.integrations.inspect.scorer import records
from statetrack.reports import page_of, report
from statetrack.results.records import AskedRecord
from statetrack.tasks import task as find_task
from tests.integrations.inspect.loopback import error, good, serve
from tests.integrations.inspect.scripted import right_until, scripted


@task
def capitals() -> Task:
    return Task(dataset=[Sample(input="France?", target="Paris")], scorer=match())


def logs(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.mark.parametrize("log_format", ["eval", "json"])
def test_episodes_are_those_that_inspect_counted(run: Any, tmp_path: Path, log_format: str) -> None:
    model = scripted("late", right_until(4))
    log = run(st.track_the_stat(samples=3, turns=8), model, log_format=log_format)
    [found] = read(logs(tmp_path)).episodes
    assert (found.source.program, found.source.task, found.source.model) == (
        "Inspect", "statetrack/track_the_stat", "scripted/late",
    )  # fmt: skip
    assert all(isinstance(each, AskedRecord) and each.finished for each in found.records)
    told = [each.episode for each in found.records if isinstance(each, AskedRecord)]
    counted = {name: each.value for name, each in log.results.scores[0].metrics.items()}
    ours = summary(sorted(told, key=lambda each: each.max_length))
    assert ours["avg_max_length"] == counted["avg_max_length"] == 3
    assert ours["tokens"] == summary(records(log))["tokens"]
    assert {each.cell.subject for each in found.records} == {"scripted/late implicit"}
    assert sorted(each.cell.seed for each in found.records) == [0, 1, 2]
    assert not any(reply for each in told for reply in each.replies)  # what was said stays in the log


def test_it_is_read_without_inspect(run: Any, tmp_path: Path) -> None:
    run(st.track_the_stat(samples=2, turns=300), solver=solvers.oracle())
    code = f"""
import sys
sys.modules["inspect_ai"] = sys.modules["torch"] = None
from pathlib import Path
from statetrack.asking.external import read
from statetrack.asking.run import ask
[log] = read(Path({str(logs(tmp_path))!r})).episodes
print([record.episode.max_length for record in log.records], log.records[0].cell.subject)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[300, 300] oracle"


def test_solvers_and_settings_are_in_the_name(run: Any, tmp_path: Path) -> None:
    run(st.track_the_stat(samples=1, turns=4), solver=solvers.window(3))
    run(st.track_the_stat(samples=1, turns=4), solver=solvers.random())
    model = scripted("late", right_until(3))
    run(st.track_the_stat(samples=1, turns=4), model, solver=solvers.explicit(role="user"), temperature=0.5)
    subjects = {each.cell.subject for log in read(logs(tmp_path)).episodes for each in log.records}
    assert subjects == {"random", "window-3", "scripted/late[temperature=0.5] explicit-user:implicit"}


def test_later_epochs_are_counted_nowhere_and_named(run: Any, tmp_path: Path) -> None:
    run(st.track_the_stat(samples=2, turns=4), solver=solvers.oracle(), epochs=3)
    [found] = read(logs(tmp_path)).episodes
    assert (len(found.records), found.repeats) == (2, 4)
    [table] = [each for each in page_of(logs(tmp_path)).tables if each.key == "files"]
    assert "2 samples, 4 of later epochs not counted" in table.rows[0][3]


def test_a_sample_that_a_server_failed_is_in_no_mean(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_API_KEY", "loop-back-key-0123456789")
    from inspect_ai.model import get_model

    def script(n: int, body: dict[str, Any]) -> Any:
        return error(401, "no") if body["messages"][1]["content"] == "85" else good("[mode: 100]")

    with serve(script) as server:
        model = get_model("openai-api/local/tiny", base_url=server.url, memoize=False)
        run(st.track_the_stat(samples=3, turns=4), model, fail_on_error=False, max_retries=0)
    page = page_of(logs(tmp_path))
    [table] = [each for each in page.tables if each.key == "track-the-stat-mode-episodes"]
    [row] = [dict(zip(table.headers, row, strict=True)) for row in table.rows]
    assert (row["episodes"], row["without a result"]) == (2, "the server failed 1 of 3 episodes")


def test_a_run_that_is_taken_up_again_counts_once(run: Any, tmp_path: Path) -> None:
    for _ in range(2):
        run(st.track_the_stat(samples=3, turns=4), solver=solvers.oracle())
    found = read(logs(tmp_path))
    assert sum(len(log.records) for log in found.episodes) == 3
    assert [each.why for each in found.left_out] == ["3 samples (asked again in another log)"]


def test_logs_of_others_are_named_left_alone_and_get_no_report(
    run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capitals())
    folder = logs(tmp_path)
    [path] = folder.iterdir()
    held = path.read_bytes()
    capsys.readouterr()
    for command in (["report", str(folder)], ["report", str(folder), "--out", str(tmp_path / "page.html")]):
        assert main(command) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert f"1 file is not a result of statetrack and is left alone: {path.name}" in said
        assert "damaged" not in said
    assert (list(folder.iterdir()), path.read_bytes()) == ([path], held)
    assert not (tmp_path / "page.html").exists()
    run(st.track_the_stat(samples=1, turns=4), solver=solvers.oracle())
    assert main(["results", str(folder)]) == 0
    printed, said = capsys.readouterr()
    assert "track_the_stat.mode  oracle" in printed
    assert f"left alone: {path.name}" in said
    assert main(["check", str(folder)]) == 0
    assert f"foreign: {path.name}: Inspect's log of capitals, which is no task" in capsys.readouterr().out


def test_one_page_has_both_turns_and_whole_prompts(run: Any, tmp_path: Path) -> None:
    run(st.track_the_stat(samples=3, turns=8), scripted("late", right_until(4)))
    run(st.track_the_stat(samples=3, turns=8), solver=solvers.random())
    run(st.permutation_composition(group="c2", lengths="5,20", per_length=4), scripted("zero", zero))
    done = report(logs(tmp_path), tmp_path / "page.html")
    figures = {figure.key: figure for figure in done.page.figures}
    bars = {
        row["model"]: (row["lasted"], row["lasted_low"]) for row in figures["track-the-stat-mode-asked-lasted"].rows
    }
    assert bars["scripted/late"] == (3, 3)
    answers = {row["length"]: row for row in figures["c2-composition-asked"].rows}
    said = "On c2_composition, right final answers: scripted/zero implicit · whole, Inspect"
    assert any(line.startswith(said) and line.endswith(" of 8.") for line in done.page.summary)
    assert {length: (row["n"], row["floor"]) for length, row in answers.items()} == {5: (4, 0.5), 20: (4, 0.5)}
    text = done.html.read_text()
    assert "scripted/late implicit · Inspect" in text
    assert "Inspect 0.3" in text


def test_the_same_solver_asked_here_and_by_inspect_is_two_bars(run: Any, tmp_path: Path) -> None:
    run(st.track_the_stat(samples=2, turns=6), solver=solvers.oracle())
    ask(find_task("track_the_stat.mode"), Rules(), solver("oracle"), range(2), length=6, out=logs(tmp_path))
    done = report(logs(tmp_path))  # a folder with a cell of ours is ours: the page goes into it
    assert done.html == logs(tmp_path) / "report.html"
    [figure] = [each for each in done.page.figures if each.key == "track-the-stat-mode-asked-lasted"]
    assert {row["model"]: row["lasted"] for row in figure.rows} == {"oracle": 6, "oracle · Inspect": 6}
    assert done.page.summary[0] == "1 baseline asked in 2 episodes; 2 samples read from 1 log of Inspect."


async def zero(said: Any) -> str:
    return "0"
