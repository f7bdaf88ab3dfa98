"""Noise on the state while a network is trained: after every step each number of the state moves by +s or -s.

A network that is right all the same keeps its states apart by more than s, and pulls them back: that is what holds for
ever, and what a proof needs. There is no noise in validation and tests. The signs are a function of (seed, update,
tensor of the state, time, row, place): a run that goes on draws what an uncut one draws, a replica what it draws alone,
and a GPU the same bits as a CPU.

    key   = mix(mix(digest(seed) + update STEP) + (time 64 + tensor) STEP)
    signs = the 64 bits of mix(key + (n + 1) STEP), for the numbers 64 n .. 64 n + 63 of a replica's rows

The network is run step by step, from the state that the step before left, so a step costs what it costs in a stream.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor

from statetrack.errors import BadInput
from statetrack.models import Replicas
from statetrack.models.sequence import SequenceModel
from statetrack.tasks.draws import STEP
from statetrack.training.torch_sampler import mix, signed

MOST_TENSORS = 64  # of a state


class StateNoise:
    """Sign noise of size s for replicas with these seeds."""

    def __init__(self, size: float, seeds: Sequence[int], device: torch.device) -> None:
        self.size = size
        digests = [hashlib.sha256(f"state noise\n{seed}".encode()).digest()[:8] for seed in seeds]
        self.keys = torch.tensor([int.from_bytes(each, "little", signed=True) for each in digests], device=device)

    def logits(self, replicas: Replicas, ids: Tensor, updates: Tensor) -> Tensor:
        """ids (R, B, T) -> logits (R, B, T, outputs), with noise on the state after every step."""
        state = replicas.initial_state(ids.shape[1], ids.device)
        keys = mix(self.keys + updates * signed(STEP))
        steps = []
        for time in range(ids.shape[2]):
            logits, state = replicas.forward_from(ids[:, :, time : time + 1], state)
            steps.append(logits)
            state = tuple(self.moved(part, keys, time * MOST_TENSORS + tensor) for tensor, part in enumerate(state))
        return torch.cat(steps, dim=2)

    def moved(self, part: Tensor, keys: Tensor, at: int) -> Tensor:
        """One tensor of the state, (R x B, ...), with its noise."""
        each = part.numel() // len(keys)
        draws = signs(mix(keys + signed(at * STEP % 2**64)), each)
        return part + self.size * draws.view(part.shape).to(part.dtype)


def signs(keys: Tensor, count: int) -> Tensor:
    """+1 and -1, `count` for every key.

    >>> signs(torch.tensor([3, 4]), 5).tolist()
    [[1, -1, 1, 1, -1], [-1, 1, -1, 1, -1]]
    """
    words = mix(keys[:, None] + torch.arange(1, -(-count // 64) + 1, device=keys.device) * signed(STEP))
    bits = (words[:, :, None] >> torch.arange(64, device=keys.device)) & 1
    return 2 * bits.flatten(1)[:, :count] - 1


def check_state(model: SequenceModel) -> None:
    """Refuse noise on the state of a model that keeps none, or that draws or keeps something of its own: step by step
    it would see another batch.
    """
    name = model.text or type(model).__name__
    if not model.recurrent or not model.state_shapes():
        raise BadInput(f"{name} keeps no state of constant size that noise could be put on")
    if model.changing:
        raise BadInput(f"{name} uses dropout, batch norm or the like: state_noise is for models without")
