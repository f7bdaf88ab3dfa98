"""Batches for training: made by the task's own sampler while the model works on the batch before."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from statetrack.tasks.base import Task
from statetrack.tasks.finite import FiniteTask
from statetrack.training.hard_rows import hard_batch
from statetrack.training.torch_sampler import TorchSampler, has_twin
from statetrack.training.words import Letters


class ReplicaRows(NamedTuple):
    """Rows of all replicas as tensors (R, B, T)."""

    inputs: Tensor
    targets: Tensor
    mask: Tensor


class BatchRequest(NamedTuple):
    """What one replica reads at one step: rows first..first+count-1 of this length and seed, seen to `length` of T; the
    last `hard` of them are hard rows, among them words that broke it.
    """

    seed: int
    length: int
    first: int
    hard: int = 0
    words: tuple[Letters, ...] = ()


ON_DEVICE = 2**19  # tokens of a step from which they are drawn on the GPU: below that its launches take longer


class Batches:
    """Serves training batches; the batch expected next is prepared in the background."""

    def __init__(self, task: Task, device: torch.device) -> None:
        self.task, self.device = task, device
        self.twin = (
            TorchSampler(task, device)
            if device.type == "cuda" and isinstance(task, FiniteTask) and has_twin(task)
            else None
        )
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="feed")
        self._ready: tuple[tuple[tuple[BatchRequest, ...], int], Future[ReplicaRows]] | None = None

    def get(self, wanted: tuple[BatchRequest, ...], count: int, following: tuple[BatchRequest, ...]) -> ReplicaRows:
        """The rows wanted now; those that will probably be wanted next are begun."""
        if self._on_device(wanted, count):
            return self._make(wanted, count)
        rows = self._take((wanted, count)) or self._make(wanted, count)
        self._ready = ((following, count), self._worker.submit(self._make, following, count))
        if self.device.type == "cuda":
            rows = ReplicaRows(*(tensor.pin_memory().to(self.device, non_blocking=True) for tensor in rows))
        return rows

    def _on_device(self, wanted: tuple[BatchRequest, ...], count: int) -> bool:
        return self.twin is not None and len(wanted) * count * max(want.length for want in wanted) >= ON_DEVICE

    def _take(self, key: tuple[tuple[BatchRequest, ...], int]) -> ReplicaRows | None:
        if self._ready is None or self._ready[0] != key:
            return None
        return self._ready[1].result()

    def _make(self, wanted: tuple[BatchRequest, ...], count: int) -> ReplicaRows:
        """A shorter replica's rows are filled up with zeros that nobody asks about: models are causal."""
        longest, twin = max(want.length for want in wanted), self.twin if self._on_device(wanted, count) else None
        return ReplicaRows(
            *(torch.stack(parts) for parts in zip(*(self._one(want, count, longest, twin) for want in wanted)))
        )

    def _one(
        self, want: BatchRequest, count: int, longest: int, twin: TorchSampler | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        if twin:
            parts = twin.sample(want.length, count, want.seed, "train", want.first)
        else:
            batch = self.task.sample(want.length, count, want.seed, "train", want.first)
            parts = tensors(batch.inputs, batch.targets, batch.mask)
        if want.hard:
            inputs, targets, mask = (torch.cat(both) for both in zip(*self._with_hard(want, count, parts)))
        else:
            inputs, targets, mask = parts
        short = longest - want.length
        if short:
            inputs, targets, mask = (torch.nn.functional.pad(part, (0, short)) for part in (inputs, targets, mask))
        return inputs, targets, mask

    def _with_hard(
        self, want: BatchRequest, count: int, parts: tuple[Tensor, Tensor, Tensor]
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """The first rows of a batch, and the hard ones that come after them."""
        left = count - want.hard
        hard = hard_batch(self.task, want.length, want.seed, want.first + left, want.hard, want.words)
        made = tensors(hard.inputs, hard.targets, hard.mask)
        return tuple(part[:left] for part in parts), tuple(part.to(parts[0].device) for part in made)

    def close(self) -> None:
        self._worker.shutdown(wait=True, cancel_futures=True)


def tensors(inputs: np.ndarray, targets: np.ndarray, mask: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
    """A batch as torch wants it: ids and classes int64, the mask bool."""
    return (
        torch.from_numpy(inputs.astype(np.int64)),
        torch.from_numpy(targets.astype(np.int64)),
        torch.from_numpy(mask.astype(bool)),
    )
