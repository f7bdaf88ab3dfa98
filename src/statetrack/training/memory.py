"""Memory that runs out, on a CPU or on a GPU that others may use as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from statetrack.errors import OutOfMemory

GIB = 2**30


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
