"""Runs that are kept, cut off and taken up again; the command line."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import pytest

import statetrack as st
from statetrack.asking import Reply, Request, Rules, Tokens, solver
from statetrack.asking.rules import how
from statetrack.asking.run import ask
from statetrack.cli import main
from statetrack.cli.ask import command
from statetrack.results import AskedRecord, Store
from statetrack.results.records import no_result
from tests.asking.tiny_models import saved

MEDIAN = st.task("track_the_stat.median")


class Scripted:
    """An engine that answers rightly, counts what it is asked, and fails where it is told to."""

    name, batch = "scripted/model", 2

    def __init__(self, fail_at: int | None = None, error: type[BaseException] | None = None) -> None:
        self.fail_at, self.error, self.asked = fail_at, error, 0
        self.closed = False

    def replies(self, requests: Sequence[Request]) -> list[Reply]:
        self.asked += len(requests)
        return [self.reply(request) for request in requests]

    def reply(self, request: Request) -> Reply:
        if len(request.turn.seen) == self.fail_at:
            if self.error:
                raise self.error
            return Reply(failure="server", detail="503 after 5 tries, key sk-abcdefgh12345678")
        return Reply(request.dialogue.reply(request.turn), tokens=Tokens(sent=10, new=1, cached=9, generated=2))

    def close(self) -> None:
        self.closed = True


def run(asked: Scripted, out: Path, samples: int = 3, length: int = 6) -> list[AskedRecord]:
    return ask(MEDIAN, Rules(), solver("implicit"), range(samples), length=length, model=asked.name,
               engine=lambda: asked, out=out)  # fmt: skip


def test_a_second_run_asks_only_what_is_missing(tmp_path: Path) -> None:
    first, second = Scripted(), Scripted()
    run(first, tmp_path / "out", samples=2)
    records = run(second, tmp_path / "out", samples=3)
    assert (first.asked, second.asked) == (12, 6)
    assert [record.episode.max_length for record in records] == [6, 6, 6]
    third = Scripted()
    assert run(third, tmp_path / "out") == records
    assert (third.asked, third.closed) == (0, False)  # it was not even made
    assert second.closed
    cell = records[0].cell
    assert (cell.task, cell.subject, cell.length, cell.seed) == (
        "track_the_stat.median", "scripted/model implicit", 6, 0,
    )  # fmt: skip


def test_a_servers_failure_is_kept_and_gone_on_from(tmp_path: Path) -> None:
    broken = run(Scripted(fail_at=4), tmp_path / "out")
    assert [(record.episode.ended, record.episode.max_length) for record in broken] == [("server", 3)] * 3
    assert {(record.status, record.reason) for record in broken} == {("failed", "503 after 5 tries, key ***")}
    assert "sk-abc" not in str(broken)
    again = Scripted()
    records = run(again, tmp_path / "out")
    assert [(record.episode.ended, record.episode.max_length) for record in records] == [("done", 6)] * 3
    assert again.asked == 9  # three turns each are not asked again
    assert records[0].episode.tokens == {"sent": 60, "new": 6, "cached": 54, "generated": 12, "reasoning": 0}


def test_a_store_that_is_open_is_as_good_as_a_folder(tmp_path: Path) -> None:
    store, asked = Store(tmp_path / "out"), Scripted()
    records = ask(MEDIAN, Rules(), solver("implicit"), range(2), length=6, model=asked.name, engine=lambda: asked,
                  store=store)  # fmt: skip
    assert [store.read(record.cell) for record in records] == records
    assert all(record.seconds is not None and record.reason == "" for record in records)
    assert run(Scripted(), tmp_path / "out", samples=2) == records


def test_a_cell_without_a_result_is_begun_anew(tmp_path: Path) -> None:
    (first,) = run(Scripted(), tmp_path / "out", samples=1)
    Store(tmp_path / "out").path(first.cell).unlink()  # else the result would stay
    Store(tmp_path / "out").write(no_result(first.cell, "failed", "not asked: 503"))
    again = Scripted()
    (record,) = run(again, tmp_path / "out", samples=1)
    assert (record.status, record.episode, again.asked) == ("done", first.episode, 6)


RULES_OF_0_1_0 = {
    "way": "turns", "style": "ids", "shots": 0, "relabel": None, "regime": "instant", "keep_reasoning": False,
    "history": "stop", "every": 1, "distractors": [], "parser": "strict", "room": 0, "limit": 0,
}  # fmt: skip


def write_as_0_1_0(folder: Path, key: str, sample: int, **held: object) -> None:
    """A record as that version wrote it: flat, without a kind and a format, under its key."""
    cell = {"task": "track_the_stat.median", "subject": "scripted/model implicit", "length": 2, "seed": sample,
            "protocol": {"name": "ask", **RULES_OF_0_1_0}}  # fmt: skip
    folder.mkdir(exist_ok=True)
    (folder / f"{key}.json").write_text(json.dumps({"cell": cell, "version": "0.1.0", **held, "seconds": 0.0033}))


def test_a_record_of_0_1_0_is_found_and_not_asked_again(tmp_path: Path) -> None:
    write_as_0_1_0(
        tmp_path / "out", "6bad18b6be31a4d45931", 0, status="done", ended="done", detail="", max_length=2, asked=2,
        outcomes="++", positions=[1, 2], changes="-1", replies=["[median: 85]", "[median: 74]"],
        tokens={"sent": 20, "new": 2, "cached": 18, "generated": 4, "reasoning": 0},
    )  # fmt: skip
    asked = Scripted()
    (record,) = run(asked, tmp_path / "out", samples=1, length=2)
    assert (asked.asked, asked.closed) == (0, False)
    assert (record.version, record.seconds, record.episode.replies) == (
        "0.1.0",
        0.0033,
        ["[median: 85]", "[median: 74]"],
    )
    (fresh,) = run(Scripted(), tmp_path / "new", samples=1, length=2)
    assert fresh.cell == record.cell
    assert replace(fresh.episode, system="", prompts=None, prompt_sha256="", budget=None) == record.episode


def test_a_dialogue_that_0_1_0_left_is_taken_up(tmp_path: Path) -> None:
    write_as_0_1_0(
        tmp_path / "out", "cbf556590d58ba1130c5", 1, status="failed", reason="503", ended="server", detail="503",
        max_length=1, asked=2, outcomes="+", positions=[1], changes="-", replies=["[median: 47]"],
        tokens={"sent": 10, "new": 1, "cached": 9, "generated": 2, "reasoning": 0},
    )  # fmt: skip
    asked = Scripted()
    record = run(asked, tmp_path / "out", samples=2, length=2)[1]
    assert asked.asked == 2 + 1  # the other sample, and the turn that was left
    assert (record.status, record.episode.outcomes, record.episode.tokens["sent"]) == ("done", "++", 20)


def test_ctrl_c_leaves_what_was_answered(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(Scripted(fail_at=5, error=KeyboardInterrupt), tmp_path / "out")
    again = Scripted()
    records = run(again, tmp_path / "out")
    assert [record.episode.ended for record in records] == ["done"] * 3
    assert again.asked == 2 * 2 + 6  # two episodes were at turn 5, the third had not begun


def test_a_dead_server_is_left_alone(tmp_path: Path) -> None:
    dead = Scripted(fail_at=1)
    records = run(dead, tmp_path / "out", samples=50)
    assert [record.episode.ended for record in records] == ["server"] * 4  # two batches of two
    assert dead.closed
    alive = Scripted()
    assert [record.episode.max_length for record in run(alive, tmp_path / "out", samples=50)] == [6] * 50


def test_one_broken_episode_is_no_dead_server(tmp_path: Path) -> None:
    class Once(Scripted):
        def reply(self, request: Request) -> Reply:
            self.fail_at = 1 if request.sample == 2 else None
            return super().reply(request)

    ended = [record.episode.ended for record in run(Once(), tmp_path / "out", samples=8)]
    assert (ended.count("server"), ended.count("done")) == (1, 7)


def test_the_command_says_what_a_dead_server_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["ask", "txc", "--model", "scripted/model", "--samples", "9", "--length", "6"]
    monkeypatch.setattr("statetrack.asking.engines.engine", lambda model, **options: Scripted(fail_at=3))
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr()
    assert said.out == ""  # nothing ended, so there is no mean
    assert said.err == (
        "statetrack: the server failed in 4 episodes (503 after 5 tries, key ***), so 5 more were not asked; what was"
        " answered is kept, and the same command goes on from there\n"
    )
    monkeypatch.setattr("statetrack.asking.engines.engine", lambda model, **options: Scripted())
    assert main([*arguments, "--out", str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["avg_max_length"] == 6


def test_rules_are_part_of_the_key(tmp_path: Path) -> None:
    for rules in (Rules(), Rules(history="own"), Rules(every=2)):
        ask(MEDIAN, rules, solver("oracle"), [0], length=6, out=tmp_path / "out")
    assert len(list((tmp_path / "out").glob("*.json"))) == 3


def test_the_command_with_a_local_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = f"hf:{saved(tmp_path / 'tiny')}"
    arguments = ["ask", "track_the_stat.median", "--model", model, "--samples", "3", "--length", "5", "--device", "cpu",
                 "--room", "4", "--history", "corrected", "--out", str(tmp_path / "out")]  # fmt: skip
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "3 episodes of 5 inputs" in shown
    assert "violation_rate" in shown
    assert "tokens: " in shown
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["accuracy"]["n"] == 15
    assert found["protocol"]["history"] == "corrected"
    assert len(found["by_position"]) == 5
    assert main([*arguments, "--teacher-forced", "--json"]) == 0
    scored = json.loads(capsys.readouterr().out)
    assert scored["protocol"]["teacher_forced"] is True
    assert len(list((tmp_path / "out").glob("*.json"))) == 6


def test_the_command_with_a_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "track_the_stat", "--solver", "oracle", "--samples", "2", "--compat", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["task"], found["avg_max_length"], found["counting"]) == ("track_the_stat.mode", 299.0, "original")
    assert (
        main(["ask", "s5", "--way", "whole", "--solver", "oracle", "--samples", "2", "--length", "30", "--json"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["accuracy"]["accuracy"] == 1.0


def test_a_whole_prompt_is_one_answer_and_has_no_turns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "s5", "--way", "whole", "--solver", "oracle", "--samples", "4", "--length", "5"]) == 0
    shown = capsys.readouterr().out
    assert "4 questions of 5 inputs, one answer each" in shown
    assert [line.split("  ")[0] for line in shown.splitlines()[3:-2]] == ["accuracy", "", "violation_rate"]
    assert main(["ask", "s5", "--solver", "oracle", "--samples", "4", "--length", "5"]) == 0
    assert "half have failed by turn" in capsys.readouterr().out


def test_an_estimate_before_anything_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "track_the_stat.median", "--dry-run", "--samples", "10", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["turns"] == 300
    assert found["tokens"]["sent"] == 10 * found["tokens_each"]["sent"]
    assert main(["ask", "txc", "--dry-run"]) == 0
    assert "parity" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["tcx", "--solver", "oracle"], "did you mean txc"),
        (["txc"], "needs a model"),
        (["txc", "--solver", "orcale"], "did you mean oracle"),
        (["txc", "--solver", "oracle", "--samples", "0"], "--samples 0"),
        (["txc", "--solver", "oracle", "--style", "table"], "permutation groups"),
        (["txc", "--solver", "oracle", "--regime", "slow"], "unknown regime"),
        (["txc", "--model", "nothing"], "PROVIDER/MODEL"),
        (["txc", "--solver", "oracle", "--out", "no/such/place"], "is not a folder"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ask", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith("statetrack: ")
    assert part in said
    assert said.count("\n") == 1


def test_a_model_that_is_not_there_leaves_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = f"hf:{tmp_path / 'nothing'}"
    assert main(["ask", "txc", "--model", model, "--samples", "1", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith("statetrack: ")
    assert not (tmp_path / "out").exists()


def test_importing_it_brings_numpy_alone() -> None:
    import subprocess
    import sys

    code = "import sys, statetrack.asking, statetrack.asking.run, statetrack.asking.engines; print(sorted({'torch', "
    code += "'typer', 'rich', 'transformers', 'inspect_ai', 'numba'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_command_has_every_rule_with_its_default() -> None:
    given = {name: option.default for name, option in inspect.signature(command).parameters.items()}
    assert Rules.among(given | {"distractors": given["distractor"] or (), "prompt": given["prompt"] or ""}) == Rules()
    assert {rule.name for rule in fields(Rules)} - given.keys() == {"distractors"}


def test_rules_in_words() -> None:
    rules = Rules(history="own", every=2, distractors=("chatter", "words"))
    protocol = {"name": "ask", **rules.to_dict(), "teacher_forced": True}
    assert Rules.of_protocol(protocol) == rules
    assert how(protocol) == f"{rules.changed}, teacher-forced"
    assert how({"name": "ask", **Rules().to_dict()}) == ""
    later = {"name": "ask", "history": "own", "moods": ["calm", "merry"], "teacher_forced": True}
    assert how(later) == "history own, moods calm merry, teacher-forced"
