"""Rows of a recurrence do not touch, so compiled loops that release the GIL may share them among threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any

import torch

among: int | None = None  # so many threads share rows; None: as many as torch has


@contextmanager
def rows_among(threads: int) -> Iterator[None]:
    """Share rows among so many threads, however many torch has for itself."""
    global among
    before, among = among, threads
    try:
        yield
    finally:
        among = before


@cache
def pool(threads: int) -> ThreadPoolExecutor:
    """One pool for each thread count, kept for the life of the process."""
    return ThreadPoolExecutor(threads, thread_name_prefix="statetrack-ops")


def in_threads(loop: Callable[..., None], rows: int, *arguments: Any) -> None:
    """Call loop(first, last, *arguments) over parts of range(rows), as many at a time as torch has threads, or as
    `rows_among` says.
    """
    threads = min(among or torch.get_num_threads(), rows)
    if threads == 1:
        loop(0, rows, *arguments)
        return
    bounds = [rows * part // threads for part in range(threads + 1)]
    parts = [pool(threads).submit(loop, first, last, *arguments) for first, last in pairwise(bounds)]
    for part in parts:
        part.result()
