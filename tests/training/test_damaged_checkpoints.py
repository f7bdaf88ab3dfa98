"""A checkpoint that is damaged is named in one line, and its cell starts anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from statetrack.results import Cell, Store
from statetrack.results.kinds import SeedGroup
from statetrack.training import checkpoint
from statetrack.training.cells import describe, run

SETTINGS = {"most_checks": 2, "check_every": 2, "batch": 4, "polish": 2, "validation_rows": 16, "rates": [0.001]}


def spoil(path: Path, how: str) -> None:
    tensors, note = checkpoint.load(path)
    if how == "bits":
        data = bytearray(path.read_bytes())
        data[-5] ^= 4
        path.write_bytes(data)
    elif how == "cut":
        path.write_bytes(path.read_bytes()[:200])
    elif how == "empty":
        path.write_bytes(b"")
    else:
        changes: dict[str, Any] = {
            "nan": (tensors | {"weights": tensors["weights"] * float("nan")}, note),
            "dtype": (tensors | {"weights": tensors["weights"].double()}, note),
            "shape": (tensors | {"weights": tensors["weights"][:, :-1]}, note),
            "missing": ({"weights": tensors["weights"]}, note),
            "seeds": (tensors, note | {"seeds": "all"}),
            "progress": (tensors, note | {"progress": [{"step": 1}]}),
            "history": (tensors, note | {"progress": [note["progress"][0] | {"history": [{"step": 2}]}]}),
            "no progress": (tensors, {key: note[key] for key in ("run", "seeds")}),
            "tokens": (tensors, note | {"tokens": "many"}),
        }
        checkpoint.save(path, *changes[how])


HOW = [
    "bits",
    "cut",
    "empty",
    "nan",
    "dtype",
    "shape",
    "missing",
    "seeds",
    "progress",
    "history",
    "no progress",
    "tokens",
]


@pytest.mark.parametrize("how", HOW)
def test_it_starts_anew_with_one_line(how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell = describe("txc", "mlp[hidden=4]", 4, 0, "curriculum", dict(SETTINGS)).cell
    clean, spoilt = (_trained(cell, tmp_path / name, how if name == "b" else "") for name in "ab")
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "is damaged (" in said
    assert said.endswith("its cells start anew\n")
    assert torch.equal(clean["head.weight"], spoilt["head.weight"])


def _trained(cell: Cell, folder: Path, how: str) -> dict[str, torch.Tensor]:
    """The weights of a cell that was begun before, from a checkpoint that was spoilt since."""
    store, scratch = Store(folder), folder / "scratch"
    saved = scratch / f"{cell.siblings}.checkpoint.safetensors"
    list(run(SeedGroup((cell,), device="cpu"), store, scratch))
    if how:
        store.path(cell).unlink()
        spoil(saved, how)
        list(run(SeedGroup((cell,), device="cpu"), store, scratch))
    return checkpoint.load(store.path(cell, "safetensors"))[0]
