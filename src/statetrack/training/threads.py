"""One thread of torch for a small network: threads that share products of so few numbers wait for one another."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch

from statetrack.models import SequenceModel
from statetrack.ops import parallel

SMALL = 20_000  # parameters
SAID_BY = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


@contextmanager
def threads_for(model: SequenceModel, device: torch.device | None = None) -> Iterator[None]:
    """Run a small network on a CPU with one thread of torch, unless the user has chosen a number.

    Every step of it is a few products of small matrices. Beside other work on the machine threads that share one wait
    for the slowest, many times in each step; and sums that are shared are rounded otherwise than those that are not.
    Rows of the compiled recurrences are shared as before, since they do not touch.
    """
    place = device or next((p.device for p in model.parameters()), torch.device("cpu"))
    before = torch.get_num_threads()
    if place.type != "cpu" or model.parameter_count > SMALL or before == 1 or is_chosen(before, os.environ):
        yield
        return
    with parallel.rows_among(before):
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def is_chosen(threads: int, environment: Mapping[str, str]) -> bool:
    """Whether somebody has asked for this number: by the environment, or since it is none that torch begins with, the
    processors that there are or, where each is seen as two, half of them.
    """
    seen = {os.cpu_count() or 1, available()}
    return any(environment.get(name) for name in SAID_BY) or threads not in seen | {max(1, n // 2) for n in seen}


def available() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
