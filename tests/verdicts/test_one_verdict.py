"""One claim has one verdict: the report, the command and the function say the same, and show older rules beside it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from statetrack.cli import main
from statetrack.reports import page_of, predictions
from statetrack.reports.folder import read
from statetrack.results import Cell, Store, TrainingRecord, plans
from statetrack.results.diagnosis import FADES, Diagnosis
from statetrack.results.evaluations import BreakingWord, OnWords, Power
from statetrack.results.sections import M_FADES
from statetrack.verdicts import verdict
from statetrack.verdicts.documents import predictions as sentences
from statetrack.verdicts.judge import results
from tests.reports.made_records import CURRICULUM, DESIGN, fill, trained

KNOWN = {known.key: known for known in sentences()}


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three seeds, planned under rules 1."""
    folder = tmp_path_factory.mktemp("verdicts") / "cells"
    models = ("e88-1l", "e88-gain-1l", "mamba2-4l", "mamba2-8l", "mamba2-16l", "linear-rnn")
    cells = [Cell("txc", model, length, seed, DESIGN) for model in models for length in (16, 64) for seed in range(3)]
    store = fill(folder, cells)
    (sweep,) = plans.saved(store)
    plans.save(store, replace(sweep, rules=1))
    return folder


def documents(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["documents", str(folder), *options]) == 0
    return capsys.readouterr().out


def test_the_report_and_the_command_say_what_the_function_says(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [record for record in Store(old).records() if isinstance(record, TrainingRecord)]
    measured = results(records)[0]
    given = {key: verdict(known, measured) for key, known in KNOWN.items()}
    told = {entry["key"]: entry for entry in json.loads(documents(old, capsys, "--json")) if not entry["where"]}
    assert {key: (entry["outcome"], entry["why"]) for key, entry in told.items()} == {
        key: (found.outcome, found.why) for key, found in given.items() if key in told
    }
    judged = {each.prediction.key: each for each in predictions.sentences(read(old))}
    assert len([each for each in judged.values() if each.measured]) == 8
    assert {key: each.verdict for key, each in judged.items()} == {key: given[key] for key in judged}
    tables = {table.key: table for table in page_of(old).tables}
    by_says = {each.prediction.says: each for each in judged.values()}
    for row in [*tables["documents"].rows, *tables["arguments"].rows]:
        each = by_says[row[1]]
        assert (row[2].outcome, row[2].before) == (each.verdict.outcome, each.before.outcome if each.before else "")


def test_both_verdicts_are_shown_where_the_rules_differ(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "undecided (by rules 1: refuted)" in documents(old, capsys)
    told = {entry["key"]: entry for entry in json.loads(documents(old, capsys, "--json"))}
    claim = told["4.2-txc-64-e88-1l"]
    assert (claim["outcome"], claim["before"], claim["rules"]) == ("undecided", "refuted", 2)
    (line,) = [line for line in predictions.lines(read(old)) if line.model == "e88-1l"]
    assert (line.judged.verdicts["training"].outcome, line.judged.before["training"].outcome) == (
        "undecided", "confirmed",
    )  # fmt: skip
    page = page_of(old)
    table = next(table for table in page.tables if table.key == "verdicts")
    assert "undecided (by rules 1: confirmed)" in table.markdown()
    assert "<small>by rules 1: confirmed</small>" in table.html()


def test_a_folder_planned_now_has_one_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path / "cells", [Cell("txc", "e88-1l", 64, seed, DESIGN) for seed in range(3)])
    assert "rules 1" not in documents(tmp_path / "cells", capsys)
    assert not any(line.judged.before for line in predictions.lines(read(tmp_path / "cells")))


def test_the_mechanism_comes_from_the_diagnosis() -> None:
    cell = Cell("txc", "e88-published-1l", 64, 0, CURRICULUM)
    found = Diagnosis(task="txc", model="e88-published-1l", trained=64, length=64, seed=0, conclusion=FADES,
                      mechanism=M_FADES, sentences=["it fades"], seconds=0.0, sections={}, cell=cell)  # fmt: skip
    record = trained(cell, lambda t: 1.0)
    for diagnosis, word in ((found, "fades"), (replace(found, exploded_at=900), "explodes")):
        assert {each.mechanism for each in results([record], {cell.key: diagnosis})[0]} == {word}
    assert {each.mechanism for each in results([record])[0]} == {""}


def test_what_was_seen_names_the_word_that_breaks_a_network(tmp_path: Path) -> None:
    store = fill(tmp_path / "cells", [Cell("txc", "e88-gain-1l", 64, seed, CURRICULUM) for seed in range(2)])
    record = next(store.records())
    assert isinstance(record, TrainingRecord)
    word = BreakingWord(parts=(Power([1]), Power([0], 22)), family="u v^k", expected=1, given=0)
    tried = OnWords(seed=0, budget=1000, words=40, tokens=900, longest=64, wrong=1, breaking=word)
    store.write(record.with_evaluations([tried]))
    (line,) = predictions.lines(read(tmp_path / "cells"))
    assert line.seen[1].endswith("; 1 broken by a word such as 1 0^22")
