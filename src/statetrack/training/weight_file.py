"""Weights in a file that somebody brings: safetensors alone, since to read a pickle is to run what is in it."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from statetrack.errors import BadInput, need, one_line
from statetrack.files import read_start
from statetrack.models.custom import Adapted
from statetrack.models.sequence import SequenceModel, Shape
from statetrack.results import Cell, schema, seal
from statetrack.results.schema import BadRecord
from statetrack.training.weights import check_fits

ENDINGS = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")  # of what torch.save and pickle write
BEGINNINGS = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


@dataclass(frozen=True)
class WeightFile:
    """What a safetensors file holds, before a tensor of it is read."""

    path: Path
    shapes: dict[str, Shape]
    kinds: dict[str, str]  # F32, BF16, I64, ... by the tensor's name
    cell: Cell | None  # that the file names, if statetrack wrote it

    @property
    def name(self) -> str:
        return self.path.name


def look_at(path: Path | str) -> WeightFile:
    """The names and shapes in a file of weights; one that is no safetensors file is refused (BadInput)."""
    path = Path(path)
    _refuse_pickle(path)
    with _opened(path) as file:
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        shapes = {name: tuple(each.get_shape()) for name, each in slices.items()}
        kinds = {name: str(each.get_dtype()) for name, each in slices.items()}
    return WeightFile(path, shapes, kinds, _cell_of(path))


def load_into(model: SequenceModel, file: WeightFile, subject: str, task: str) -> None:
    """Give the model the weights of a file; what does not fit is named. A class of one's own may have its tensors under
    the names that it has itself.
    """
    target: nn.Module = model
    if isinstance(model, Adapted) and file.shapes.keys() != model.state_dict().keys():
        target = model.module
    subject = f"{subject} for {task}"
    check_fits(target, file.shapes, file.name, subject)
    for name, each in target.state_dict().items():
        if each.is_floating_point() and "F" not in file.kinds[name]:
            raise BadInput(f"{file.name} does not fit {subject}: {name} holds {file.kinds[name]}, not fractions")
    with _opened(file.path) as tensors:
        held = {name: tensors.get_tensor(name) for name in file.shapes}
    try:
        target.load_state_dict(held)
    except RuntimeError as error:
        raise BadInput(f"{file.name} does not fit {subject}: {one_line(error)}") from error


def check_not_nan(model: nn.Module, whose: str) -> None:
    """Refuse weights that are not numbers: every answer would be none."""
    for name, each in _tensors(model):
        if each.is_floating_point() and bool(each.isnan().any()):
            raise BadInput(f"{whose}: {name.removeprefix('module.')} holds NaN, so there is nothing to evaluate")


def sha256_of(model: nn.Module) -> str:
    """A hash of the weights: of every tensor its name, type, shape and bytes.

    >>> one, other = nn.Linear(2, 1), nn.Linear(2, 1)
    >>> _ = other.load_state_dict(one.state_dict())
    >>> sha256_of(one) == sha256_of(other), sha256_of(one) == sha256_of(nn.Linear(2, 1))
    (True, False)
    """
    digest = hashlib.sha256()
    for name, each in sorted(_tensors(model)):
        flat = each.detach().cpu().contiguous().reshape(-1)
        digest.update(f"{name} {each.dtype} {tuple(each.shape)}\n".encode())
        digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _tensors(model: nn.Module) -> list[tuple[str, Tensor]]:
    return [(name, each) for name, each in model.state_dict().items() if isinstance(each, Tensor)]


def _refuse_pickle(path: Path) -> None:
    try:
        start = read_start(path, 9)
    except FileNotFoundError:
        raise BadInput(f"there is no file {path}; weights are a safetensors file") from None
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from None
    safe = start[4:] == b"\0\0\0\0{"  # a length of 1,152, say, begins a safetensors file with the bytes of a pickle
    if path.suffix.lower() in ENDINGS or (start.startswith(BEGINNINGS) and not safe):
        code = (
            "import torch; from safetensors.torch import save_file; save_file({name: tensor.contiguous().clone() for "
            f"name, tensor in torch.load({json.dumps(str(path))}, weights_only=True).items()}}, "
            f"{json.dumps(str(path.with_suffix('.safetensors')))})"
        )
        raise BadInput(
            f"{path} is a pickle, which runs code when it is read; convert it: python -c {shlex.quote(code)}"
        )


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    safetensors = need("safetensors", "train", "reading weights")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            yield file
    except safetensors.SafetensorError as error:
        raise BadInput(f"{path} is damaged or no safetensors file ({one_line(error)})") from None


def _cell_of(path: Path) -> Cell | None:
    """The cell that a file of ours names, which has a checksum; None for one of others."""
    try:
        note = seal.check_tensors(path)
    except seal.NotOurs:
        return None
    except BadRecord as error:
        raise BadInput(f"{path} is damaged ({error})") from None
    with suppress(BadRecord):
        return schema.read(Cell, note.get("cell")).identity
    return None
