"""From a task and a model to a result: honest, repeatable, and not to be killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import statetrack as st
from statetrack.errors import BadInput
from statetrack.training import loop, train, train_many
from statetrack.training.run import pick_device

SHORT = {"check_every": 10, "most_checks": 2, "polish": 10, "batch": 16, "warmup": 5}


def weights(model):
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def test_a_replica_ends_as_it_would_alone():
    together = train_many("txc", "e88-gain-1l-small", length=16, seeds=[0, 1], settings=SHORT)
    for seed in (0, 1):
        alone = train("txc", "e88-gain-1l-small", length=16, seed=seed, settings=SHORT)
        for name, expected in weights(alone.model).items():
            torch.testing.assert_close(weights(together[seed].model)[name], expected, rtol=1e-3, atol=1e-4, msg=name)
        assert together[seed].record["steps"] == alone.record["steps"]


def test_parity_is_learned_at_eight():
    result = train("txc", "e88-gain-1l-small", length=8, seed=0, settings={"batch": 64, "polish": 50})
    assert result.solved
    assert result.record["exact"] == {"strings": 256, "accuracy": 1.0, "full_sequence_accuracy": 1.0}
    assert result.record["paired_crossing_accuracy"] == 1.0


def test_the_record_holds_what_the_document_asks_for_and_more():
    result = train("fsm", "linear-rnn", length=12, seed=3, settings=SHORT, stream=2048)
    record = result.to_dict()
    json.dumps(record, allow_nan=False)
    asked = {
        "accuracy", "interval", "n", "full_sequence_accuracy", "accuracy_by_position", "crossing_accuracy",
        "paired_crossing_accuracy", "final_train_loss", "epochs_to_converge", "parameters", "state_size",
        "tokens_per_second", "floor", "skill_by_position", "accuracy_at_end", "solved", "length_generalisation",
        "stream", "learning_rate", "off_distribution", "exact", "version", "cell", "train_seconds",
    }  # fmt: skip
    assert asked <= set(record)
    assert list(record["length_generalisation"]) == ["24", "48", "96", "192"]
    assert set(record["stream"]["accuracy"]) == {"1024", "2048"}
    assert len(record["accuracy_by_position"]) == 12
    assert record["cell"]["protocol"]["batch"] == 16
    assert set(record["off_distribution"]["accuracy"]) >= {"p=0.02", "all zeros", "one event, then silence"}


def test_the_accuracy_is_that_of_the_model_on_the_test_split():
    result = train("txc", "mlp", length=10, seed=5, settings=SHORT)
    batch = st.task("txc").sample(10, 1024, 5, "test")
    with torch.no_grad():
        predicted = result.model(torch.from_numpy(batch.inputs.astype(np.int64))).argmax(-1).numpy()
    assert result.accuracy == pytest.approx((predicted == batch.targets).mean())


def test_a_rate_is_chosen_on_validation():
    result = train("txc", "e88-gain-1l-small", length=8, seed=0, settings={**SHORT, "rates": (1e-9, 3e-3)})
    tried = {entry["rate"]: entry["validation_accuracy"] for entry in result.record["rates_tried"]}
    assert set(tried) == {1e-9, 3e-3}
    assert result.record["learning_rate"] == max(tried, key=tried.get)


def test_a_loss_that_is_no_number_is_named_with_its_step(monkeypatch):
    calls = {"n": 0}
    honest = loop.batch_loss

    def poisoned(replicas, rows):
        calls["n"] += 1
        return honest(replicas, rows) * (float("nan") if calls["n"] == 14 else 1.0)

    monkeypatch.setattr(loop, "batch_loss", poisoned)
    result = train("txc", "mlp", length=8, seed=0, settings=SHORT)
    assert result.record["status"] == "diverged"
    assert result.record["diverged_at"] == 14
    json.dumps(result.to_dict(), allow_nan=False)


def test_out_of_memory_says_the_batch_that_fits(monkeypatch):
    honest = loop.batch_loss

    def small_memory(replicas, rows):
        if rows.inputs.shape[1] > 5:
            raise torch.OutOfMemoryError("no more")
        return honest(replicas, rows)

    monkeypatch.setattr(loop, "batch_loss", small_memory)
    with pytest.raises(BadInput, match="batch of 16 rows of length 4; a batch of 4 fits: --set batch=4"):
        train("txc", "mlp", length=8, seed=0, settings=SHORT)


def test_a_second_run_does_nothing_and_seeds_are_cells_of_their_own(tmp_path, monkeypatch):
    first = train_many("txc", "mlp", length=8, seeds=[0, 1], settings=SHORT, out=tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(f"{r.cell.key}.{end}" for r in first for end in ("json", "safetensors"))
    monkeypatch.setattr(loop, "fit", None)
    again = train_many("txc", "mlp", length=8, seeds=[1, 0], settings=SHORT, out=tmp_path)
    assert [r.accuracy for r in again] == [r.accuracy for r in reversed(first)]


RUN = """
import sys
from statetrack.training import loop, train_many
loop.SAVE_SECONDS = 0.0
train_many("txc", "e88-gain-1l-small", length=16, seeds=[0, 1], out=sys.argv[1],
           settings={"check_every": 5, "most_checks": 8, "polish": 20, "batch": 16})
"""


def test_killed_at_random_moments_a_run_ends_with_the_same_weights(tmp_path):
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    subprocess.run([sys.executable, "-c", RUN, tmp_path / "whole"], check=True)
    chance, kills = random.Random(0), 0
    for _ in range(30):
        process = subprocess.Popen([sys.executable, "-c", RUN, tmp_path / "killed"])
        saved = list((tmp_path / "killed").glob("*.checkpoint.safetensors"))
        before = os.stat(saved[0]).st_mtime_ns if saved else 0
        while process.poll() is None:  # let it get on by at least one checkpoint, then kill it at a random moment
            now = list((tmp_path / "killed").glob("*.checkpoint.safetensors"))
            if now and os.stat(now[0]).st_mtime_ns != before:
                time.sleep(chance.random() * 0.2)
                break
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        if process.wait() == 0:
            break
        kills += 1
        if kills >= 4:
            subprocess.run([sys.executable, "-c", RUN, tmp_path / "killed"], check=True)
            break
    assert kills
    ended = sorted(path.name for path in (tmp_path / "whole").glob("*.safetensors"))
    assert ended == sorted(path.name for path in (tmp_path / "killed").glob("*.safetensors"))
    for name in ended:
        whole, killed = (load_file(tmp_path / folder / name) for folder in ("whole", "killed"))
        assert all(torch.equal(whole[key], killed[key]) for key in whole)
        whole, killed = (
            json.loads((tmp_path / folder / name).with_suffix(".json").read_text()) for folder in ("whole", "killed")
        )
        assert whole["training"]["curve"] == killed["training"]["curve"]
        assert len(whole["training"]["curve"]["gradient_norm"]) == whole["training"]["steps"] / 5


def test_a_damaged_checkpoint_is_named_and_its_cell_starts_anew(tmp_path):
    class Stop(Exception):
        pass

    def stop(run):
        if run.progress[0].checks:
            raise Stop

    loop_saves = loop.SAVE_SECONDS
    try:
        loop.SAVE_SECONDS = 0.0
        with pytest.raises(Stop):
            train("txc", "mlp", length=8, seed=0, settings={**SHORT, "most_checks": 5}, out=tmp_path,
                  report=lambda run: stop(run) if run.progress[0].checks > 1 else None)  # fmt: skip
    finally:
        loop.SAVE_SECONDS = loop_saves
    saved = next(tmp_path.glob("*.checkpoint.safetensors"))
    saved.write_bytes(saved.read_bytes()[:100])
    warned: list[str] = []
    settings = {**SHORT, "most_checks": 5}
    result = train("txc", "mlp", length=8, seed=0, settings=settings, out=tmp_path, warn=warned.append)
    assert [f"the checkpoint {saved.name} is damaged" in line for line in warned] == [True]
    assert result.record["status"] == "done"


@pytest.mark.parametrize(("asked", "wanted"), [("cpu", True), ("auto", False), ("cuda:0", False)])
def test_on_a_gpu_cudnn_computes_in_float32(asked, wanted, monkeypatch):
    before = torch.backends.cudnn.allow_tf32
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    try:
        torch.backends.cudnn.allow_tf32 = True
        pick_device(asked)
        assert torch.backends.cudnn.allow_tf32 == wanted
    finally:
        torch.backends.cudnn.allow_tf32 = before


def test_what_does_not_fit_is_said_before_anything_runs():
    with pytest.raises(BadInput, match=r"transformer.* has 32 positions; length 64 does not fit"):
        train("txc", "transformer[positions=32]", length=64, settings=SHORT)
    with pytest.raises(BadInput, match="built for 2 outputs, here there are 6"):
        train("s3", st.model("mlp", inputs=6, outputs=2), length=8, settings=SHORT)
    with pytest.raises(BadInput, match="did you mean"):
        train("txc", "e88-gain-1l-smal", length=8)
    with pytest.raises(BadInput, match="length 0"):
        train("txc", "mlp", length=0)
