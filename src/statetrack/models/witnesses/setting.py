"""What the witnesses share: cleared weights, one-hot inputs, and the reading of tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from statetrack.errors import BadInput

Table = Sequence[Sequence[int]] | NDArray[np.integer]

# sigmoid(20) rounds to 1 in float32, and sigmoid(-20) is 2e-9.
SATURATED = 20.0


def cleared(model: nn.Module) -> dict[str, Tensor]:
    """The model's weights by name, all set to zero, so that what a witness does not set does nothing."""
    weights = {name: parameter.data for name, parameter in model.named_parameters()}
    for weight in weights.values():
        weight.zero_()
    return weights


def one_hot_inputs(w: dict[str, Tensor]) -> None:
    """Make a stack's first block see token i as the i-th unit vector: column i of a projection is what token i does."""
    tokens, dim = w["embedding.weight"].shape
    w["embedding.weight"].copy_(torch.eye(tokens, dim))
    w["norms.0.weight"].fill_(1 / math.sqrt(dim))  # the norm makes a unit vector sqrt(dim) long
    w["final_norm.weight"].fill_(1.0)


def table(name: str, values: Table, below: int) -> NDArray[np.int64]:
    """A two-dimensional table of whole numbers in range(below)."""
    array = np.asarray(values)
    if array.ndim != 2 or array.size == 0 or array.dtype.kind not in "iu":
        raise BadInput(f"{name} must be a table of whole numbers with two dimensions; got shape {array.shape}")
    if array.min() < 0 or array.max() >= below:
        raise BadInput(f"{name} has entries from {array.min()} to {array.max()}; allowed: 0 to {below - 1}")
    return array.astype(np.int64)


def classes(answers: Sequence[int] | NDArray[np.integer], states: int, outputs: int | None) -> tuple[list[int], int]:
    """An answer for each state, and the number of classes (one more than the largest answer unless given)."""
    chosen = [int(answer) for answer in answers]
    count = max(chosen, default=0) + 1 if outputs is None else outputs
    if len(chosen) != states or not all(0 <= answer < count for answer in chosen):
        raise BadInput(f"answers must be {states} numbers from 0 to {count - 1}, one for each state; got {chosen}")
    return chosen, count
