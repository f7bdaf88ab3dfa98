"""What the three choosers share: which kernel, which precision, and the shape messages."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from statetrack.errors import BadInput, unknown

VARIABLE = "STATETRACK_KERNEL"
ON_GPU = ("triton", "cuda")


def state_dtype(*tensors: Tensor | None) -> torch.dtype:
    """float64 if anything is float64, else float32: a recurrence in half precision forgets."""
    wide = any(tensor is not None and tensor.dtype == torch.float64 for tensor in tensors)
    return torch.float64 if wide else torch.float32


def forced(kernel: str | None, known: Sequence[str], device: torch.device) -> str | None:
    """The kernel asked for by argument or else by the environment; None leaves the choice to the op."""
    name = kernel if kernel is not None else os.environ.get(VARIABLE) or None
    if name is None or name == "auto":
        return None
    if name not in known:
        # The variable speaks to all ops at once, so a name that only another op knows is not an error there.
        if kernel is None:
            return None
        raise unknown("kernel", name, known)
    if kernel is None and name in ON_GPU and device.type == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
        return None  # and what is tried on a CPU before a GPU runs it is no error either
    return name


def expect(name: str, tensor: Tensor, shape: Sequence[int], letters: str) -> None:
    """One line that says which argument has which wrong shape."""
    if tuple(tensor.shape) != tuple(shape):
        raise BadInput(f"{name} has shape {tuple(tensor.shape)}; expected {letters} = {tuple(shape)}")


def full_precision(device: torch.device, run: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Run with autocast off, so that no matmul of the recurrence falls to half precision."""
    with torch.autocast(device_type=device.type, enabled=False):
        return run()
