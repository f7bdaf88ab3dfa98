"""Noise on the state while a network is trained: after every step each number of the state moves by +s or -s.

A network that is right all the same keeps its states apart by more than s, and pulls them back: that is what holds for
ever, and what a proof needs. There is no noise in validation and tests. The signs are a function of (seed, update,
tensor of the state, time, row, place): a run that goes on draws what an uncut one draws, a replica what it draws alone,
and a GPU the same bits as a CPU.

    key   = mix(mix(digest(seed) + update STEP) + (time 64 + tensor) STEP)
    signs = the 64 bits of mix(key + (n + 1) STEP), for the numbers 64 n .. 64 n + 63 of a replica's rows

E88, its reflections, DeltaNet, M2RNN and the classic cells put it on inside their scans, on a GPU the linear RNN as
well. Any other is run step by step, from the state that the step before left, and costs what it costs in a stream.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor

from statetrack.errors import BadInput
from statetrack.models import Replicas
from statetrack.models.sequence import SequenceModel
from statetrack.ops.noise import Noise, keys_of


class StateNoise:
    """Noise of size s for replicas with these seeds: sign noise, or Gaussian noise of this deviation."""

    def __init__(self, size: float, seeds: Sequence[int], device: torch.device, kind: str = "sign") -> None:
        self.size, self.gaussian = size, kind == "gaussian"
        digests = [hashlib.sha256(f"state noise\n{seed}".encode()).digest()[:8] for seed in seeds]
        self.keys = torch.tensor([int.from_bytes(each, "little", signed=True) for each in digests], device=device)

    def logits(self, replicas: Replicas, ids: Tensor, updates: Tensor) -> Tensor:
        """ids (R, B, T) -> logits (R, B, T, outputs), with noise on the state after every step."""
        noise = Noise(keys_of(self.keys, updates), self.size, self.gaussian)
        return replicas.noisy(ids, noise) if replicas.takes_noise else step_by_step(replicas, ids, noise)


def step_by_step(replicas: Replicas, ids: Tensor, noise: Noise) -> Tensor:
    """The logits of any network with a state, with noise on it after every step."""
    state = replicas.initial_state(ids.shape[1], ids.device)
    steps = []
    for time, some in enumerate(ids.split(1, dim=2)):
        logits, state = replicas.forward_from(some, state)
        steps.append(logits)
        state = tuple(noise.of_tensor(number).moved(part, time) for number, part in enumerate(state))
    return torch.cat(steps, dim=2)


def check_state(model: SequenceModel) -> None:
    """Refuse noise on the state of a model that keeps none, or that draws or keeps something of its own: step by step
    it would see another batch.
    """
    name = model.text or type(model).__name__
    if not model.recurrent or not model.state_shapes():
        raise BadInput(f"{name} keeps no state of constant size that noise could be put on")
    if model.changing:
        raise BadInput(f"{name} uses dropout, batch norm or the like: state_noise is for models without")
