"""One training step: gradient and update. On a GPU it is recorded once for each shape and replayed as a CUDA graph.

A thin model of 32 layers launches thousands of small kernels per step and would wait for the launches; a replay
launches once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor

from statetrack.models import Replicas
from statetrack.models.sequence import Stack
from statetrack.training.batches import ReplicaRows
from statetrack.training.optimizer import AdamW
from statetrack.training.protocol import fuse_from

WARM_UPS = 3  # steps before recording, in which kernels are compiled and chosen
WORTH = (
    2**19
)  # tokens of a step times layers, from which what compiled blocks save in a training is more than compiling takes

Loss = Callable[[Replicas, ReplicaRows, Tensor], Tensor]


def worth_fusing(tokens: int, layers: int) -> bool:
    """Whether a step of this many tokens, of all replicas together, should run compiled blocks."""
    least = fuse_from()
    return tokens * layers >= WORTH if least is None else 0 < least <= tokens


class Stepper:
    """Makes steps; returns each replica's loss and the norm of its gradient (2, R), which stay on the device."""

    def __init__(self, replicas: Replicas, optimizer: AdamW, precision: str, loss: Loss) -> None:
        self.replicas, self.optimizer, self.loss = replicas, optimizer, loss
        self.half = precision == "bfloat16"
        # What is drawn or kept anew in every step, at lengths of their own, is neither compiled nor recorded.
        self.may_record = not replicas.changing
        self.may_fuse = self.may_record and isinstance(replicas.first, Stack) and next(replicas.parameters()).is_cuda
        self.layers = len(replicas.first.mixers) if isinstance(replicas.first, Stack) else 1
        self._seen: dict[tuple[int, ...], int] = {}
        self._recorded: dict[tuple[int, ...], Recording] = {}

    def __call__(self, rows: ReplicaRows, rates: Tensor, steps: Tensor) -> Tensor:
        shape = tuple(rows.inputs.shape)
        if shape in self._recorded:
            return self._recorded[shape].replay(rows, rates, steps)
        if self.may_fuse and worth_fusing(rows.inputs.numel(), self.layers):
            self.fuse()
        self._seen[shape] = self._seen.get(shape, 0) + 1
        if self.may_record and rows.inputs.is_cuda and self._seen[shape] > WARM_UPS:
            # Recording does not run: the step itself is the first replay.
            self._recorded[shape] = Recording(self, rows, rates, steps)
            return self._recorded[shape].replay(rows, rates, steps)
        return self.plain(rows, rates, steps)

    def fuse(self) -> None:
        for part in cast(list[Stack], list(self.replicas.parts)):
            part.fuse()
        self.may_fuse = False
        self._seen.clear()  # what is compiled needs its warm-ups before it is recorded

    def plain(self, rows: ReplicaRows, rates: Tensor, steps: Tensor) -> Tensor:
        """The step as it reads."""
        loss = self.gradient(rows, steps)
        return torch.stack((loss, self.optimizer.step(rates, steps)))

    def gradient(self, rows: ReplicaRows, steps: Tensor) -> Tensor:
        """Add each replica's gradient to the matrix of gradients; `steps` counts the updates of each, from 1."""
        with torch.autocast(rows.inputs.device.type, torch.bfloat16, enabled=self.half):
            loss = self.loss(self.replicas, rows, steps)
        loss.sum().backward()
        return loss.detach()


class Recording:
    """A step recorded with its own input tensors."""

    def __init__(self, stepper: Stepper, rows: ReplicaRows, rates: Tensor, steps: Tensor) -> None:
        self.rows = ReplicaRows(*(part.clone() for part in rows))
        self.rates, self.steps = rates.clone(), steps.clone()
        self.graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(self.graph):
            self.told = stepper.plain(self.rows, self.rates, self.steps)

    def replay(self, rows: ReplicaRows, rates: Tensor, steps: Tensor) -> Tensor:
        for kept, given in zip((*self.rows, self.rates, self.steps), (*rows, rates, steps)):
            kept.copy_(given)
        self.graph.replay()
        return self.told.clone()
