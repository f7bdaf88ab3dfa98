"""CUDA C++ compiled for the CPU by g++, with emulated.h in place of the card: stands in for statetrack.ops.nvrtc."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

HERE = Path(__file__).parent
Launch = Callable[..., None]
KINDS = {int: ctypes.c_int, float: ctypes.c_double}  # as torch hands them to a kernel


def compiler(*, backwards: bool, late: bool) -> Callable[..., Launch]:
    """What nvrtc.compiled is on a GPU. Its kernels take tensors on the CPU."""

    def compiled(files: tuple[Path, ...], name: str, macros: tuple[tuple[str, int], ...]) -> Launch:
        library = built(files, name, macros)

        def run(grid: tuple[int, int, int], block: tuple[int, int, int], args: list[Any]) -> None:
            plain = [arg.data_ptr() if isinstance(arg, torch.Tensor) else arg for arg in args]
            kinds = [ctypes.c_void_p if isinstance(arg, torch.Tensor) else KINDS[type(arg)] for arg in args]
            library.start.argtypes = [ctypes.c_bool, ctypes.c_bool, ctypes.c_int, ctypes.c_int, *kinds]
            library.start(backwards, late, grid[0], block[0], *plain)

        return run

    return compiled


@cache
def built(files: tuple[Path, ...], name: str, macros: tuple[tuple[str, int], ...]) -> ctypes.CDLL:
    """A library with the kernel behind `start(backwards, late, blocks, threads, arguments of the kernel)`."""
    with TemporaryDirectory(prefix="emulated-") as folder:
        return _built(Path(folder), files, name, macros)


def _built(folder: Path, files: tuple[Path, ...], name: str, macros: tuple[tuple[str, int], ...]) -> ctypes.CDLL:
    kernel = "\n".join(file.read_text() for file in files if file.name != "instructions.cuh")
    source = f'#include "emulated.h"\n{kernel}\n{start_of(name, kernel)}'
    (folder / "kernel.cpp").write_text(source)
    defined = [f"-D{macro}={value}" for macro, value in macros]
    command = ["g++", "-std=c++20", "-O1", "-w", "-shared", "-fPIC", f"-I{HERE}", *defined]
    subprocess.run([*command, "-o", folder / "kernel.so", folder / "kernel.cpp"], check=True)
    return ctypes.CDLL(str(folder / "kernel.so"))


def start_of(name: str, kernel: str) -> str:
    """A function with the kernel's parameters that launches it."""
    parameters = kernel.split(f"{name}(", 1)[1].split(")", 1)[0]
    names = [parameter.split()[-1].lstrip("*") for parameter in parameters.split(",")]
    return f"""extern "C" void start(bool from_the_last, bool late_copies, int blocks, int threads, {parameters}) {{
  backwards = from_the_last, late = late_copies;
  launch(blocks, threads, {name}, {", ".join(names)});
}}"""
