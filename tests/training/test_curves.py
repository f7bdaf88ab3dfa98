"""The curve of a training: in the record, through a callback, after a kill; and nothing of it changes the training."""

from __future__ import annotations

import math
import random
import time
from dataclasses import FrozenInstanceError, asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from statetrack.errors import BadInput
from statetrack.results.curve import MOST_POINTS, kept
from statetrack.training import TrainingCheck, checkpoint, loop, train, train_many
from statetrack.training.curves import curve_of
from statetrack.training.protocol import PROTOCOLS, Progress

SHORT = {"check_every": 5, "most_checks": 2, "polish": 10, "batch": 8, "warmup": 0, "validation_rows": 16}
MODEL = "mlp[hidden=8]"


def same_weights(one, other) -> bool:
    first, second = one.state_dict(), other.state_dict()
    return all(torch.equal(first[name], second[name]) for name in first)


def test_a_callback_is_told_what_the_record_keeps() -> None:
    told: list[TrainingCheck] = []
    settings = {**SHORT, "rates": (1e-3, 3e-3)}
    results = train_many("txc", MODEL, length=16, seeds=[3, 4], settings=settings, callback=told.append)
    assert {(check.seed, check.rate) for check in told} == {(seed, rate) for seed in (3, 4) for rate in (1e-3, 3e-3)}
    for result in results:
        training, curve = result.record.training, result.record.training.curve
        own = [check for check in told if (check.seed, check.rate) == (result.cell.seed, training.learning_rate)]
        assert curve.updates == [check.update for check in own] == list(range(5, training.steps + 1, 5))
        assert curve.lengths == [check.length for check in own] == [4] * 2 + [8] * 2 + [16] * 4
        assert [(check.stage, check.stages) for check in own] == [(1, 3)] * 2 + [(2, 3)] * 2 + [(3, 3)] * 4
        for name in ("loss", "accuracy", "gradient_norm"):
            assert getattr(curve, name) == pytest.approx([getattr(check, name) for check in own], rel=1e-5)
            assert all(math.isfinite(value) for value in getattr(curve, name))
        assert [check.done for check in own] == [False] * 7 + [True]
        best = [check.accuracy for check in own if check.best]
        assert best[-1] == training.validation_accuracy
        assert own[-1].loss == training.final_train_loss
        assert all(type(value) in (int, float, bool, type(None)) for value in asdict(own[0]).values())
        with pytest.raises(FrozenInstanceError):
            own[0].loss = 0.0


def test_the_norm_is_the_mean_over_the_updates_since_the_last_check(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, norms = loop.Stepper.__call__, []

    def watched(self, *given):
        told = honest(self, *given)
        norms.append(float(told[1, 0]))
        return told

    monkeypatch.setattr(loop.Stepper, "__call__", watched)
    curve = train("txc", MODEL, length=4, settings=SHORT).record.training.curve
    assert curve.gradient_norm == pytest.approx(np.reshape(norms, (-1, 5)).mean(1).tolist(), rel=1e-5)


def test_a_callback_changes_no_bit_of_the_training() -> None:
    def meddles(check: TrainingCheck) -> None:
        torch.manual_seed(check.update)
        torch.rand(7)
        np.random.rand(7)
        random.random()

    alone = train("txc", MODEL, length=8, settings=SHORT)
    heard = train("txc", MODEL, length=8, settings=SHORT, callback=meddles)
    assert same_weights(alone.model, heard.model)
    assert alone.record.training.curve == heard.record.training.curve
    assert alone.record.evaluations == heard.record.evaluations


def test_the_seconds_of_a_callback_are_not_those_of_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    lost, honest = [0.0], time.monotonic
    monkeypatch.setattr("time.monotonic", lambda: honest() + lost[0])

    def slow(check: TrainingCheck) -> None:
        lost[0] += 1000.0  # as if it had waited for a server

    training = train("txc", MODEL, length=4, settings=SHORT, words=0, callback=slow).record.training
    assert training.train_seconds is not None
    assert training.train_seconds < 1000
    assert lost[0] >= 3000


class Dropping(torch.nn.Module):
    """A model of somebody's own that draws in training."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.drop, self.head = torch.nn.Embedding(2, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 2)

    def forward(self, ids):
        return self.head(self.drop(self.table(ids)))


def test_nor_of_that_of_a_model_which_draws() -> None:
    def meddles(check: TrainingCheck) -> None:
        torch.manual_seed(7)
        torch.rand(check.update)

    def trained(**how):
        torch.manual_seed(0)
        return train("txc", Dropping(), length=8, settings=SHORT, words=0, **how)

    alone, heard = trained(), trained(callback=meddles)
    assert same_weights(alone.model, heard.model)
    assert alone.record.training.curve == heard.record.training.curve


def fails_at(update: int, told: list[TrainingCheck]):
    def logger(check: TrainingCheck) -> None:
        told.append(check)
        if check.update == update:
            raise ConnectionError("no route\nto the server")

    return logger


def test_what_a_callback_raises_is_its_own_and_the_run_goes_on_from_there(tmp_path: Path) -> None:
    told: list[TrainingCheck] = []
    said = r"your callback fails_at.<locals>.logger failed at update 15 of seed 0: ConnectionError: no route to the "
    said += r"server; the checkpoint .*safetensors is kept, and the next call goes on from it$"
    with pytest.raises(BadInput, match=said) as caught:
        train("txc", MODEL, length=8, settings=SHORT, out=tmp_path, callback=fails_at(15, told))
    assert isinstance(caught.value.__cause__, ConnectionError)
    again = train("txc", MODEL, length=8, settings=SHORT, out=tmp_path, callback=told.append)
    assert [check.update for check in told] == [5, 10, 15, 15, 20, 25, 30]  # the check that was not heard comes again
    assert told[2] == told[3]
    uncut = train("txc", MODEL, length=8, settings=SHORT)
    assert again.record.training.curve == uncut.record.training.curve
    assert same_weights(again.model, uncut.model)
    silent = train("txc", MODEL, length=8, settings=SHORT, out=tmp_path, callback=fails_at(5, told))  # it is there
    assert silent.record.training == again.record.training


def test_without_a_folder_a_failing_callback_says_that_nothing_was_kept() -> None:
    with pytest.raises(BadInput, match=r"no route to the server; nothing was kept: with out= the next call would go"):
        train("txc", MODEL, length=4, settings=SHORT, callback=fails_at(5, []))


def test_a_run_that_diverges_is_told_with_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = loop.batch_loss

    def poisoned(replicas, rows):
        step[0] += 1
        return honest(replicas, rows) * (float("nan") if step[0] == 8 else 1.0)

    step, told = [0], []
    monkeypatch.setattr(loop, "batch_loss", poisoned)
    record = train("txc", MODEL, length=4, settings=SHORT, callback=told.append).record
    assert [(check.update, check.done, check.diverged_at) for check in told] == [(5, False, None), (10, True, 8)]
    assert all(map(math.isnan, (told[1].loss, told[1].accuracy, told[1].gradient_norm)))
    assert record.training.curve.updates == [5]


def test_a_checkpoint_of_0_3_0_goes_on_without_the_norms_that_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        train("txc", MODEL, length=4, settings=SHORT, out=tmp_path, callback=fails_at(10, []))
    (saved,) = tmp_path.glob("*.checkpoint.safetensors")
    tensors, note = checkpoint.load(saved)
    for entry in note["progress"][0]["history"]:
        del entry["gradient_norm"]
    checkpoint.save(saved, tensors, note)
    curve = train("txc", MODEL, length=4, settings=SHORT, out=tmp_path).record.training.curve
    uncut = train("txc", MODEL, length=4, settings=SHORT).record.training.curve
    assert curve.gradient_norm == [None, None, *uncut.gradient_norm[2:]]
    assert curve.loss == uncut.loss


@given(stages=some.lists(some.integers(1, 400), min_size=1, max_size=12), seed=some.integers(0, 9))
def test_thinning_keeps_the_ends_the_best_and_every_change_of_length(stages: list[int], seed: int) -> None:
    progress = Progress(PROTOCOLS["curriculum"], 1e-3, [2**n for n in range(len(stages))])
    chance = np.random.default_rng(seed)
    lengths = [2**stage for stage, checks in enumerate(stages) for _ in range(checks)]
    progress.history = [
        {"step": 50 * (at + 1), "length": length, "loss": 1.0, "accuracy": float(chance.random()), "gradient_norm": 2.0}
        for at, length in enumerate(lengths)
    ]
    curve = curve_of(progress)
    accuracy = [entry["accuracy"] for entry in progress.history]
    assert len(curve.updates) == min(MOST_POINTS, len(lengths))
    assert curve.problem() is None
    assert (curve.updates[0], curve.updates[-1]) == (50, 50 * len(lengths))
    assert 50 * (int(np.argmax(accuracy)) + 1) in curve.updates
    for at in range(1, len(lengths)):
        if lengths[at] != lengths[at - 1]:
            assert {50 * at, 50 * (at + 1)} <= set(curve.updates)
    held = dict(zip(curve.updates, curve.accuracy))
    assert all(held[update] == pytest.approx(accuracy[update // 50 - 1], rel=1e-5) for update in held)
    gaps = np.diff([0, *(update // 50 for update in curve.updates)])
    assert gaps.max() <= math.ceil(len(lengths) / (MOST_POINTS - 2 * len(stages) - 3)) + 2


def test_a_short_curve_is_kept_whole() -> None:
    assert kept([4] * MOST_POINTS, [0.0] * MOST_POINTS) == list(range(MOST_POINTS))


@pytest.mark.needs("tensorboard")
def test_tensorboard_reads_back_what_its_writer_was_told(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:

        def log(check: TrainingCheck) -> None:
            for name in ("loss", "accuracy", "gradient_norm", "length"):
                writer.add_scalar(f"seed {check.seed}/{name}", getattr(check, name), check.update)

        results = train_many("txc", MODEL, length=8, seeds=[0, 1], settings=SHORT, callback=log)
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    for result in results:
        curve = result.record.training.curve
        columns = {"loss": curve.loss, "accuracy": curve.accuracy, "gradient_norm": curve.gradient_norm}
        for name, column in {**columns, "length": curve.lengths}.items():
            read = events.Scalars(f"seed {result.cell.seed}/{name}")
            assert [event.step for event in read] == curve.updates
            assert [event.value for event in read] == pytest.approx(column, rel=1e-5)
