"""Hard words in a record: the shortest one counts, of these weights alone; records without them stay as they are."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from statetrack.cli import main
from statetrack.reports import folder, tables
from statetrack.results import Cell, Store, TrainingRecord, merge, records
from statetrack.results.evaluations import BreakingWord, OnWords, Power
from statetrack.results.schema import BadRecord
from tests.sweeps.counted_cells import made

CELL = Cell("t", "s", 4, 0, {})


def word(zeros: int, **more: Any) -> BreakingWord:
    return BreakingWord(**{"parts": (Power([1]), Power([0], zeros)), "family": "f", "expected": 1, "given": 0} | more)


def tried(budget: int, breaking: BreakingWord | None = None, **more: Any) -> OnWords:
    numbers = {
        "seed": 0,
        "budget": budget,
        "words": 7,
        "tokens": budget - 1,
        "longest": 64,
        "wrong": int(bool(breaking)),
    }
    return OnWords(**numbers | {"breaking": breaking} | more)


@pytest.mark.parametrize(
    ("parts", "text", "symbols"),
    [
        ([([1], 1), ([0], 3)], "1 0^3", [1, 0, 0, 0]),
        ([([4, 5], 2), ([4], 1)], "(4 5)^2 4", [4, 5, 4, 5, 4]),
        ([([7, 7, 1], 1)], "7 7 1", [7, 7, 1]),
    ],
)
def test_a_word_is_written_with_powers(parts: Any, text: str, symbols: list[int]) -> None:
    found = word(1, parts=tuple(Power(*part) for part in parts))
    assert (found.word, found.symbols, found.tokens) == (text, symbols, len(symbols))


def test_of_several_evaluations_the_shortest_word_and_the_most_tokens_are_told() -> None:
    record = made(CELL)
    assert (record.words, record.broken, "words" in record.flat()) == (None, None, False)
    record = record.with_evaluations([tried(100, word(22)), tried(900, word(30)), tried(400)])
    assert record.words == tried(900, word(30))
    assert [each.broken_by for each in (made(CELL), made(CELL).with_evaluations([tried(9)]), record)] == [
        "",
        "-",
        "1 0^22",
    ]
    assert record.broken == word(22)
    assert record["words"] == {
        "how": "families", "budget": 900, "words": 7, "tokens": 899, "longest": 64, "wrong": 1,
        "broken_by": "1 0^22", "broken_tokens": 23, "broken_expected": 1, "broken_given": 0, "broken_family": "f",
    }  # fmt: skip


def test_what_other_weights_answer_breaks_nothing(tmp_path: Path) -> None:
    record = made(CELL)
    other = replace(record, training=replace(record.training, steps=2))
    for name, each in (("a", record.with_evaluations([tried(9)])), ("b", other.with_evaluations([tried(8, word(3))]))):
        Store(tmp_path / name).write(each)
    merge([tmp_path / "b"], tmp_path / "a")
    found = Store(tmp_path / "a").read(CELL)
    assert isinstance(found, TrainingRecord)
    assert (found.words, found.broken) == (tried(9), None)
    assert len([each for each in found.evaluations if isinstance(each, OnWords)]) == 2


def test_where_the_network_could_not_be_run_nothing_was_tried() -> None:
    record = made(CELL).with_evaluations([OnWords(seed=0, budget=9, reason="out of memory")])
    assert (record.words, record.broken) == (None, None)
    assert record.with_evaluations([tried(9)]).words == tried(9)  # numbers take the place of a reason


def test_the_long_table_has_them(tmp_path: Path) -> None:
    Store(tmp_path / "a").write(made(CELL).with_evaluations([tried(100, word(22, given=None))]))
    assert main(["results", str(tmp_path / "a"), "--csv", str(tmp_path / "a.csv")]) == 0
    with (tmp_path / "a.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["words.broken_by"], row["words.broken_tokens"], row["words.broken_given"]) == ("1 0^22", "23", "")


def test_the_report_has_them(tmp_path: Path) -> None:
    cells = [replace(CELL, task="txc", subject="mlp", seed=seed, protocol={"name": "design"}) for seed in range(3)]
    for cell, more in zip(cells, ([], [tried(9)], [tried(100, word(22))])):
        Store(tmp_path).write(made(cell).with_evaluations(more))
    table = tables.cells(folder.read(tmp_path))
    columns = [table.headers.index(name) for name in ("seed", "broken by", "version")]
    assert sorted([row[place] for place in columns] for row in table.rows) == [
        [0, "", "test"], [1, "-", "test"], [2, "1 0^22", "test"]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (tried(9, wrong=8), "more words are wrong than were tried"),
        (tried(9, word(3, given=1)), "a word that breaks a network is answered wrong"),
        (tried(9, word(3), wrong=0), "a word that breaks a network is answered wrong"),
        (tried(9, word(0)), "a breaking word has symbols"),
        (tried(9, word(3, parts=())), "a breaking word has symbols"),
    ],
)
def test_what_cannot_be_is_refused(wrong: OnWords, said: str) -> None:
    with pytest.raises(BadRecord, match=said):
        records.write(made(CELL).with_evaluations([wrong]))
