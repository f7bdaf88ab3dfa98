"""A network whose read-out leaves out what resists a proof: another network than the trained one, and never called it.

Columns of the state move alone. Some carry the task's state, others nothing that can be relied on, and the read-out of
a trained network listens to both. Here each column is covered by itself, the read-out of those that are not covered is
set to zero, and that network is proved, from a copy.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from statetrack.certificates.boxes import Way, grow
from statetrack.certificates.checker import Checked, Refused, check, hash_of
from statetrack.certificates.checker.network import Network
from statetrack.certificates.checker.networks import NETWORKS
from statetrack.certificates.cover import Columns, Cover, CoveredPart, Floats, PointMaps, proof_of
from statetrack.certificates.points import POINT_WAYS, PointSearch
from statetrack.models import SequenceModel
from statetrack.models.e88 import E88Mixer
from statetrack.tasks.finite import Automaton

LEAST = 1e-3  # the error that is allowed for, or what float32 is off by
COLUMN_WAYS = (Way(2, 0.02), Way(1, 0.05), Way(3, 0.02), Way(2, 0.1, True))
COLUMN_VISITS = 2000  # of one column: those that resist would go on for ever
KEPT = (1000, 8, 4, 3, 2, 1)  # how many columns are kept, those first that tell states apart best
ROWS, STEPS, BURN = 64, 96, 48

Pruned = tuple[SequenceModel, dict[str, Any], Checked]


def proved_pruned(
    task: str, machine: Automaton, model: SequenceModel, kind: str, name: str, until: float, tick: Callable[[str], None]
) -> Pruned | None:
    """A pruned copy of a network and its proof; None where there is none, or nothing to leave out."""
    if not hasattr(model, "mixers"):
        return None
    tensors = {key: tensor.numpy().astype(np.float64) for key, tensor in model.state_dict().items()}
    network = NETWORKS[kind](tensors, machine.steps.shape[1])
    epsilon = max(LEAST, network.float32_error())
    for covers, parts in _choices(network, machine, epsilon, until):
        kept = {column for part in parts for column in part.columns}
        tick(f"pruned to {len(kept)} of {len(PointMaps.of(network).columns)} columns")
        smaller = without(model, kept)
        tensors = {key: tensor.numpy().astype(np.float64) for key, tensor in smaller.state_dict().items()}
        proof = proof_of(task, name, kind, hash_of(tensors), epsilon, covers, parts)
        try:
            return smaller, proof, check(proof, tensors)
        except Refused as error:
            tick(f"refused: {error}")
    return None


def without(model: SequenceModel, kept: set[tuple[int, int]]) -> SequenceModel:
    """A copy whose read-out leaves out all columns, (head, column), but these."""
    smaller = copy.deepcopy(model)
    mixer: Any = smaller.mixers[0]  # type: ignore[index]
    heads, n = mixer.heads, mixer.n_state
    weight = mixer.out.weight if isinstance(mixer, E88Mixer) else mixer.read.weight
    with torch.no_grad():
        each = weight.view(len(weight), 1 if isinstance(mixer, E88Mixer) else n, heads, n)  # row, head, column
        for head, column in np.ndindex(heads, n):
            if (head, column) not in kept:
                each[:, :, head, column] = 0.0
    return smaller


def _choices(
    network: Network, machine: Automaton, epsilon: float, until: float
) -> Iterator[tuple[list[Cover], list[CoveredPart]]]:
    maps = PointMaps.of(network)
    if network.alike_columns:
        search = PointSearch(maps)
        for each in POINT_WAYS:
            if time.monotonic() < until and (found := search.turn(epsilon, each, until)):
                yield found
        return
    for way in COLUMN_WAYS:
        closed: list[tuple[Columns, Cover]] = []
        for column in maps.columns:
            if time.monotonic() > until:
                return
            if (cover := grow(maps, (column,), machine.steps, epsilon, way, until, COLUMN_VISITS)) is not None:
                closed.append(((column,), cover))
        worth = telling(maps, machine, [columns for columns, _ in closed])
        closed = [closed[place] for place in np.argsort(-worth, kind="stable")]
        for count in sorted({min(len(closed), most) for most in KEPT} - {0}, reverse=True):
            chosen = closed[:count]
            yield [cover for _, cover in chosen], [CoveredPart(own, at) for at, (own, _) in enumerate(chosen)]


def telling(maps: PointMaps, machine: Automaton, each: Sequence[Columns]) -> Floats:
    """For each of these columns how far apart its mean states are that belong to different states of the task."""
    rng = np.random.default_rng(0)
    columns = tuple(own[0] for own in each)
    if not columns:
        return np.zeros(0)
    states, at = np.repeat(maps.start_of(columns)[None], ROWS, axis=0), np.zeros(ROWS, np.int64)
    total = np.zeros((machine.states, *states.shape[1:]))
    count = np.zeros(machine.states)
    for step in range(STEPS):
        tokens = rng.integers(0, maps.tokens, ROWS)
        for token in range(maps.tokens):
            states[tokens == token] = maps.image(columns, token, states[tokens == token])
        at = machine.steps[at, tokens].astype(np.int64)
        if step >= BURN:
            np.add.at(total, at, states)
            np.add.at(count, at, 1)
    means = total[count > 0] / count[count > 0][:, None, None]
    spread = means.max(axis=0) - means.min(axis=0)
    return np.asarray(np.linalg.norm(spread, axis=-1))
