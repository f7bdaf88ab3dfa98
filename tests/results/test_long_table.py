"""The long table: a row for each network and thing that it was tested on, with the numbers that its record holds."""

from __future__ import annotations

import csv
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from statetrack.cli import main
from statetrack.errors import MissingExtra
from statetrack.results import AskedRecord, Cell, EvaluatedRecord, Record, Store, TrainingRecord
from statetrack.results.evaluations import AllStrings, BreakingWord, OffData, OnRows, OnStream, OnWords, Power
from statetrack.results.long_table import COLUMNS, long_rows, to_pandas
from statetrack.results.records import EpisodeRecord, Training, Weights, no_result
from statetrack.verdicts import measurements

CELL = Cell("txc", "gru", 8, 3, {"name": "curriculum"})
WORD = BreakingWord(parts=(Power([1]), Power([0], 22)), family="u v^k", expected=1, given=0)
EVALUATIONS = (
    OnRows(length=8, seed=3, rows=256, n=2048, accuracy=1.0, interval=[0.98, 1.0], last_32_accuracy=1.0,
           last_32_interval=[0.98, 1.0], tail_accuracy=1.0, floor=0.5, floor_exact=True),
    OnRows(length=16, seed=3, rows=256, n=4096, accuracy=0.75, interval=[0.7, 0.8], last_32_accuracy=0.75,
           last_32_interval=[0.7, 0.8], floor=0.5),
    OnRows(length=32, seed=3, reason="it has 16 positions"),
    OnStream(steps=2048, seed=3, rows=64, positions=1024, accuracy={"16": 0.7, "1024": 0.5, "2048": 0.5}),
    OffData(length=8, seed=3, accuracy={"all zeros": 1.0, "alternating": 0.25}, mean=0.6, worst=0.25),
    AllStrings(length=8, seed=3, strings=256, accuracy=0.9, full_sequence_accuracy=0.8),
    OnWords(seed=3, budget=10**6, words=40, tokens=900, longest=128, wrong=10, breaking=WORD),
    OnRows(length=64, seed=4, rows=256, accuracy=0.1, other_weights=True),
)  # fmt: skip
TRAINED = TrainingRecord(
    cell=CELL, training=Training(learning_rate=1e-3, steps=9, parameters=77, state_size=4), evaluations=EVALUATIONS
)  # fmt: skip
EPISODE = EpisodeRecord(ended="wrong", max_length=3, asked=20, outcomes="+++x", positions=[1, 2, 3, 4], changes="-010",
                        replies=["a", "b", "c", "d"], tokens={})  # fmt: skip
ASKED = AskedRecord(cell=Cell("txc", "hf:m, implicit", 20, 5, {"name": "ask"}), episode=EPISODE)


def rows(*records: Record) -> list[dict[str, object]]:
    return long_rows(records, measurements.tested)


def test_a_network_has_a_row_for_each_thing_that_it_was_tested_on() -> None:
    told = rows(TRAINED)
    assert all(list(row) == list(COLUMNS) for row in told)
    assert {(row["key"], row["task"], row["model"], row["trained"], row["seed"]) for row in told} == {
        (CELL.key, "txc", "gru", 8, 3)
    }
    seen = [(row["of"], row["tested"], row["case"], row["accuracy"]) for row in told]
    assert seen == [
        ("rows", 8, None, 1.0), ("rows", 16, None, 0.75), ("stream", 1024, None, 0.5), ("stream", 2048, None, 0.5),
        ("rows", 32, None, None), ("off data", 8, "all zeros", 1.0), ("off data", 8, "alternating", 0.25),
        ("all strings", 8, None, 0.9), ("words", 128, None, 0.75),
    ]  # fmt: skip
    here, beyond, along = told[:3]
    assert (here["low"], here["high"], here["floor"], here["solved"], here["rows"]) == (0.98, 1.0, 0.5, True, 256)
    assert (beyond["end_accuracy"], beyond["end_low"], beyond["solved"]) == (0.75, 0.7, False)
    assert along["end_floor"] == pytest.approx(0.5)  # worked out from the task, as in the report
    assert told[4]["reason"] == "it has 16 positions"
    assert (told[-1]["broken_by"], told[-1]["wrong"], told[-1]["rows"]) == ("1 0^22", 10, 40)


def test_every_kind_of_record_is_there() -> None:
    brought = EvaluatedRecord(
        cell=Cell("txc", "theirs", 0, 0, {"name": "evaluate", "weights": "ab"}),
        weights=Weights(sha256="ab", parameters=5), evaluations=(replace(EVALUATIONS[1], seed=0),),
    )  # fmt: skip
    failed = no_result(replace(CELL, seed=9), "failed", "out of memory")
    cut = replace(ASKED, cell=replace(ASKED.cell, seed=6), status="failed", reason="server")
    told = rows(failed, cut, ASKED, brought)
    assert [(row["model"], row["of"], row["trained"], row["status"]) for row in told] == [
        ("gru", None, 8, "failed"), ("hf:m, implicit", "dialogue", None, "done"),
        ("hf:m, implicit", "dialogue", None, "failed"), ("theirs", "rows", None, "done"),
    ]  # fmt: skip
    assert told[0]["reason"] == "out of memory"
    assert (told[1]["accuracy"], told[1]["n"], told[1]["max_length"]) == (0.75, 4, 3)
    assert (told[2]["accuracy"], told[2]["max_length"]) == (None, None)  # what was cut off is in no mean
    assert (told[3]["parameters"], told[3]["accuracy"]) == (5, 0.75)


@pytest.mark.needs("pandas")
def test_in_pandas_every_column_has_its_type() -> None:
    frame = to_pandas(rows(TRAINED, ASKED))
    assert list(frame) == list(COLUMNS)
    assert {str(frame[name].dtype) for name in ("trained", "tested", "n", "max_length")} == {"Int64"}
    assert str(frame["accuracy"].dtype) == "float64"
    assert list(frame[frame.solved].tested) == [8]
    means = frame[frame.of == "rows"].groupby("tested").accuracy.mean()
    assert dict(means.dropna()) == {8: 1.0, 16: 0.75}
    assert list(to_pandas([])) == list(COLUMNS)


def test_a_missing_pandas_is_named_with_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"to_pandas\(\) needs pandas: pip install .*\[notebook\]'"):
        to_pandas([])


@pytest.mark.needs("pyarrow")
def test_the_command_writes_it_and_keeps_the_wide_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow.parquet as pq

    folder = tmp_path / "out"
    store = Store(folder)
    for record in (TRAINED, ASKED):
        store.write(record)
    assert main(["results", str(folder), "--long", "--csv", str(tmp_path / "a.csv"),
                 "--parquet", str(tmp_path / "a.parquet")]) == 0  # fmt: skip
    assert capsys.readouterr().out.splitlines() == [f"{tmp_path}/a.csv: 10 rows", f"{tmp_path}/a.parquet: 10 rows"]
    read = list(csv.DictReader((tmp_path / "a.csv").open()))
    assert [row["of"] for row in read].count("rows") == 3
    assert read[0]["accuracy"] == "1.0"
    kept = pq.read_table(tmp_path / "a.parquet")
    assert kept.column("tested").to_pylist() == [row["tested"] for row in rows(TRAINED, ASKED)]
    assert str(kept.schema.field("note").type) == "string"  # though it is empty
    assert main(["results", str(folder), "--csv", "-"]) == 0
    wide = capsys.readouterr().out.splitlines()
    assert len(wide) == 3
    assert wide[0].startswith("key,task,subject,length,seed,protocol,note,status,reason,")
    assert main(["results", str(folder), "--long"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 11
    assert shown[1].split()[:7] == ["txc", "gru", "curriculum", "8", "3", "rows", "8"]
