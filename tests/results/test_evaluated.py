"""Weights that were brought and evaluated: their record is kept, united and told apart from that of a training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from statetrack.results import Cell, EvaluatedRecord, Store, TrainingRecord, merge, records, status
from statetrack.results.cell import EVALUATE, TRAIN
from statetrack.results.check import check
from statetrack.results.evaluations import OnRows, OnStream
from statetrack.results.records import Training, Weights, unite
from statetrack.results.schema import BadRecord
from statetrack.results.store import add
from statetrack.results.table import rows

HASH = "ab" * 32
BROUGHT = Cell("txc", "gru[hidden=32]", 0, 3, {"name": EVALUATE, "weights": HASH})


def on_rows(length: int, accuracy: float = 1.0) -> OnRows:
    return OnRows(length=length, seed=3, rows=16, n=16 * length, accuracy=accuracy, interval=[0.8, 1.0], floor=0.5)


def evaluated(*evaluations: OnRows | OnStream) -> EvaluatedRecord:
    weights = Weights(sha256=HASH, parameters=10, file="theirs.safetensors")
    return EvaluatedRecord(cell=BROUGHT, weights=weights, evaluations=evaluations or (on_rows(64),))


def test_a_record_comes_back_as_it_was_and_is_no_training(tmp_path: Path) -> None:
    Store(tmp_path).write(evaluated())
    (found,) = Store(tmp_path).records()
    assert found == evaluated()
    assert not isinstance(found, TrainingRecord)
    assert (BROUGHT.kind, str(BROUGHT)) == (EVALUATE, "txc, gru[hidden=32], weights abababab, seed 3")
    assert replace(BROUGHT, protocol={"name": "curriculum"}).kind == TRAIN
    (row,) = rows(Store(tmp_path), {})
    assert row["weights.sha256"] == HASH
    assert row["length_generalisation.64.accuracy"] == 1.0
    assert "accuracy" not in row
    assert "learning_rate" not in row


def test_evaluations_are_united_and_a_difference_is_a_conflict(tmp_path: Path) -> None:
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    here.write(evaluated(on_rows(64)))
    there.write(evaluated(on_rows(64), on_rows(128)))
    joined = merge([tmp_path / "there"], tmp_path / "here")
    assert (joined.kept, joined.evaluations, joined.conflicts) == (1, 1, [])
    kept = here.read(BROUGHT)
    assert isinstance(kept, EvaluatedRecord)
    assert list(kept.rows) == [64, 128]
    Store(tmp_path / "other").write(evaluated(on_rows(64, 0.5)))
    assert [each.what for each in merge([tmp_path / "other"], tmp_path / "here").conflicts] == [
        "accuracy of the evaluation rows 64 3 16"
    ]


def test_what_others_added_meanwhile_stays(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add(store, evaluated(on_rows(64)))
    add(store, evaluated(on_rows(128)))
    kept = store.read(BROUGHT)
    assert isinstance(kept, EvaluatedRecord)
    assert list(kept.rows) == [64, 128]
    assert status(store).counts["done"] == 1
    assert check(store).to_dict() == {
        "damaged": [], "conflicts": [], "stale": [], "foreign": [], "records": 1, "weights": 0,
            "proofs": 0,
    }  # fmt: skip


def test_neither_can_be_taken_for_the_other() -> None:
    trained = Training(learning_rate=1e-3, steps=5, parameters=10)
    with pytest.raises(BadRecord, match="weights that were brought here have no training"):
        records.write(TrainingRecord(cell=BROUGHT, training=trained, evaluations=(on_rows(0),)))
    with pytest.raises(BadRecord, match="its cell names other weights"):
        records.write(replace(evaluated(), cell=replace(BROUGHT, protocol={"name": "curriculum"})))
    with pytest.raises(BadRecord, match="its cell names other weights"):
        records.write(replace(evaluated(), weights=Weights(sha256="cd" * 32, parameters=10)))
    with pytest.raises(BadRecord, match="a result without a number"):
        records.write(replace(evaluated(), evaluations=()))
    assert unite(evaluated(on_rows(64)), evaluated(on_rows(128))).evaluations == (on_rows(64), on_rows(128))


def test_it_may_be_solved_at_each_length_for_itself() -> None:
    """Nobody knows at which length it was trained."""
    short, long = replace(on_rows(8, 0.5), last_32_accuracy=0.5), replace(on_rows(64), last_32_accuracy=1.0)
    stream = OnStream(steps=1024, seed=3, rows=64, positions=1024, accuracy={"1024": 1.0})
    told = evaluated(short, long, stream).tested()
    assert [(one.length, one.of, one.solved) for one in told] == [
        (8, "rows", False), (64, "rows", True), (1024, "stream", True)
    ]  # fmt: skip
