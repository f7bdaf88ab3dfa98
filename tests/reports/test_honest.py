"""What a hostile reader would look for: a number that nobody measured, a model that is not named, a claim too wide."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from statetrack.asking import Reply, Request, Rules, solver
from statetrack.asking.metrics import overview
from statetrack.asking.run import ask
from statetrack.cli import main
from statetrack.reports import page_of, report
from statetrack.reports.folder import read
from statetrack.reports.page import Page
from statetrack.reports.table import Table
from statetrack.results import AskedRecord, Cell, Store
from statetrack.results.evaluations import BreakingWord, OffData, OnWords, Power
from statetrack.results.records import EpisodeRecord, no_result
from statetrack.tasks import task as make_task
from tests.reports.made_records import CURRICULUM, DESIGN, diagnose, fill, trained

PERMUTED = "s5_composition"


def table(page: Page, key: str) -> Table:
    return next(each for each in page.tables if each.key == key)


def column(page: Page, key: str, name: str) -> list:
    found = table(page, key)
    return [row[list(found.headers).index(name)] for row in found.rows]


@pytest.fixture
def forms(tmp_path: Path) -> Path:
    """Two forms of E88, three seeds each, of which one is diagnosed."""
    cells = [Cell("txc", name, 64, seed, DESIGN) for name in ("e88-gain-1l", "e88-published-1l") for seed in range(3)]
    fill(tmp_path, cells)
    diagnose(tmp_path, [cells[0], cells[3]])
    return tmp_path


def test_a_seed_that_nobody_diagnosed_is_not_said_to_last(forms):
    key = "ablation-txc-64-e88-gain-1l"
    page = page_of(forms)
    assert column(page, key, "below 90 % at") == ["80, not diagnosed, not diagnosed"] * 2
    assert column(page, key, "what was found") == ["fades", "fades"]
    done = report(forms, latex=forms / "latex")
    (latex,) = [path.read_text() for path in done.tables if path.stem == key]
    assert "beyond" not in latex
    assert latex.count("not diagnosed") == 4


def test_the_seeds_of_an_expected_pattern_are_those_that_were_measured(forms):
    page = page_of(forms)
    told = list(zip(column(page, "patterns", "because"), column(page, "patterns", "seeds"), strict=True))
    assert {seeds for why, seeds in told if " of 1 seed" in why.text} == {1}
    assert {seeds for why, seeds in told if why.text == "not measured"} <= {0}
    assert told


def test_patterns_of_the_design_document_are_not_looked_for_in_tasks_that_it_does_not_name(tmp_path):
    cells = [Cell("flip_flop", "mamba2-4l", 64, seed, DESIGN) for seed in range(3)]
    fill(tmp_path, cells)
    diagnose(tmp_path, cells)
    done = report(tmp_path)
    assert "patterns" not in {each.key for each in done.page.tables}
    assert "design document" not in done.html.read_text()


class Dead:
    """A server that answers the first so many samples, and no other."""

    name, batch = "dead/server", 1

    def __init__(self, answers: int) -> None:
        self.answers = answers

    def replies(self, requests: Sequence[Request]) -> list[Reply]:
        return [self.reply(request) for request in requests]

    def reply(self, request: Request) -> Reply:
        if request.dialogue.sample < self.answers:
            return Reply(request.dialogue.reply(request.turn))
        return Reply(failure="server", detail="503 after 5 tries")

    def close(self) -> None: ...


def asked(folder: Path, answers: int, way: str = "turns") -> list[AskedRecord]:
    return ask(make_task("txc"), Rules(way=way), solver("implicit"), range(3), length=4, model=Dead.name,
               engine=lambda: Dead(answers), out=folder)  # fmt: skip


@pytest.mark.parametrize("way", ["turns", "whole"])
def test_a_server_that_never_answered_is_in_no_mean_and_is_said_to_have_failed(tmp_path, capsys, way):
    records = asked(tmp_path, answers=0, way=way)
    unasked = replace(records[0].cell, seed=3)
    Store(tmp_path).write(no_result(unasked, "failed", "not asked: 503 after 5 tries"))  # as a sweep leaves it
    said = "no answers: the server failed 4 of 4 episodes"
    page = page_of(tmp_path)
    (line,) = [line for line in page.summary if line.startswith("On txc, ")]
    assert line.endswith(f"{said}.")
    assert "0.0" not in line
    assert column(page, "txc-episodes", "without a result") == [said]
    for name in ("right before the first error", "right answers", "replies without an answer", "tokens in"):
        assert column(page, "txc-episodes", name) == [None]
    assert page.figures == []
    (row,) = overview(Store(tmp_path).records())
    assert (row["episodes"], row["failed"]) == (0, 4)
    assert (row["avg_max_length"], row["accuracy"], row["violation_rate"]) == (None, None, None)
    assert main(["results", str(tmp_path)]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert "failed" in head.split()
    assert "0.0" not in line


def test_what_a_server_failed_does_not_lower_the_mean_of_what_it_answered(tmp_path):
    asked(tmp_path, answers=2)
    page = page_of(tmp_path)
    assert column(page, "txc-episodes", "right before the first error") == [4.0]
    assert column(page, "txc-episodes", "episodes") == [2]
    assert column(page, "txc-episodes", "without a result") == ["the server failed 1 of 3 episodes"]
    assert any(line.endswith("the server failed 1 of 3 episodes.") for line in page.summary)
    asked(tmp_path, answers=3)
    whole = page_of(tmp_path)
    assert "without a result" not in table(whole, "txc-episodes").headers
    assert "failed" not in overview(Store(tmp_path).records())[0]


class Tired(Dead):
    """A server that answers the first so many turns of every sample, and then no more."""

    def reply(self, request: Request) -> Reply:
        if request.turn.count <= self.answers:
            return Reply(request.dialogue.reply(request.turn))
        return Reply(failure="server", detail="503 after 5 tries")


def test_what_came_before_a_server_failed_counts_for_the_turn_by_which_half_have_failed(tmp_path):
    ask(make_task("txc"), Rules(), solver("implicit"), range(3), length=4, model=Tired.name,
        engine=lambda: Tired(2), out=tmp_path)  # fmt: skip
    page = page_of(tmp_path)
    assert column(page, "txc-episodes", "half failed by turn") == ["not within 2 turns"]
    assert column(page, "txc-episodes", "half failed by turn, 95 %") == ["1 to 2, or not within 2 turns"]
    for name in ("right before the first error", "right answers", "replies without an answer"):
        assert column(page, "txc-episodes", name) == [None]
    said = "the server failed 3 of 3 episodes"
    assert column(page, "txc-episodes", "without a result") == [said]
    (line,) = [line for line in page.summary if line.startswith("On txc, ")]
    assert line == (
        "On txc, half of the episodes have failed by turn: dead/server implicit not within 2 turns (1 to 2, or not "
        "within 2 turns); "
        f"dead/server implicit: {said}."
    )
    assert [figure.title for figure in page.figures] == ["txc: how long dialogues last"]
    (row,) = overview(Store(tmp_path).records())
    assert (row["half failed by turn"], row["95 %"]) == ("not within 2 turns", "1 to 2, or not within 2 turns")


def test_whole_prompts_have_no_numbers_of_turns(tmp_path):
    asked(tmp_path, answers=3, way="whole")
    found = table(page_of(tmp_path), "txc-episodes")
    assert found.title == "txc: one prompt, one answer"
    assert not {"half failed by turn", "right before the first error", "95 %"} & set(found.headers)
    assert column(page_of(tmp_path), "txc-episodes", "right answers") == [1.0]
    asked(tmp_path, answers=3)
    both = page_of(tmp_path)
    assert table(both, "txc-episodes").title == "txc: the dialogues"
    assert column(both, "txc-episodes", "right before the first error") == [4.0, None]
    assert column(both, "txc-episodes", "right answers") == [1.0, 1.0]


def test_every_model_is_named_in_the_headline_however_it_was_trained(tmp_path):
    store = Store(tmp_path)
    store.write(trained(Cell("txc", "gru", 64, 0, DESIGN), lambda t: 0.6))
    store.write(trained(Cell("txc", "lstm", 64, 0, CURRICULUM), lambda t: 1.0))
    text = " ".join(page_of(tmp_path).summary)
    assert "On txc under curriculum, lstm is right to 1,024, the longest tested." in text
    assert "On txc under design, gru does not solve it." in text


def test_a_stream_is_no_other_way_to_train(tmp_path):
    store = Store(tmp_path)
    store.write(trained(Cell("txc", "gru", 64, 0, DESIGN | {"stream": 0}).identity, lambda t: 0.6))
    store.write(trained(Cell("txc", "lstm", 64, 0, DESIGN | {"stream": 4096}).identity, lambda t: 1.0, stream=4096))
    (line,) = [line for line in page_of(tmp_path).summary if line.startswith("On txc")]
    assert line.startswith("On txc, lstm is right to 4,096, the longest tested; gru does not solve it.")


def test_with_many_ways_to_train_each_model_is_named_at_its_best(tmp_path):
    store = Store(tmp_path)
    for batch in (1, 2, 4, 8):
        store.write(trained(Cell("txc", "gru", 64, 0, DESIGN | {"batch": batch}), lambda t: 1.0 if batch == 4 else 0.6))  # noqa: B023
    (line,) = [line for line in page_of(tmp_path).summary if line.startswith("On txc")]
    assert line.startswith(
        "On txc, each model in the best of 4 ways to train, gru is right to 1,024, the longest tested."
    )


def test_a_model_that_is_not_solved_loses_nothing_further_on(tmp_path):
    """Over the 12 positions of its rows it is right to .991, over the last quarter, three of them, to .96."""
    record = trained(Cell("txc", "gru", 12, 0, DESIGN), lambda t: 1.0)
    here = replace(record.at_length, tail_accuracy=0.96, accuracy=0.991, last_32_accuracy=0.991)
    Store(tmp_path).write(replace(record, evaluations=(here, *record.evaluations[1:])))
    page = page_of(tmp_path)
    (line,) = [line for line in page.summary if line.startswith("On txc, ")]
    assert line == "On txc, gru does not solve it."
    (reach,) = [figure for figure in page.figures if figure.key == "reach"]
    assert [row["shown"] for row in reach.rows] == [".991"]


def test_the_map_of_reaches_tells_nearly_right_from_a_guess(tmp_path):
    store = Store(tmp_path)
    shares = {"gru": 1.0, "lstm": 0.95, "tanh-rnn": 0.01}
    for name, share in shares.items():
        store.write(trained(Cell(PERMUTED, name, 32, 0, DESIGN), lambda t, share=share: share))
    (reach,) = [figure for figure in page_of(tmp_path).figures if figure.key == "reach"]
    found = {row["model"]: row for row in reach.rows}
    assert [found[name]["shown"] for name in shares] == ["≥ 512", ".950", ".010"]
    levels = [found[name]["level"] for name in shares]
    assert levels == sorted(levels, reverse=True)
    assert levels[1] - levels[2] > 0.3  # as a colour, a third of the scale
    assert found["lstm"]["skill"] == pytest.approx((0.95 - 1 / 120) / (1 - 1 / 120), abs=1e-3)


LOGS = {
    "results_2026-01-01T00-00-00.json": {"results": {"s5": {"acc": 0.5}}, "config": {}, "versions": {}},
    "2026-01-01_s5.json": {"version": 2, "status": "success", "eval": {"task": "s5"}, "samples": []},
    "list.json": [1, 2],
}


def leave_logs(folder: Path) -> dict[str, str]:
    """As lm_eval and Inspect leave theirs."""
    for name, held in LOGS.items():
        (folder / name).write_text(json.dumps(held))
    return {path.name: path.read_text() for path in folder.glob("*.json")}


@pytest.mark.parametrize("verb", ["report", "results", "status"])
def test_a_folder_of_logs_of_others_is_left_as_it_is(tmp_path, capsys, verb):
    before = leave_logs(tmp_path)
    code = main([verb, str(tmp_path)])
    out, err = capsys.readouterr()
    assert "3 files are not results of statetrack and are left alone: 2026-01-01_s5.json, list.json" in out + err
    assert "damaged" not in out + err
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before
    if verb == "report":
        assert (code, err.count("\n")) == (2, 1)
        assert "holds no cell of statetrack, so there is nothing to report" in err


def test_logs_of_others_beside_cells_are_named_and_not_promised_to_be_made_anew(tmp_path):
    fill(tmp_path, [Cell("txc", "gru", 16, 0, DESIGN)])
    leave_logs(tmp_path)
    done = report(tmp_path)
    assert [notice for notice in done.page.notices if "3 files are not results of statetrack" in notice]
    assert not [notice for notice in done.page.notices if "anew" in notice]
    assert "damaged" not in dict(done.page.facts).values()


def test_the_measures_of_the_design_document_are_on_the_page_and_in_the_csv_file(tmp_path):
    cells = [Cell("rtc", "e88-1l", 64, seed, DESIGN) for seed in range(3)]
    store = fill(tmp_path, cells)
    for cell, paired in zip(cells, (0.32, 0.41, 0.56), strict=True):
        record = store.read(cell)
        shares = {"full_sequence_accuracy": 0.25, "crossing_accuracy": 0.75, "paired_crossing_accuracy": paired}
        here = replace(record.at_length, **shares)
        training = replace(record.training, epochs_to_converge=7, final_train_loss=0.125, replicas=3)
        store.write(replace(record, training=training, evaluations=(here, *record.evaluations[1:])))
    page, key = page_of(tmp_path), "rtc-measures"
    assert column(page, key, "paired crossings") == [".410 (.320–.560)"]
    assert column(page, key, "whole rows") == [".250"]
    assert column(page, key, "epochs") == ["7"]
    assert column(page, key, "loss") == ["0.125"]
    assert column(page, key, "tokens a second") == ["50,000"]
    assert column(page, key, "trained together") == ["3"]
    assert "not recorded" in table(page, key).caption  # what else the device did
    assert main(["results", str(tmp_path), "--csv", str(tmp_path / "cells.csv")]) == 0
    rows = list(csv.DictReader((tmp_path / "cells.csv").open()))
    assert [row["paired_crossing_accuracy"] for row in rows] == ["0.32", "0.41", "0.56"]
    names = ("full_sequence_accuracy", "crossing_accuracy", "epochs_to_converge", "final_train_loss",
             "tokens_per_second", "replicas")  # fmt: skip
    assert [rows[0][name] for name in names] == ["0.25", "0.75", "7", "0.125", "50000.0", "3"]


def test_the_page_says_where_what_is_right_on_random_rows_is_wrong_on_others(tmp_path):
    store = Store(tmp_path)
    for seed, silent in enumerate((0.2, 0.3, 1.0)):
        record = trained(Cell("fsm", "gru", 64, seed, DESIGN), lambda t: 1.0)
        kinds = {"all zeros": 1.0, "one event, then silence": silent, "p=0.02": None}
        off = OffData(length=64, seed=seed, accuracy=kinds, mean=0.8, worst=silent)
        others = tuple(each for each in record.evaluations if not isinstance(each, OffData))
        store.write(replace(record, evaluations=(*others, off)))
    store.write(trained(Cell("fsm", "mlp", 64, 0, DESIGN), lambda t: 0.9))  # wrong anyway: nothing to take back
    page = page_of(tmp_path)
    (line,) = [line for line in page.summary if line.startswith("On fsm, ")]
    assert "Of 3 networks that solved random rows 2 are below 99 % on other rows, at worst gru: .200 on “one" in line
    assert [list(row) for row in table(page, "fsm-off-data").rows] == [
        ["gru", 64, 3, 2, "one event, then silence", ".200"]
    ]
    seen = {row[1]: row[4].small for row in table(page, "verdicts").rows}
    assert "on other rows 2 of 3 below 99 %, at worst .200 on “one event, then silence”" in seen["gru"]
    assert "other rows" not in seen["mlp"]


def test_a_reason_of_theory_is_told_once(tmp_path):
    cells = [Cell("txc", name, 64, seed, DESIGN) for name in ("mlp", "mamba2-4l", "mamba2-8l") for seed in range(3)]
    fill(tmp_path, cells)
    done = report(tmp_path)
    reasons = [tuple(row[1:]) for row in table(done.page, "theory").rows]
    assert len(set(reasons)) == len(reasons)
    assert all(column(done.page, "theory", "precision"))
    numbers = [f"[{row[0]}]" for row in table(done.page, "theory").rows]
    for row in table(done.page, "verdicts").rows:
        assert row[2].small.split()[-1] in numbers
        assert row[5].small.split()[-1] in numbers
    (why,) = [reason[0] for reason in reasons if "does not see" in reason[0]]
    assert done.html.read_text().count(why) == 1


def test_the_headline_says_which_words_break_what_is_right_on_rows(tmp_path):
    store = Store(tmp_path)
    for model, silent in (("gru", 22), ("lstm", 3), ("tanh-rnn", 0)):
        record = trained(Cell("txc", model, 64, 0, DESIGN), lambda t: 1.0)
        word = BreakingWord(parts=(Power([1], 1), Power([0], silent)), family="u v^k", expected=1, given=0)
        found = OnWords(seed=0, budget=1000, words=100, wrong=int(silent > 0), breaking=word if silent else None)
        store.write(replace(record, evaluations=(*record.evaluations, found)))
    (line,) = [line for line in page_of(tmp_path).summary if line.startswith("On txc, ")]
    assert "gru, lstm and tanh-rnn are right to 1,024, the longest tested." in line
    assert "Of 3 networks that solved random rows and met hard words 2 are broken by one: lstm by 1 0^3." in line
    for model in ("gru", "tanh-rnn"):
        store.path(Cell("txc", model, 64, 0, DESIGN)).unlink()
    (line,) = [line for line in page_of(tmp_path).summary if line.startswith("On txc, ")]
    assert line.endswith(" lstm solves random rows, and is broken by the word 1 0^3.")


@pytest.mark.parametrize("ended", ["context", "server", "running"])
def test_an_episode_that_an_earlier_version_called_done_is_in_no_mean(tmp_path, ended):
    """Alone, and beside one that counts."""
    cell = Cell("txc", "x/y implicit", 3, 0, {"name": "ask"})
    episode = EpisodeRecord(ended=ended, max_length=1, asked=3, outcomes="+", positions=[1], changes="-",
                            replies=["[answer: 1]"], tokens={"sent": 1, "generated": 1})  # fmt: skip
    Store(tmp_path).write(AskedRecord(cell=cell, status="done", episode=episode))
    assert (read(tmp_path).asked("txc"), len(read(tmp_path).failed("txc"))) == ([], 1)
    report(tmp_path)
    other = replace(cell, seed=1)
    whole = replace(
        episode, ended="done", outcomes="+++", positions=[1, 2, 3], changes="-00", replies=["[answer: 1]"] * 3
    )
    Store(tmp_path).write(AskedRecord(cell=other, status="done", episode=whole))
    report(tmp_path)
    assert [each.sample for each in read(tmp_path).asked("txc")] == [1]
