"""From a folder of results back to the trained model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from statetrack.errors import BadInput
from statetrack.models import SequenceModel
from statetrack.results import Cell, Store
from statetrack.tasks import task
from statetrack.training import checkpoint
from statetrack.training.run import built


def cell_of(record: Mapping[str, Any]) -> Cell:
    """The cell that a record of a store is about."""
    return Cell(**record["cell"])


def load(store: Store, cell: Cell) -> SequenceModel:
    """The model that a cell was trained to, with its weights; what is in the way is said in one line (BadInput).

    Refused are weights that are missing or damaged, weights of another cell, and weights that do not fit the model of
    this name: a custom model whose file is gone or has changed, or another version of the code.
    """
    path = store.path(cell, "safetensors")
    if not path.exists():
        raise BadInput(f"no weights are kept: {path.name} is not there")
    weights, note = checkpoint.load(path)
    if note.get("cell") != cell.to_dict():
        raise BadInput(f"{path.name} holds the weights of another cell")
    made = built(cell.subject, task(cell.task), cell.seed)
    expected = made.state_dict()
    for name in [*expected, *weights]:
        if name not in weights or name not in expected:
            raise BadInput(f"{path.name} does not fit {cell.subject}: {name} is in one of them only")
        if weights[name].shape != expected[name].shape:
            shapes = f"{tuple(weights[name].shape)} there, {tuple(expected[name].shape)} in the model"
            raise BadInput(f"{path.name} does not fit {cell.subject}: {name} is {shapes}")
    made.load_state_dict(weights)
    return frozen(made)


def frozen(model: SequenceModel) -> SequenceModel:
    """The model as it is looked at: nothing in it is trained any more."""
    nn.Module.requires_grad_(model, False)
    return model.eval()
