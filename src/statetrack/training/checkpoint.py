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


def fingerprint(description: dict[str, Any]) -> str:
    """A hash of what a run is; a checkpoint may only be continued by the same run."""
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()[:16]


def save(path: Path, tensors: dict[str, Tensor], note: dict[str, Any]) -> None:
    """Tensors and a JSON note in one safetensors file."""
    safetensors = need("safetensors.torch", "train", "saving weights")
    arrays = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_whole(path, safetensors.save(arrays, {"statetrack": json.dumps(note)}))


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What `save` wrote; a damaged file is named."""
    safetensors = need("safetensors", "train", "reading weights")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            note = json.loads(file.metadata()["statetrack"])
            return {name: file.get_tensor(name) for name in file.keys()}, note  # noqa: SIM118 (not a dict)
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, OSError) as error:
        raise BadInput(f"{path} is damaged or not a statetrack checkpoint ({error}); remove it to start over") from None


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
