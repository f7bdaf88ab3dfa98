"""A folder with hand-made networks on parity: one that can be proved, one that a word breaks, one without weights."""

from __future__ import annotations

import functools
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import torch

from statetrack.certificates import certify_folder
from statetrack.models import SequenceModel
from statetrack.models.witnesses import toggle
from statetrack.results import Cell, Store, TrainingRecord
from statetrack.results.evaluations import OnRows
from statetrack.training import checkpoint
from tests.sweeps.counted_cells import made

PROVABLE, BROKEN, BARE = (Cell("txc", "e88-gain-1l-small", 4, seed, {}) for seed in range(3))


def small(folder: Path) -> Store:
    """Nothing in it is certified yet."""
    store = Store(folder)
    right = toggle([[0, 1], [1, 0]])
    wrong = toggle([[0, 1], [1, 0]])
    with torch.no_grad():
        next(wrong.parameters()).zero_()
    for cell, model in ((PROVABLE, right), (BROKEN, wrong), (BARE, None)):
        keep(store, cell, model)
    return store


def keep(store: Store, cell: Cell, model: SequenceModel | None) -> None:
    record = made(cell)
    solved = OnRows(length=4, seed=cell.seed, accuracy=1.0, interval=[0.99, 1.0], floor=0.5, rows=512, n=2048)
    record = replace(record, evaluations=(solved,))
    store.write(record)
    if model is not None:
        note = {"cell": cell.to_dict(), "training": record.training.fingerprint}
        checkpoint.save_weights(store.path(cell, "safetensors"), model, note)


@functools.cache
def _made() -> tempfile.TemporaryDirectory[str]:
    place = tempfile.TemporaryDirectory()
    small(Path(place.name, "made"))
    certify_folder(Path(place.name, "made"), seconds=5)
    return place


def certified(folder: Path) -> Store:
    """The same certified, which is done once for all tests."""
    shutil.copytree(Path(_made().name, "made"), folder)
    return Store(folder)


def record_of(store: Store, cell: Cell) -> TrainingRecord:
    record = store.read(cell)
    assert isinstance(record, TrainingRecord)
    return record
