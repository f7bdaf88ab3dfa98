"""A product of permutations, for ever, on reflections with gain.

The state starts as a matrix with s on the diagonal and -s elsewhere. A token's permutation p is a product of
transpositions, each a reflection along (e_i - e_j) / sqrt 2 with b = 2, which swaps two rows; together they move row i
to row p(i), and the tanh with gain a = 3/2 pulls every entry back to +-s, where s = tanh(a s). After the tokens
p_1, ..., p_t the entry (P(i), i) is +s for P = p_t ... p_1. A permutation of n points takes at most n - 1
transpositions: 2 reflections for S3, 4 for S5.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from statetrack.errors import BadInput
from statetrack.models.reflections import E88Reflections
from statetrack.models.sequence import SequenceModel
from statetrack.models.witnesses.setting import SATURATED, Table, cleared, one_hot_inputs, table

POINT = 0.8586  # tanh(1.5 s) = s
SHARP = 20.0  # the readout's gelu is nearly a relu there


def permutations(moves: Table, answers: Table) -> SequenceModel:
    """moves[token] is the permutation that a token applies to what was before; answers[c] is the product of class c.

    Point i goes to moves[token][i]. Tokens that turn three points, and the class is how far:

    >>> turns = [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
    >>> permutations(turns, turns)(torch.tensor([[1, 1, 1, 2]])).argmax(-1).tolist()
    [[1, 2, 0, 2]]
    """
    points = np.asarray(moves).shape[-1]
    acts, products = table("moves", moves, below=points), table("answers", answers, below=points)
    for what, rows in (("moves", acts), ("answers", products)):
        if rows.shape[1] != points or (np.sort(rows, axis=1) != np.arange(points)).any():
            raise BadInput(f"every row of {what} must be a permutation of 0 to {points - 1}")
    inputs, outputs = len(acts), len(products)
    made = E88Reflections(
        inputs=inputs, outputs=outputs, heads=1, n_state=points, dim=inputs + outputs, hidden=outputs,
        reflections=max(1, points - 1), learned_start=True,
    )  # fmt: skip
    w = cleared(made)
    one_hot_inputs(w)
    w["start.0"][0] = POINT * (2 * torch.eye(points) - 1)
    set_reflections(w, acts)
    set_readout(w, products)
    return made


def set_reflections(w: dict[str, Tensor], acts: NDArray[np.int64]) -> None:
    """Column `token` of the projections: a key for each transposition and b = 2; b = 0 for those not needed."""
    points = acts.shape[1]
    keys = w["mixers.0.keys.weight"].view(-1, points, w["mixers.0.keys.weight"].shape[1])
    w["mixers.0.rate.project.bias"].fill_(-SATURATED)
    for token, permutation in enumerate(acts):
        for j, (a, b) in enumerate(transpositions(permutation)):
            keys[j, a, token], keys[j, b, token] = 1.0, -1.0
            w["mixers.0.rate.project.weight"][j, token] = 2 * SATURATED


def set_readout(w: dict[str, Tensor], products: NDArray[np.int64]) -> None:
    """Hidden unit c is on only for a state that is permutation c, and says class c."""
    count, points = products.shape
    # The sum of the entries (g(i), i) is n s for the right g and at least 4 s less for another, since two permutations
    # that differ do so at two points or more: minus (n - 2) s, that is +2 s against -2 s or less.
    match = torch.zeros(count, points, points)
    for entries, permutation in zip(match, products):
        entries[torch.from_numpy(permutation), torch.arange(points)] = 1.0
    w["mixers.0.read.weight"].copy_(SHARP * match.flatten(1))
    w["mixers.0.read.bias"].fill_(-SHARP * (points - 2) * POINT)
    w["mixers.0.out.weight"][-count:] = torch.eye(count)
    w["head.weight"][:, -count:] = torch.eye(count)


def transpositions(permutation: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Swaps that make the permutation, the first to be applied first: at most one fewer than it has points.

    >>> transpositions(np.array([1, 2, 0]))  # swap 1 and 2, then 0 and 1: 0 -> 1, 1 -> 2, 2 -> 1 -> 0
    [(1, 2), (0, 1)]
    """
    swaps = []
    left = [int(image) for image in permutation]
    for i in range(len(left)):
        while left[i] != i:
            # Take off, at the end of the product, a swap of the images i and left[i].
            j = left[i]
            swaps.append((i, j))
            left = [i if image == j else j if image == i else image for image in left]
    return swaps[::-1]
