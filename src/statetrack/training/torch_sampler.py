"""The task's sampler again, in torch, so that data can be made where the model is. It gives the same bits.

Draws are the same 64-bit hash (int64 arithmetic wraps as uint64 does; a shift to the right must drop the sign). A
finite automaton is run by composing its steps pairwise: after log2 T rounds every position holds the map of its whole
prefix.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from statetrack.ops.noise import mix, shifted, signed
from statetrack.tasks import draws
from statetrack.tasks.base import Task
from statetrack.tasks.finite import NOTHING, FiniteTask

MAX_STATES = 128  # a round moves a map of all states for every token


def has_twin(task: Task) -> bool:
    """Whether the task can be sampled on a device: a small automaton, independent draws, asked at every position."""
    return (
        isinstance(task, FiniteTask)
        and task.ask == "every"
        and type(task).draw is Task.draw
        and type(task).run is FiniteTask.run
        and type(task).rows is Task.rows
        and task.automaton.states <= MAX_STATES
    )


class TorchSampler:
    """Samples one task on one device."""

    def __init__(self, task: FiniteTask, device: torch.device) -> None:
        self.task, self.device = task, device
        automaton = task.automaton
        self.maps = torch.tensor(automaton.steps.T.copy(), dtype=torch.uint8, device=device)  # (symbols, states)
        self.answers = torch.tensor(automaton.answers, dtype=torch.int64, device=device)
        ends = draws.thresholds(task.symbol_weights)
        self.ends = None if ends is None else torch.tensor(ends.astype(np.int64), device=device)

    def sample(self, length: int, count: int, seed: int, split: str, first: int) -> tuple[Tensor, Tensor, Tensor]:
        """(inputs, targets, mask) of task.sample with the same arguments, as tensors on the device."""
        rows = np.arange(first, first + count)
        keys = self.task._keys(np.full(count, length), rows, seed, split)
        inputs = self._symbols(torch.from_numpy(keys.view(np.int64)).to(self.device), length)
        answers = self.answers[_prefixes(self.maps[inputs])[..., 0].long()]
        defined = answers != NOTHING
        return inputs, torch.where(defined, answers, 0), defined

    def _symbols(self, keys: Tensor, length: int) -> Tensor:
        positions = torch.arange(1, length + 1, device=self.device) * signed(draws.STEP)
        top = shifted(mix(keys[:, None] + positions), 64 - draws.BITS)
        if self.ends is not None:
            return torch.bucketize(top, self.ends, right=True)
        return (top * self.task.inputs) >> draws.BITS


def _prefixes(maps: Tensor) -> Tensor:
    """maps (B, T, S), position t's map of states -> the map of the prefix that ends at t (Hillis and Steele's scan)."""
    reach = 1
    while reach < maps.shape[1]:
        later, earlier = maps[:, reach:], maps[:, :-reach]
        maps = torch.cat([maps[:, :reach], torch.gather(later, 2, earlier.long())], dim=1)
        reach *= 2
    return maps
