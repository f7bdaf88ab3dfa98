"""From a folder back to the trained model: the same answers, and a clear no to what is not its weights."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

import statetrack as st
from statetrack.errors import BadInput
from statetrack.results import Cell, Store
from statetrack.training import checkpoint
from statetrack.training.weights import load

SHORT = {"check_every": 2, "most_checks": 1, "polish": 2, "batch": 4, "validation_rows": 4}
OWN = """
import torch
class Mine(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.table = torch.nn.Embedding(inputs, outputs)
    def forward(self, ids):
        return self.table(ids)
"""


def trained(folder: Path, model: str = "gru[hidden=8,dim=4]") -> tuple[Store, Cell, torch.nn.Module]:
    result = st.train("txc", model, length=8, settings=SHORT, out=folder, device="cpu")
    return Store.existing(folder), result.cell, result.model


def test_it_says_what_the_trained_model_said(tmp_path: Path) -> None:
    store, cell, model = trained(tmp_path)
    ids = torch.randint(2, (3, 20))
    again = load(store, cell)
    torch.testing.assert_close(again(ids), model(ids), rtol=1e-6, atol=1e-6)
    assert not any(weight.requires_grad for weight in again.parameters())


def test_what_is_missing_damaged_or_foreign_is_refused_by_name(tmp_path: Path) -> None:
    store, cell, _ = trained(tmp_path)
    path = store.path(cell, "safetensors")
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    with pytest.raises(BadInput, match="damaged"):
        load(store, cell)
    path.write_bytes(b"")
    with pytest.raises(BadInput, match="damaged"):
        load(store, cell)
    path.unlink()
    with pytest.raises(BadInput, match="no weights are kept"):
        load(store, cell)
    other = Path(__file__).parents[1] / "diagnosis" / "weights"
    shutil.copy(next(other.glob("*.safetensors")), path)
    with pytest.raises(BadInput, match="another cell"):
        load(store, cell)


@pytest.mark.parametrize("change", ["shape", "missing", "extra"])
def test_weights_that_do_not_fit_are_refused(tmp_path: Path, change: str) -> None:
    store, cell, _ = trained(tmp_path)
    path = store.path(cell, "safetensors")
    weights, note = checkpoint.load(path)
    if change == "shape":
        weights["head.bias"] = torch.zeros(7)
    elif change == "missing":
        del weights["head.bias"]
    else:
        weights["tail"] = torch.zeros(1)
    checkpoint.save(path, weights, note)
    with pytest.raises(BadInput, match="does not fit"):
        load(store, cell)


def test_a_model_of_ones_own_whose_file_is_gone_or_changed(tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    own.write_text(OWN)
    folder = tmp_path / "results"
    store, cell, _ = trained(folder, f"{own}:Mine")
    assert next(store.records()).cell == cell
    load(store, cell)
    own.write_text(OWN + "\n# changed\n")
    with pytest.raises(BadInput, match=r"has changed: its sha256 begins with \w{8}, not with \w{8}$"):
        load(store, cell)
    own.unlink()
    with pytest.raises(BadInput):
        load(store, cell)
