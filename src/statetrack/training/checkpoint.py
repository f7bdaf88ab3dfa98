"""Weights and checkpoints: safetensors files, written under a temporary name and renamed, never pickle."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from statetrack.errors import BadInput, need
from statetrack.files import write_whole
from statetrack.results import seal
from statetrack.results.schema import BadRecord


class Damaged(BadInput):
    """A file that does not hold what was saved."""

    def __init__(self, path: Path, why: object) -> None:
        super().__init__(f"{path} is damaged or not a statetrack checkpoint ({why}); remove it to start over")
        self.why = why


def fingerprint(description: dict[str, Any]) -> str:
    """A hash of what a run is; a checkpoint may only be continued by the same run."""
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()[:16]


def save(path: Path, tensors: dict[str, Tensor], note: dict[str, Any]) -> None:
    """Tensors and a JSON note in one safetensors file, with a checksum of it."""
    safetensors = need("safetensors.torch", "train", "saving weights")
    arrays = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    told = json.dumps({seal.SUM: seal.UNSEALED} | {key: each for key, each in note.items() if key != seal.SUM})
    write_whole(path, seal.seal_tensors(safetensors.save(arrays, {"statetrack": told})))


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What `save` wrote; a damaged file is named."""
    safetensors = need("safetensors", "train", "reading weights")
    try:
        note = seal.check_tensors(path)
        with safetensors.safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, note  # noqa: SIM118 (not a dict)
    except OSError as error:
        raise Damaged(path, error.strerror or error) from None
    except (safetensors.SafetensorError, BadRecord) as error:
        raise Damaged(path, error) from None


def load_for(path: Path, run: str) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The checkpoint of this very run, or None where there is none; another run's is refused."""
    if not path.exists():
        return None
    tensors, note = load(path)
    if note.get("run") != run:
        raise BadInput(f"{path} belongs to another configuration; choose another --out or remove it")
    return tensors, note


def save_weights(path: Path, model: torch.nn.Module, note: dict[str, Any]) -> None:
    """A trained model's weights by name; weights that are tied stand under each of their names."""
    save(path, {name: tensor.clone() for name, tensor in model.state_dict().items()}, note)
