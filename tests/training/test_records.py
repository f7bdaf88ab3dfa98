"""The numbers of a record against a second computation, and what a kill between two records leaves."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import statetrack as st
from statetrack.errors import BadInput
from statetrack.models import SequenceModel
from statetrack.theory import floors
from statetrack.training import evaluate, loop, train, train_many
from statetrack.training import run as training
from statetrack.training.evaluate import Evaluator, pass_rows
from statetrack.training.metrics import row_interval
from statetrack.training.protocol import PROTOCOLS, Progress

SHORT = {"check_every": 5, "most_checks": 1, "polish": 5, "batch": 4, "warmup": 0, "validation_rows": 16}


class Copy(SequenceModel):
    """Answers with the input; so it is known by hand where it is right."""

    def __init__(self) -> None:
        super().__init__(2, 2)
        self.weight = torch.nn.Parameter(torch.eye(2))

    def state_shapes(self):
        return []

    def forward_from(self, ids, state):
        return self.weight[ids], ()


@pytest.mark.parametrize("p", [0.1, 0.5, 1.0])
def test_exact_weighs_a_string_by_its_chance(p):
    task, length = st.task(f"txc[p={p}]"), 5
    got = Evaluator(task, Copy(), length, 0).exhaustive()
    hits = whole = 0.0
    for string in itertools.product((0, 1), repeat=length):
        right = task.targets([string])[0] == string
        chance = np.prod([p if bit else 1 - p for bit in string])
        hits, whole = hits + chance * right.mean(), whole + chance * right.all()
    assert got is not None
    assert got.strings == 32
    assert (got.accuracy, got.full_sequence_accuracy) == (pytest.approx(hits), pytest.approx(whole))


@pytest.mark.parametrize("steps", [700, 1024, 2048, 2500])
def test_a_stream_of_any_length_ends_with_its_last_1024_positions(steps):
    task = st.task("txc")
    got = Evaluator(task, Copy(), 64, 3).stream(steps)
    batch = task.sample(steps, evaluate.STREAM_ROWS, 3, "test")
    last = slice(max(0, steps - 1024), None)
    assert (got.steps, got.positions) == (steps, min(1024, steps))
    assert got.accuracy[str(steps)] == (batch.inputs == batch.targets)[:, last].mean()


class Explodes(SequenceModel):
    """As Copy, beside a number that grows tenfold a step and is subtracted from itself: from 10^39 on that is NaN."""

    def __init__(self) -> None:
        super().__init__(2, 2)
        self.weight = torch.nn.Parameter(torch.eye(2))

    def state_shapes(self):
        return [(1,)]

    def forward_from(self, ids, state):
        size = 10.0 ** torch.arange(1, ids.shape[1] + 1) * (1 + state[0])
        return self.weight[ids] + (size - size).unsqueeze(-1), (size[:, -1:],)


def test_what_is_not_a_number_is_no_answer_and_wrong():
    """torch's argmax calls it class 0, which is right at half of the positions."""
    task = st.task("txc")
    evaluator = Evaluator(task, Explodes(), 20, 3)
    assert evaluator.at_length().unanswered == 0
    beyond = evaluator.beyond(80)
    batch = task.sample(80, beyond.rows, 3, "test")
    assert beyond.unanswered == (80 - 38) / 80
    assert beyond.accuracy == (batch.inputs == batch.targets)[:, :38].sum() / batch.inputs.size
    assert beyond.last_32_accuracy == 0
    stream = evaluator.stream(2048)
    assert (stream.accuracy["2048"], stream.unanswered["2048"]) == (0, 1)
    assert stream.unanswered["1024"] == (1024 - 38) / 1024


def test_weights_whose_answers_are_not_numbers_are_not_the_best():
    class Both(torch.nn.Module):
        def forward(self, ids):
            return torch.stack([Explodes()(part) for part in ids])

    run = SimpleNamespace(
        replicas=Both(), task=st.task("txc"), seeds=[0, 1], device=torch.device("cpu"),
        progress=[SimpleNamespace(protocol=PROTOCOLS["design"])],
    )  # fmt: skip
    right, _ = loop.validate(run, 64)
    assert right[:, :, :38].mean() > 0.4
    assert not right[:, :, 38:].any()


def test_a_record_says_how_sure_it_is_and_what_guessing_scores():
    result = train("fsm", "mlp[hidden=4]", length=40, settings=SHORT)
    record, task = result.record, st.task("fsm")
    assert record["floor_exact"] is True
    batch = task.sample(40, record["rows"], 0, "test")
    right = Evaluator(task, result.model, 40, 0).right(batch)
    assert record["tail_interval"] == list(row_interval(right[:, -10:], np.ones((len(right), 10), bool)))
    beyond = record["length_generalisation"]["80"]
    assert beyond["n"] == 80 * beyond["rows"]
    assert beyond["floor"] == floors(task, 80, window=1)["position"].average
    low, high = beyond["last_32_interval"]
    assert low <= beyond["last_32_accuracy"] <= high


def test_a_rate_that_diverges_has_no_validation_accuracy(monkeypatch):
    honest = loop.batch_loss

    def poisoned(replicas, rows):
        return honest(replicas, rows) * torch.tensor([1.0, float("nan")])

    monkeypatch.setattr(loop, "batch_loss", poisoned)
    record = train("txc", "mlp[hidden=4]", length=4, settings={**SHORT, "rates": (1e-3, 2e-3)}).record
    good, bad = record["rates_tried"]
    assert good["validation_accuracy"] == record["validation_accuracy"]
    assert bad == {"rate": 2e-3, "validation_accuracy": None, "diverged_at": 1}


def test_epochs_count_from_the_first_check_at_the_full_length():
    progress = Progress(PROTOCOLS["curriculum"], 1e-3, [4, 8])
    for length, accuracy in ((4, 0.9), (4, 1.0), (8, 0.6), (8, 0.8), (8, 0.8005)):
        progress.history.append({"step": 0, "length": length, "loss": 0.0, "accuracy": accuracy})
    assert training.epochs_to_converge(progress) == 2


class Killed(Exception):
    pass


def test_killed_while_testing_a_run_is_neither_trained_again_nor_left_behind(tmp_path, monkeypatch):
    def call(seeds):
        return train_many("txc", "mlp[hidden=4]", length=4, seeds=seeds, settings=SHORT, out=tmp_path)

    call([2])
    honest, measured = training.measure, []

    def killed_at_the_second(job, cell, *rest):
        if measured:
            raise Killed
        measured.append(cell.seed)
        return honest(job, cell, *rest)

    monkeypatch.setattr(training, "measure", killed_at_the_second)
    with pytest.raises(Killed):
        call([2, 1, 0])
    monkeypatch.setattr(training, "measure", honest)
    assert len(list(tmp_path.glob("*.checkpoint.safetensors"))) == 1
    monkeypatch.setattr(loop.Stepper, "__call__", None)  # a step would fail
    results = call([0, 1, 2])
    assert [r.cell.seed for r in results] == [0, 1, 2]
    assert [r.found for r in results] == [True, False, True]
    assert not list(tmp_path.glob("*.checkpoint.safetensors"))


def test_a_checkpoint_that_outlived_its_results_is_removed(tmp_path):
    def call():
        return train("txc", "mlp[hidden=4]", length=4, settings=SHORT, out=tmp_path)

    cell = call().cell
    left = training.checkpoint_path(training.Store(tmp_path), [cell])
    left.write_bytes(b"what a kill between the last record and the end leaves")
    assert call().found
    assert not left.exists()


def test_a_pass_is_bounded_by_its_logits(monkeypatch):
    cpu = torch.device("cpu")
    assert pass_rows(cpu, 8, 362_880) * 8 * 362_880 * 4 <= 2**30
    seen = []

    class Watched(Copy):
        def forward_from(self, ids, state):
            seen.append(ids.numel() if len(ids) > 1 else 1)  # a single row is always let through
            return super().forward_from(ids, state)

    monkeypatch.setitem(evaluate.PASS_LOGITS, "cpu", 2 * 24)
    train("txc", Watched(), length=4, settings=SHORT)
    assert max(seen) <= 24  # the check has 21, a step 16; validation would have 64


def test_validation_in_parts_is_validation_in_one(monkeypatch):
    def accuracy():
        return train("txc", "mlp[hidden=4]", length=4, seed=1, settings=SHORT).record["validation_accuracy"]

    whole = accuracy()
    monkeypatch.setitem(evaluate.PASS_LOGITS, "cpu", 24)
    assert accuracy() == whole


def test_memory_that_runs_out_while_building_is_one_line(monkeypatch):
    def full(*_):
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate much")

    monkeypatch.setattr(loop, "FlatParameters", full)
    with pytest.raises(BadInput, match=r"out of memory: 2 x mlp\[hidden=4\] at length 4 does not fit"):
        train_many("txc", "mlp[hidden=4]", length=4, seeds=[0, 1], settings=SHORT)


def test_an_evaluation_that_does_not_fit_is_made_in_smaller_passes(monkeypatch):
    honest, tried = Evaluator._predict, []

    def small_memory(self, inputs):
        tried.append(len(inputs))
        if len(inputs) > 100:
            raise torch.OutOfMemoryError("no more")
        return honest(self, inputs)

    def beyond():
        return Evaluator(st.task("txc"), Copy(), 8, seed=3).beyond(16)

    whole = beyond()
    monkeypatch.setattr(Evaluator, "_predict", small_memory)
    assert beyond() == whole
    assert max(tried) > 100  # else nothing was made smaller
    assert sum(rows for rows in tried if rows <= 100) == whole.rows


def test_an_evaluation_of_which_not_one_row_fits_says_so(monkeypatch):
    def no_memory(self, inputs):
        raise torch.OutOfMemoryError("no more")

    monkeypatch.setattr(Evaluator, "_predict", no_memory)
    found = Evaluator(st.task("txc"), Copy(), 8, seed=3).beyond(16)
    assert (found.accuracy, found.reason) == (None, "OutOfMemoryError: no more")
