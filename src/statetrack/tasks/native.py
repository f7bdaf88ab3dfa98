"""Compiled loops where numba is installed, and blocks of rows on every core.

Each fast loop has a twin in numpy that gives the same numbers; `STATETRACK_NUMBA=0` forces the twin. Threads take
blocks of rows, not numba's own parallel loops: those may not be called from two Python threads at once.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from statetrack import plugins


def available() -> bool:
    """Whether compiled loops are used."""
    return os.environ.get("STATETRACK_NUMBA", "1") != "0" and plugins.usable("numba")


@functools.cache
def compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    """The loop as machine code that runs without the interpreter's lock; compiled at its first call, kept on disk."""
    import numba

    jitted: Callable[..., Any] = numba.njit(nogil=True, cache=True)(loop)
    return jitted


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _pool(process: int) -> ThreadPoolExecutor:
    """One pool per process: a pool that a fork copied has no threads."""
    return ThreadPoolExecutor(cores(), thread_name_prefix="statetrack")


def run_blocks(work: Callable[[int, int], None], count: int, block: int) -> None:
    """Call work(first, last) for consecutive blocks of rows that cover 0..count-1, on all cores."""
    bounds = [(first, min(first + block, count)) for first in range(0, count, block)]
    if len(bounds) == 1 or cores() == 1:
        for first, last in bounds:
            work(first, last)
        return
    for done in [_pool(os.getpid()).submit(work, first, last) for first, last in bounds]:
        done.result()
