"""Memory that runs out, on a CPU or on a GPU that others may use as well, and memory that is kept for the next step."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from statetrack.errors import OutOfMemory

GIB = 2**30
ON_GPU = "allocated on the GPU"  # what a peak is of
OF_PROCESS = "growth of the process"
PROCESS = Path("/proc/self")


def ran_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


def hand_back(device: torch.device) -> None:
    """Give what torch keeps for later use back to the GPU, where other processes may wait for it."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


def beside_others(device: torch.device) -> str:
    """' beside the 12 GiB of other processes', or nothing where they hold less than a GiB of this GPU."""
    if device.type != "cuda":
        return ""
    free, total = torch.cuda.mem_get_info(device)
    others = (total - free - torch.cuda.memory_reserved(device)) / GIB
    return f" beside the {others:.0f} GiB of other processes" if others >= 1 else ""


@contextmanager
def memory_named(what: str, place: torch.device) -> Iterator[None]:
    """Memory that runs out is said in one line."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not ran_out_of_memory(error):
            raise
        others = beside_others(place)
        raise OutOfMemory(
            f"out of memory: {what} does not fit{others}; choose a smaller model, or fewer seeds at a time"
        ) from error


class PeakMemory:
    """The most memory that is taken from now on: what torch allocates on the GPU; on a CPU by how much the process
    grows (Linux tells it), with whatever else it does meanwhile. None where nobody tells.
    """

    def __init__(self, device: torch.device) -> None:
        self.device, self.before = device, None
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        elif sys.platform == "linux":
            _trim()
            with suppress(OSError):  # as in a container that may not
                (PROCESS / "clear_refs").write_text("5")  # the peak begins anew
                self.before = _resident("VmRSS")

    @property
    def kind(self) -> str:
        return ON_GPU if self.device.type == "cuda" else OF_PROCESS if self.before is not None else ""

    def read(self) -> int | None:
        """Bytes so far."""
        if self.device.type == "cuda":
            return int(torch.cuda.max_memory_allocated(self.device))
        peak = _resident("VmHWM") if self.before is not None else None
        return None if peak is None or self.before is None else max(0, peak - self.before)


def _trim() -> None:
    """Give back what the C library keeps for later: a cell that follows a larger one would seem to take nothing."""
    if hasattr(library := ctypes.CDLL(None), "malloc_trim"):  # glibc's
        library.malloc_trim(0)


def _resident(name: str) -> int | None:
    for line in (PROCESS / "status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return None


def keep_memory() -> None:
    """Let the C library keep what it has: else every tensor above 32 MiB is requested from the kernel again, page by
    page, and a token costs more at long lengths than at short ones.
    """
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "mallopt"):
        trim_threshold, mmap_threshold = -1, -3  # their numbers in glibc's malloc.h; musl takes and ignores them
        library.mallopt(trim_threshold, 2**31 - 1)
        library.mallopt(mmap_threshold, 2**30)
