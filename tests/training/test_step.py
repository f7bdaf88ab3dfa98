"""When a step's blocks are compiled. The compiled step itself is compared on a GPU (tests/ops, benchmarks)."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import statetrack as st
from statetrack.errors import BadInput
from statetrack.models import Replicas, model
from statetrack.models.sequence import Stack
from statetrack.sweeps import read
from statetrack.training.batches import ReplicaRows
from statetrack.training.loop import loss_of
from statetrack.training.optimizer import AdamW, FlatParameters
from statetrack.training.protocol import PROTOCOLS
from statetrack.training.step import Stepper, worth_fusing


@pytest.mark.parametrize(
    ("setting", "tokens", "layers", "wanted"),
    [
        (None, 2**17 - 1, 4, False), (None, 2**17, 4, True), ("0", 10**9, 1, False), ("1", 1, 1, True),
        ("65536", 65_535, 32, False), ("65536", 65_536, 1, True),
    ],
)  # fmt: skip
def test_blocks_are_compiled_from_so_many_tokens(
    setting: str | None, tokens: int, layers: int, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STATETRACK_FUSE", raising=False)
    if setting is not None:
        monkeypatch.setenv("STATETRACK_FUSE", setting)
    assert worth_fusing(tokens, layers) == wanted


@pytest.mark.parametrize("text", ["yes", "-1", "²"])
def test_a_setting_that_is_no_number_is_refused_before_anything_runs(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATETRACK_FUSE", text)
    with pytest.raises(BadInput, match=f"STATETRACK_FUSE={text} should be 0"):
        st.train("txc", "mlp", length=4, out=tmp_path / "out", device="cpu")
    with pytest.raises(BadInput, match=f"STATETRACK_FUSE={text} should be 0"):
        read("demo")
    assert not (tmp_path / "out").exists()


def test_a_curriculum_compiles_once_when_its_steps_are_large_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    fused: list[int] = []
    monkeypatch.setenv("STATETRACK_FUSE", "64")
    monkeypatch.setattr(Stack, "fuse", lambda part: fused.append(length))
    replicas = Replicas([model("e88-1l-small", inputs=2, outputs=2)])
    loss = loss_of(PROTOCOLS["design"], [0], replicas, torch.device("cpu"))
    step = Stepper(replicas, AdamW(FlatParameters(replicas), 0.01, 1.0), "float32", loss)
    step.may_fuse = True  # as on a GPU
    for length in (4, 8, 16, 32, 32):
        ids = torch.zeros(1, 4, length, dtype=torch.long)
        step(ReplicaRows(ids, ids, torch.ones_like(ids, dtype=torch.bool)), torch.ones(1), torch.ones(1))
    assert fused == [16]


@pytest.mark.parametrize("changing", [False, True])
def test_steps_that_draw_or_keep_something_are_neither_folded_nor_recorded(changing: bool) -> None:
    """A recorded step would repeat its seeds and its lengths, and a folded one draw for all replicas at once."""
    models = [model("e88-1l-small", inputs=2, outputs=2) for _ in range(2)]
    models[0].changing = changing
    replicas = Replicas(models)
    loss = loss_of(PROTOCOLS["design"], [0, 1], replicas, torch.device("cpu"))
    step = Stepper(replicas, AdamW(FlatParameters(replicas), 0.01, 1.0), "float32", loss)
    assert (replicas.folded, step.may_record) == (not changing, not changing)
