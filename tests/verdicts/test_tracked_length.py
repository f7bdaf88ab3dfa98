"""How far models keep track, and whether a task tells them apart, on records made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from statetrack.results import Cell, TrainingRecord
from statetrack.results.evaluations import OnRows, OnStream
from statetrack.results.records import Training
from statetrack.verdicts.judge import judge, results, sentences
from statetrack.verdicts.tracked_length import TrackedLength, ends, reach, separation

TRAINING = Training(learning_rate=1e-3, steps=1, parameters=1)


def trained(subject: str, by_length: dict[int, float], seed: int = 0, task: str = "txc", **more: Any) -> TrainingRecord:
    """Trained at the first of these lengths, with this accuracy everywhere in rows of each."""
    first, *_ = by_length
    rows = [
        OnRows(length=length, seed=seed, rows=1024, n=1024 * length, accuracy=share, interval=[share - 0.01, share],
               last_32_accuracy=share, tail_accuracy=share, floor=0.5, floor_exact=True)
        for length, share in by_length.items()
    ]  # fmt: skip
    along = {str(mark): share for mark, share in more.items()}
    streams = [OnStream(steps=4096, seed=seed, rows=64, positions=1024, accuracy=along)] if along else []
    cell = Cell(task, subject, first, seed, {"name": "design"})
    return TrainingRecord(cell=cell, training=TRAINING, evaluations=(*rows, *streams))


def test_most_seeds_decide_how_far_a_model_is_right() -> None:
    right, lost = {64: 1.0, 128: 1.0, 1024: 1.0}, {64: 1.0, 128: 0.5, 1024: 0.5}
    two = [trained("gru", right, 0), trained("gru", right, 1), trained("gru", lost, 2)]
    assert reach(two) == TrackedLength(reach=1024, longest=1024, trained=64, lost_at=None, seeds=3, easy=False)
    one = [trained("gru", right, 0), trained("gru", lost, 1), trained("gru", lost, 2)]
    assert reach(one) == TrackedLength(reach=64, longest=1024, trained=64, lost_at=128, seeds=3, easy=False)
    assert reach([trained("gru", {64: 0.7})]).reach == 0
    assert reach([*one, trained("gru", {256: 1.0})]).trained == 256  # the best of the lengths trained on
    along = trained("gru", {64: 1.0}, **{"2048": 1.0, "4096": 0.9})
    assert (reach([along]).reach, reach([along]).lost_at) == (2048, 4096)
    assert reach([trained("gru", {64: 1.0, 1024: 1.0}, task="fsm")]).easy


def test_a_task_tells_models_with_a_state_apart_by_their_medians() -> None:
    far = {64: 1.0, 1024: 1.0}
    models = [trained("gru", far, seed) for seed in range(3)]
    models += [trained("lstm", {64: 1.0, 1024: share}, seed) for seed, share in enumerate((0.5, 0.8, 1.0))]
    mlp = trained("mlp", {64: 0.5, 1024: 0.5})
    found = separation([*models, mlp])
    assert found is not None
    assert (found.trained, found.tested, found.models, found.best, found.worst) == (64, 1024, 2, 1.0, 0.8)
    assert found.apart
    assert found.floor == pytest.approx(0.5)
    assert ends(models[3:]) == {64: 1.0, 1024: 0.8}
    alike = separation([trained("gru", far), trained("lstm", far), mlp])
    assert alike is not None
    assert not alike.apart
    assert alike.room
    assert separation([trained("gru", far), mlp]) is None
    assert separation([trained("gru", far), trained("lstm", {32: 1.0})]) is None


def test_numbers_that_cannot_be_judged_are_named_by_their_cell() -> None:
    good = [trained("gru", {64: 1.0, 512: 1.0}, seed) for seed in range(3)]
    bad = trained("lstm", {64: -0.5})
    own = trained("mine.py:Net", {64: 1.0})
    found, refused = results([*good, bad, own])
    assert {one.model for one in found} == {"gru"}
    assert list(refused) == [bad.cell]
    judged = judge("gru", "txc", found)
    assert set(judged.verdicts) == {"weights", "training"}
    assert judge("mine.py:Net", "txc", found).predictions == {}
    assert judge("gru", "automaton[file=gone.yaml]", found).predictions == {}
    assert sentences(found) == []  # the documents name no gru
    named, _ = results([trained("e88-1l", {64: 0.5}, seed) for seed in range(3)])
    assert [each for each in sentences(named) if each.measured]
