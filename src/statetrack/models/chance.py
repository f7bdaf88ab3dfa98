"""What a model draws in training, as dropout does: by torch's own generators, set anew for every update.

An update begins from a seed that is made of the replica's seed and the number of the update, and of nothing else. So
what it draws does not depend on the updates before, on a kill between them, or on the replicas beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

CPU = torch.device("cpu")


@contextmanager
def seeded(seed: int | None, device: torch.device = CPU) -> Iterator[None]:
    """Draw from generators of this seed, on the CPU and on the device, then give the old ones back.

    >>> with seeded(7):
    ...     first = torch.rand(3)
    >>> with seeded(7):
    ...     torch.equal(torch.rand(3), first)
    True
    """
    if seed is None:
        yield
        return
    cards = [_number(device)] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cards):
        torch.default_generator.manual_seed(seed)
        for card in cards:
            torch.cuda.default_generators[card].manual_seed(seed)
        yield


def seed_of(seed: int, update: int) -> int:
    """The seed of what a replica draws in one update.

    >>> seed_of(0, 1) == seed_of(0, 1), seed_of(0, 1) == seed_of(1, 0)
    (True, False)
    """
    digest = hashlib.sha256(f"{seed}\n{update}".encode()).digest()
    return int.from_bytes(digest[:8], "little")


def drawn_so_far(device: torch.device) -> list[Tensor]:
    """Where the generators stand; it changes when something is drawn."""
    cards = [torch.cuda.get_rng_state(device)] if device.type == "cuda" else []
    return [torch.get_rng_state(), *cards]


def _number(device: torch.device) -> int:
    return torch.cuda.current_device() if device.index is None else device.index
