"""Every family of models trains on a GPU, where a step is recorded and replayed, as it does on a CPU."""

import os
import shutil
import subprocess
import sys

import pytest
import torch

from statetrack.sweeps import sharing
from statetrack.training import TrainingCheck, train, train_many

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

FAMILIES = (
    "e88-1l-small", "e88-gain-r2", "mamba2-4l", "deltaproduct-2", "gated-deltanet", "m2rnn", "linear-rnn", "mlp",
    "tanh-rnn", "gru", "lstm", "transformer",
)  # fmt: skip
SHORT = {"most_checks": 1, "check_every": 10, "batch": 8, "validation_rows": 16, "warmup": 0, "rates": [1e-3]}


@pytest.mark.parametrize("name", FAMILIES)
def test_trains_as_on_a_cpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATETRACK_FUSE", "0")
    losses = [
        train("txc", name, length=8, protocol="design", settings=SHORT, device=place).record["final_train_loss"]
        for place in ("cpu", "cuda")
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)


@pytest.mark.parametrize("name", ["tanh-rnn", "gru[hidden=64]", "gru", "lstm[hidden=64]", "lstm", "linear-rnn"])
def test_trains_with_noise_as_on_a_cpu(name: str) -> None:
    """Replicas in one scan, or side by side, with the noise inside, against each by itself on a CPU."""
    settings = {**SHORT, "state_noise": 0.1}
    losses = [
        [
            run.record["final_train_loss"]
            for run in train_many(
                "txc", name, length=8, seeds=[0, 1], protocol="design", settings=settings, device=place
            )
        ]
        for place in ("cpu", "cuda")
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)


def test_a_callback_is_told_the_curve_of_each_replica_and_changes_no_bit() -> None:
    told: list[TrainingCheck] = []
    given = {"length": 8, "seeds": [0, 1], "settings": SHORT | {"most_checks": 3}, "device": "cuda", "words": 0}
    alone = train_many("txc", "e88-gain-1l-small", **given)
    watched = train_many("txc", "e88-gain-1l-small", **given, callback=told.append)
    assert [result.record.training.curve for result in watched] == [result.record.training.curve for result in alone]
    for result in watched:
        curve = result.record.training.curve
        own = [check for check in told if check.seed == result.cell.seed]
        assert curve.updates == [check.update for check in own]
        assert curve.loss == pytest.approx([check.loss for check in own], rel=1e-5)
        assert curve.gradient_norm == pytest.approx([check.gradient_norm for check in own], rel=1e-5)


@pytest.mark.skipif(shutil.which(sharing.CONTROL) is None, reason="needs NVIDIA's MPS")
def test_workers_compute_through_a_service_of_their_own() -> None:
    ask = (
        "import subprocess, torch; torch.ones(1, device='cuda').item()\n"
        f"print(subprocess.check_output({sharing.CONTROL!r}, input=b'get_server_list').decode())"
    )
    with sharing.shared([0, 0]) as added:
        assert added
        told = subprocess.check_output([sys.executable, "-c", ask], env={**os.environ, **added}, text=True)
        assert told.strip().isdecimal()  # the number of the process that serves
    assert not os.path.exists(f"/proc/{told.strip()}")
