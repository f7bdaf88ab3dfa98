"""What counts as solved: one definition, with the guess beside it, and the same in tables, reports and verdicts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from statetrack.results import Cell, Store, TrainingRecord, unpack
from statetrack.results.evaluations import OnRows, OnStream, beats_guess, is_solved
from statetrack.results.records import Training
from statetrack.results.table import rows
from statetrack.verdicts.measurements import from_record
from statetrack.verdicts.tracked_length import reach

ARCHIVES = Path(__file__).parents[2] / "docs" / "results"


@pytest.mark.parametrize(
    ("accuracy", "floor", "solved"),
    [
        (0.99, None, True), (0.9899, None, False), (None, None, False), (None, 0.5, False),
        (0.99, 0.5, True), (0.99, 0.98, True), (0.99, 0.981, False),  # half of the guess's errors, and a little more
        (0.9999, 0.9999, False), (1.0, 0.9999, True), (1.0, 1.0, True), (0.9999, 1.0, False),
        (1.0, 1.0000000002, True),  # a mean of shares, rounded
    ],
)  # fmt: skip
def test_solved_is_99_percent_and_at_most_half_of_the_errors_of_the_guess(accuracy, floor, solved):
    assert is_solved(accuracy, floor) is solved


def test_without_a_floor_the_guess_is_not_asked():
    assert beats_guess(0.3, None)
    assert not beats_guess(0.3, 0.3)


def on_rows(length: int, end: float, accuracy: float, floor: float | None = 0.5, tail: float | None = None) -> OnRows:
    return OnRows(length=length, seed=0, rows=1024, n=1024 * length, accuracy=accuracy, interval=[0.0, 1.0],
                  last_32_accuracy=end, last_32_interval=[0.0, 1.0], floor=floor, tail_accuracy=tail)  # fmt: skip


def trained(*found: OnRows, stream: dict[str, float] | None = None, task: str = "txc") -> TrainingRecord:
    along = [OnStream(steps=4096, seed=0, rows=64, positions=1024, accuracy=dict(stream))] if stream else []
    cell = Cell(task, "gru", found[0].length, 0, {"name": "design"})
    training = Training(learning_rate=1e-3, steps=1, parameters=1)
    return TrainingRecord(cell=cell, training=training, evaluations=(*found, *along))


def test_a_network_below_the_guess_has_solved_nothing_however_right_it_is_at_the_end():
    """An MLP on FSM at 64, as it was measured: right over the last quarter, where a guess is right as well."""
    found = trained(on_rows(64, end=0.9998, accuracy=0.9215, floor=0.9707, tail=1.0))
    assert not found.solved
    assert [one.solved for one in found.tested()] == [False]
    assert trained(on_rows(64, end=0.9998, accuracy=0.9860, floor=0.9707, tail=1.0)).solved
    assert trained(on_rows(64, end=0.9998, accuracy=0.9215, floor=None, tail=1.0)).solved


def test_one_error_in_thousands_where_a_guess_makes_none_does_not_count_against_a_network():
    by_position = [0.5] * 24 + [1.0] * 8
    here = on_rows(32, end=0.9994, accuracy=0.9994, floor=0.625, tail=0.9999)
    assert trained(replace(here, floor_by_position=by_position)).solved


def test_a_network_that_has_not_solved_the_length_trained_on_reaches_nothing(tmp_path):
    """All 12 positions are right to .991, the last three, which are the last quarter, to .96."""
    here, twice = on_rows(12, end=0.991, accuracy=0.991, tail=0.96), on_rows(24, end=0.995, accuracy=0.99)
    found = trained(here, twice, stream={"4096": 1.0})
    assert [(one.length, one.solved) for one in found.tested()] == [(12, False), (24, False), (4096, False)]
    assert [one.solved for one in from_record(found)] == [False, False, False]
    told = reach([found])
    assert (told.reach, told.lost_at, told.longest) == (0, None, 4096)
    store = Store(tmp_path)
    store.write(found)
    assert [row["solved"] for row in rows(store, {})] == [False]
    solved = trained(replace(here, tail_accuracy=0.99), twice, stream={"4096": 1.0})
    assert reach([solved]).reach == 4096


def test_a_shorter_length_than_that_trained_on_can_be_solved_alone():
    found = trained(on_rows(64, end=0.6, accuracy=0.8, tail=0.7), on_rows(16, end=1.0, accuracy=1.0))
    assert [(one.length, one.solved) for one in found.tested()] == [(16, True), (64, False)]
    assert reach([found]).reach == 0


def test_what_is_right_again_after_it_was_lost_is_not_reached():
    found = trained(on_rows(32, 1.0, 1.0, tail=1.0), on_rows(64, 0.9, 1.0), on_rows(128, 1.0, 1.0))
    assert (reach([found]).reach, reach([found]).lost_at) == (32, 64)


def test_along_a_stream_the_guess_at_the_end_is_asked():
    found = trained(on_rows(64, 1.0, 1.0, floor=0.97, tail=1.0), stream={"4096": 0.995})
    assert [one.solved for one in found.tested(lambda length: 0.999)] == [True, False]
    assert [one.solved for one in found.tested(lambda length: 0.9)] == [True, True]


def test_no_network_of_the_archives_is_solved_below_its_floor(tmp_path):
    """Thirty-three of the design sweep were: an MLP and a linear network without a bias, on FSM."""
    unpack(ARCHIVES / "design.tar.gz", tmp_path / "design")
    held = [one for one in Store(tmp_path / "design").records() if isinstance(one, TrainingRecord)]
    right_at_the_end = [one for one in held if is_solved(one.at_length.tail_accuracy)]
    refused = [one for one in right_at_the_end if not one.solved]
    assert {(one.cell.task, one.cell.subject) for one in refused} == {("fsm", "mlp"), ("fsm", "linear-rnn-nobias")}
    assert (len(right_at_the_end), len(refused)) == (516, 33)
