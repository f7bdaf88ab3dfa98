"""What is known of every word on the page: claims beside their proofs, words, and proofs that are missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from statetrack.cli import main
from statetrack.reports import folder
from statetrack.reports.figure_data import for_ever_of
from statetrack.reports.figures.charts import CROSS
from statetrack.reports.figures.figure import Figure
from statetrack.reports.page import Page, page
from statetrack.reports.table import Table
from statetrack.results import Cell, Store, TrainingRecord, proofs
from statetrack.results.evaluations import BROKEN, MISSING, OPEN, PROVED, BreakingWord, ForEver, Power
from tests.reports import made_records

GAIN, SMALL = "e88-gain-1l-small", "e88-1l-small"
WORD = BreakingWord(parts=(Power([1]), Power([0], 25)), family="u v^k", expected=1, given=0)


@pytest.fixture
def certified(tmp_path: Path) -> Store:
    """One model is proved with both seeds, one has a seed that is broken and one that is open, of one nobody asked."""
    cells = [Cell("txc", model, 16, seed, made_records.DESIGN) for model in (GAIN, SMALL, "mlp") for seed in (0, 1)]
    store = made_records.fill(tmp_path / "results", cells)
    for cell in cells[:2]:
        digest = proofs.write(store.path(cell, "proof"), {"task": "txc", "weights": "w", "covers": [cell.seed]})
        add(store, cell, outcome=PROVED, proof=digest, epsilon=0.01, margin=2.5, regions=29, float32=1e-6)
    add(store, cells[2], outcome=BROKEN, word=WORD)
    add(store, cells[3], outcome=OPEN, covered=14, why="no cover closes")
    return store


def add(store: Store, cell: Cell, **told: object) -> None:
    record = store.read(cell)
    assert isinstance(record, TrainingRecord)
    found = ForEver(seed=0, weights="w", budget=60.0, seconds=3.0, **told)  # type: ignore[arg-type]
    store.write(record.with_evaluations([found]))


def made(store: Store) -> Page:
    return page(folder.read(store.folder), "Parity", "statetrack report")


def table(of: Page, key: str) -> Table | None:
    return next((each for each in of.tables if each.key == key), None)


def test_the_table_says_what_is_claimed_and_by_what(certified: Store) -> None:
    found = table(made(certified), "txc-for-ever")
    assert found is not None
    assert [row[3:] for row in found.rows] == [
        [PROVED, "epsilon 0.01, margin 2.5", 0.01, 2.5, 29, 3.0],
        [PROVED, "epsilon 0.01, margin 2.5", 0.01, 2.5, 29, 3.0],
        [BROKEN, "1 0^25 (26 tokens)", None, None, None, 3.0],
        [OPEN, "every word of up to 14 tokens is right", None, None, None, 3.0],
    ]


def test_without_its_proof_nothing_is_claimed(certified: Store) -> None:
    for path in certified.folder.glob("*.proof"):
        path.unlink()
    of = made(certified)
    found = table(of, "txc-for-ever")
    assert found is not None
    assert [row[3:5] for row in found.rows][:2] == [[MISSING, MISSING]] * 2
    assert [row[5] for row in found.rows][:2] == [None, None]
    said = " ".join(of.summary)
    assert "The proof of 2 networks is missing, so that nothing is claimed." in said
    assert "proved right for ever" not in said
    rows = {row["model"]: row for row in heat(of).rows}
    assert rows[GAIN]["mark"] is None


def test_the_summary_and_the_cells_say_so(certified: Store) -> None:
    of = made(certified)
    assert "2 networks are proved right for ever." in " ".join(of.summary)
    cells = table(of, "cells")
    assert cells is not None
    at = list(cells.headers).index("for ever")
    assert sorted(row[at] for row in cells.rows) == ["", "", BROKEN, OPEN, PROVED, PROVED]
    verdicts = table(of, "verdicts")
    assert verdicts is not None
    assert "2 proved for ever" in verdicts.html()
    assert "1 broken by a word such as 1 0^25" in verdicts.html()


def heat(of: Page) -> Figure:
    return next(each for each in of.figures if each.key == "txc-heat")


def test_cells_of_the_heat_map_have_a_mark_with_a_legend(certified: Store) -> None:
    found = heat(made(certified))
    marks = {row["model"]: (row.get("mark"), row.get("for_ever")) for row in found.rows}
    assert marks == {
        GAIN: (PROVED, "2 of 2 proved as trained"),
        SMALL: (BROKEN, "1 of 2 broken by a word, 1 of 2 open"),
        "mlp": (None, None),
    }
    layer = found.spec["layer"][-1]
    assert layer["encoding"]["shape"]["scale"] == {"domain": [PROVED, BROKEN], "range": ["diamond", CROSS]}
    assert "A diamond: every network is proved as trained" in found.caption


def test_where_nobody_asked_the_page_is_as_it_was(tmp_path: Path) -> None:
    store = made_records.fill(tmp_path / "results", [Cell("txc", GAIN, 16, 0, made_records.DESIGN)])
    of = made(store)
    assert table(of, "txc-for-ever") is None
    assert "diamond" not in str(heat(of).spec)
    assert "diamond" not in heat(of).caption


@pytest.mark.parametrize(("standings", "told"), [
    ([], {}),
    (["", ""], {}),
    ([PROVED, PROVED], {"mark": PROVED, "for_ever": "2 of 2 proved as trained"}),
    ([PROVED, ""], {"mark": None, "for_ever": "1 of 2 proved as trained"}),
    ([PROVED, MISSING], {"mark": None, "for_ever": "1 of 2 proof missing, 1 of 2 proved as trained"}),
])  # fmt: skip
def test_a_mark_speaks_of_every_network_of_a_cell(standings: list[str], told: dict[str, object]) -> None:
    assert for_ever_of(standings) == told


@pytest.mark.needs("torch")
def test_diagnose_says_it_in_words(certified: Store, capsys: pytest.CaptureFixture[str]) -> None:
    cells = [Cell("txc", model, 16, 0, made_records.DESIGN) for model in (GAIN, SMALL, "mlp")]
    made_records.diagnose(certified.folder, cells)
    keys = [f"--key={cell.key}" for cell in cells]
    assert main(["diagnose", str(certified.folder), *keys]) == 0
    said = capsys.readouterr().out
    assert said.count("  Proved as trained: right after every word") == 1
    assert said.count("  Broken by the word 1 0^25 (26 tokens): it answers 0, right is 1.") == 1


def test_the_diagnosis_is_followed_by_what_is_known_for_ever(certified: Store) -> None:
    cell = Cell("txc", GAIN, 16, 0, made_records.DESIGN)
    made_records.diagnose(certified.folder, [cell])
    found = next(each for each in made(certified).tables if each.key == "txc-findings")
    assert "Proved as trained: right after every word, for ever" in found.rows[0][-1]
