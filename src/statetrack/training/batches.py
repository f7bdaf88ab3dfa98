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


class HardRows(NamedTuple):
    """The hard rows of one replica for this step and the next ones, one after another."""

    want: BatchRequest
    apart: int
    rows: tuple[Tensor, Tensor, Tensor]

    def of(self, want: BatchRequest, count: int) -> tuple[Tensor, ...] | None:
        """Those of a step; None where they are not here."""
        ahead, odd = divmod(want.first - self.want.first, count)
        begin = ahead * want.hard
        if want._replace(first=self.want.first) != self.want or count != self.apart or odd:
            return None
        return tuple(part[begin : begin + want.hard] for part in self.rows) if 0 <= begin < len(self.rows[0]) else None


HARD_TOKENS = 2**14  # of hard rows that are made at once: the calls take longer than the numbers
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
        self._hard: dict[int, HardRows] = {}  # of each replica, for the next steps
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
        made = (self._one(replica, want, count, longest, twin) for replica, want in enumerate(wanted))
        return ReplicaRows(*(torch.stack(parts) for parts in zip(*made)))

    def _one(
        self, replica: int, want: BatchRequest, count: int, longest: int, twin: TorchSampler | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        if twin:
            parts = twin.sample(want.length, count, want.seed, "train", want.first)
        else:
            batch = self.task.sample(want.length, count, want.seed, "train", want.first)
            parts = tensors(batch.inputs, batch.targets, batch.mask)
        if want.hard:
            inputs, targets, mask = (torch.cat(both) for both in zip(*self._with_hard(replica, want, count, parts)))
        else:
            inputs, targets, mask = parts
        short = longest - want.length
        if short:
            inputs, targets, mask = (torch.nn.functional.pad(part, (0, short)) for part in (inputs, targets, mask))
        return inputs, targets, mask

    def _with_hard(
        self, replica: int, want: BatchRequest, count: int, parts: tuple[Tensor, Tensor, Tensor]
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """The first rows of a batch, and the hard ones that come after them."""
        held = self._hard.get(replica)
        hard = held.of(want, count) if held else None
        if hard is None:
            self._hard[replica] = more = self._more_hard(want, count)
            hard = more.of(want, count)
        assert hard is not None
        return tuple(part[: -want.hard] for part in parts), tuple(part.to(parts[0].device) for part in hard)

    def _more_hard(self, want: BatchRequest, count: int) -> HardRows:
        steps = max(1, HARD_TOKENS // (want.hard * want.length))
        first = want.first + count - want.hard
        made = hard_batch(self.task, want.length, want.seed, first, want.hard, want.words, batches=steps, apart=count)
        return HardRows(want, count, tensors(made.inputs, made.targets, made.mask))

    def close(self) -> None:
        self._worker.shutdown(wait=True, cancel_futures=True)


def tensors(inputs: np.ndarray, targets: np.ndarray, mask: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
    """A batch as torch wants it: ids and classes int64, the mask bool."""
    return (
        torch.from_numpy(inputs.astype(np.int64)),
        torch.from_numpy(targets.astype(np.int64)),
        torch.from_numpy(mask.astype(bool)),
    )
