"""Weights that were brought and evaluated are on the page, apart from what was trained here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from statetrack.cli import main
from statetrack.reports import page_of, report
from statetrack.reports.page import Page
from statetrack.results import Cell, EvaluatedRecord, Store
from statetrack.results.cell import EVALUATE
from statetrack.results.evaluations import BreakingWord, OnRows, OnStream, OnWords, Power
from statetrack.results.records import Weights
from tests.reports.made_records import DESIGN, around, trained

HASH = "ab12" * 16
LABEL = "gru[hidden=8], weights ab12ab12"


def rows(length: int, share: float) -> OnRows:
    return OnRows(
        length=length, seed=0, rows=256, n=256 * length, accuracy=share, interval=around(share), floor=0.5,
        last_32_accuracy=share, last_32_interval=around(share),
    )  # fmt: skip


def bring(folder: Path, *, trained_at: int = 0, last: float = 0.7) -> EvaluatedRecord:
    word = BreakingWord(parts=(Power([1]), Power([0], 40)), family="u v^k", expected=1, given=0)
    record = EvaluatedRecord(
        cell=Cell("txc", "gru[hidden=8]", trained_at, 0, {"name": EVALUATE, "weights": HASH}),
        weights=Weights(sha256=HASH, parameters=9, file="it's.safetensors"),
        evaluations=(
            rows(32, 1.0), rows(64, last),
            OnStream(steps=2048, seed=0, rows=64, positions=1024, accuracy={"1024": 0.5, "2048": 0.5}),
            OnWords(seed=0, budget=5000, words=4, tokens=100, longest=50, wrong=1, breaking=word),
            OnRows(length=128, seed=0, reason="ValueError: too long"),
        ),
    )  # fmt: skip
    Store(folder).write(record)
    return record


def train_beside(folder: Path) -> None:
    for seed in range(3):
        Store(folder).write(trained(Cell("txc", "gru[hidden=8]", 16, seed, DESIGN), lambda t: 0.999))


def column(page: Page, header: str) -> list[object]:
    (table,) = [table for table in page.tables if table.key == "txc-brought"]
    at = list(table.headers).index(header)
    return [row[at] for row in table.rows]


def test_a_folder_of_nothing_else_is_a_page_with_a_table_a_figure_and_a_sentence(tmp_path: Path) -> None:
    bring(tmp_path)
    page = page_of(tmp_path)
    assert page.summary == [
        "1 network brought and tested, not trained here.",
        f"On txc, not trained here: {LABEL} loses it by 64, and broken by the word 1 0^40.",
    ]
    assert column(page, "tested") == [32, 64, 1024, 2048, 128]
    assert column(page, "accuracy") == ["1", ".700", ".500", ".500", "ValueError: too long"]
    assert column(page, "floor") == [".500", ".500", ".500", ".500", None]
    assert column(page, "trained at") == [None] * 5
    (figure,) = page.figures
    assert [(row["tested"], row["accuracy"], row["floor"]) for row in figure.rows] == [
        (32, 1.0, pytest.approx(0.5)), (64, 0.7, pytest.approx(0.5)), (1024, 0.5, pytest.approx(0.5)),
        (2048, 0.5, pytest.approx(0.5)),
    ]  # fmt: skip
    told = dict(page.provenance)["results"]
    assert told == (
        f"statetrack evaluate txc 'it'\"'\"'s.safetensors' --model 'gru[hidden=8]' --lengths 32,64,128 --stream 2048 "
        f"--words 5000 --seed 0 --out {tmp_path}"
    )
    assert "weights that were only evaluated" in report(tmp_path, tmp_path / "page.html").html.read_text()


def test_beside_trainings_it_changes_no_verdict_no_rate_and_no_figure_of_theirs(tmp_path: Path) -> None:
    train_beside(tmp_path / "alone")
    train_beside(tmp_path / "both")
    bring(tmp_path / "both", trained_at=16, last=0.2)
    alone, both = page_of(tmp_path / "alone"), page_of(tmp_path / "both")
    brought = [figure.key for figure in both.figures if figure.key not in {each.key for each in alone.figures}]
    assert brought == ["txc-brought"]
    assert {each.key: each.rows for each in alone.figures} == {
        each.key: each.rows for each in both.figures if each.key != "txc-brought"
    }
    apart = {"txc-brought", "cells", "standing"}
    assert [table for table in alone.tables if table.key not in apart] == [
        table for table in both.tables if table.key not in apart
    ]
    assert [line for line in both.summary if "not trained here" not in line] == [
        line for line in alone.summary if "trained on 1 task" not in line
    ]
    assert column(both, "trained at") == [16] * 5


def test_results_prints_it_under_a_line_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = bring(tmp_path)
    assert main(["results", str(tmp_path)]) == 0
    title, headers, *lines = capsys.readouterr().out.splitlines()
    assert title == "evaluated, not trained here:"
    assert headers.split()[:3] == ["task", "model", "weights"]
    assert [" ".join(line.split()[2:6]) for line in lines] == [
        "ab12ab12 0 rows 32", "ab12ab12 0 rows 64", "ab12ab12 0 stream 1024", "ab12ab12 0 stream 2048",
    ]  # fmt: skip
    Store(tmp_path).write(replace(record, seconds=1.0))
    assert main(["status", str(tmp_path)]) == 0
    assert main(["check", str(tmp_path)]) == 0
