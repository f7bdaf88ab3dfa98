"""Parity on E88 as the design document has it, by two neighbouring numbers at which the CPU kernel's tanh falls.

Every entry of that E88 moves by its own increasing map, s <- tanh(d s + v), and increasing maps make no cycle. The
kernel's tanh, a fraction of two polynomials, is not increasing everywhere: at some neighbouring float32 numbers x < y
it gives tanh(x) = q and tanh(y) = p with p < q, also neighbours. So one v moves p to x and q to y, and flips the two,
and another v keeps them. The state is p or q, the parity.

What is found depends on how this machine rounds, so it is looked for: weights are tried until the network itself flips
and keeps. torch's tanh is increasing, and with it (kernel "reference") the same weights do nothing of the kind.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from statetrack import ops
from statetrack.errors import BadInput
from statetrack.models import model
from statetrack.models.sequence import SequenceModel
from statetrack.models.witnesses.setting import cleared
from statetrack.models.witnesses.sign import LARGE, decay_input
from statetrack.models.witnesses.toggle import HEADS, N, silu_inverse

Numbers = NDArray[np.float32]
DECAY = 0.999
LOOK_FROM, LOOK_AT = 0.6, 64 * 4096  # where neighbouring numbers lie as far apart as their tanh
NEAR = 8
NEIGHBOURS = 400  # weights tried around the one that real numbers would need
AMPLIFY = 2.0**24  # makes the step between p and q about 1


def kernel_tanh(x: Numbers) -> Numbers:
    """What the CPU kernel makes of numbers; their count is a multiple of 64."""
    one = torch.ones(len(x) // 64, 1, 64, 1)
    nothing = torch.zeros(len(x) // 64, 1, 64)
    _, state = ops.e88_scan(one, one, torch.from_numpy(x).reshape(one.shape), nothing, nothing, kernel="cpu")
    values: Numbers = state.numpy().reshape(-1)
    return values


def falling_pair() -> SequenceModel:
    """Parity in two neighbouring numbers; refused where this machine's kernel has no such pair.

    The kernel must be the CPU's, which is the default without a GPU.
    """
    for p, q, flip_at, keep_at in falling_pairs():
        made = network(p, q)
        keeps = find_write(made, 0, float(keep_at) - DECAY * float(p), (p, q), (p, q))
        if keeps and find_write(made, 1, float(flip_at) - DECAY * float(p), (p, q), (q, p)):
            return made
    raise BadInput("this machine's tanh falls at no pair of neighbouring numbers that a network could use")


def falling_pairs() -> Iterator[tuple[np.float32, np.float32, np.float32, np.float32]]:
    """Numbers p < q, an x whose tanh is q and its neighbour's p, and a number near it where that is the other way."""
    first = np.float32(LOOK_FROM).view(np.int32)
    x = np.arange(first, first + LOOK_AT, dtype=np.int32).view(np.float32)
    y = kernel_tanh(x)
    for i in np.flatnonzero(np.diff(y) < 0).tolist():
        q, p = y[i], y[i + 1]
        near = range(max(0, i - NEAR), min(len(x) - 1, i + NEAR))
        keeps = [j for j in near if y[j] == p and y[j + 1] == q]
        if keeps and q - p == x[i + 1] - x[i]:
            yield p, q, x[i], x[keeps[0]]


def network(p: np.float32, q: np.float32) -> SequenceModel:
    """A network that starts at p and reads whether the state is above the middle of p and q; its writes are not set."""
    made = model("e88-1l-small", inputs=2, outputs=2, learned_start=True)
    w = cleared(made)
    w["embedding.weight"][:, :2] = torch.eye(2)
    w["embedding.weight"][:, -1] = -float(p) * AMPLIFY
    w["norms.0.weight"][:2] = 1.0
    w["final_norm.weight"].fill_(1.0)
    size = token_size(made)
    query, key, _ = w["mixers.0.project.weight"].view(3, HEADS, N, -1)[:, 0, 0, :2]
    query.fill_(LARGE / size)
    key.fill_(LARGE / size)
    w["mixers.0.decay.project.weight"][0, :2] = decay_input(DECAY) / size
    w["start.0"][0, 0, 0] = float(p)
    w["mixers.0.out.weight"][-1, 0] = AMPLIFY
    w["head.weight"][1, -1] = 1.0
    w["head.weight"][1, :2] = -0.5 * float(q - p) * AMPLIFY
    return made


@torch.no_grad()
def token_size(made: SequenceModel) -> float:
    """How large a token's own dimension comes to the mixer."""
    norm, embedding = made.get_submodule("norms.0"), made.get_submodule("embedding")
    return float(norm(embedding(torch.tensor([[0]])))[0, 0, 0])


@torch.no_grad()
def find_write(
    made: SequenceModel, token: int, v: float, before: tuple[np.float32, ...], after: tuple[np.float32, ...]
) -> bool:
    """Set the token's write to about v, such that the network's own step leads from `before` to `after`."""
    weight = made.get_parameter("mixers.0.project.weight").view(3, HEADS, N, -1)[2, 0, 0]
    middle = np.float32(silu_inverse(v) / token_size(made)).view(np.int32)
    state = torch.zeros(len(before), HEADS, N, N)
    state[:, 0, 0, 0] = torch.tensor([float(value) for value in before])
    ids = torch.full((len(before), 1), token)
    for candidate in np.arange(middle - NEIGHBOURS, middle + NEIGHBOURS, dtype=np.int32).view(np.float32):
        weight[token] = float(candidate)
        _, (reached,) = made.forward_from(ids, (state,))
        if reached[:, 0, 0, 0].tolist() == [float(value) for value in after]:
            return True
    return False
