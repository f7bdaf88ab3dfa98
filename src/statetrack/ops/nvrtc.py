"""CUDA C++ compiled on first use by NVRTC, which torch brings along: no nvcc is needed."""

from __future__ import annotations

import threading
from functools import cache
from pathlib import Path
from typing import Any

import torch

_bound = threading.local()


@cache
def compiled(files: tuple[Path, ...], name: str, macros: tuple[tuple[str, int], ...]) -> Any:
    """The kernel `name` of some files, one behind the other, with these macros: a callable of (grid, block, args)."""
    options = [f"-D{macro}={value}" for macro, value in macros]
    source = "\n".join(file.read_text() for file in files)
    return torch.cuda._compile_kernel(source, name, nvcc_options=options)


def bind(device: torch.device) -> None:
    """Give this thread the card's context, once: autograd's own thread has none until torch has worked there."""
    devices = _bound.__dict__.setdefault("devices", set())
    if device not in devices:
        torch.zeros(1, device=device)
        devices.add(device)


def available() -> bool:
    """Whether this torch can compile CUDA C++ for the card it sees."""
    return torch.version.cuda is not None and hasattr(torch.cuda, "_compile_kernel")
