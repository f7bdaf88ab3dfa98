"""A product of swaps of two points, for ever, on one layer of E88 with gain: one reflection for each input.

Under one repeated input this layer has no period above 2, and no more is needed: a swap has the period 2, and swaps
make all of S_n. The state starts as a matrix with s on the diagonal and -s elsewhere. A token's key is
(e_i - e_j) / sqrt 2, and with a = 3/2 and b = 2 a the step is

    S <- tanh(a (I - 2 k k^T) S)     rows i and j change places, and every entry goes back to +-s, s = tanh(a s)

After the tokens the entry (P(i), i) is +s for the product P. One query reads every column: q_p = p + 1 makes of column
i a number that grows with P(i), and the class of a permutation g scores the sum over i of g(i) P(i), less half of the
sum of g(i)^2: most for g = P.
"""

from __future__ import annotations

import numpy as np
import torch

from statetrack.errors import BadInput
from statetrack.models import model
from statetrack.models.sequence import SequenceModel
from statetrack.models.witnesses.permutations import POINT
from statetrack.models.witnesses.setting import Table, cleared, one_hot_inputs, table
from statetrack.models.witnesses.toggle import silu_inverse

GAIN = np.log(3)  # 2 sigmoid(log 3) = 3/2, and 4 sigmoid(log 3) = 3
SMALL = 0.2  # of a key's two entries: silu is never below -.278
READ = 1000.0


def swaps(moves: Table, answers: Table) -> SequenceModel:
    """moves[token] is the pair of points that a token swaps; answers[c] is the product of class c, as a list of images.

    Swaps of neighbours among three points; the class says where point 0 is, by one product for each place:

    >>> products = [[0, 1, 2], [1, 0, 2], [1, 2, 0], [0, 2, 1], [2, 0, 1], [2, 1, 0]]
    >>> swaps([[0, 1], [1, 2]], products)(torch.tensor([[0, 1, 0]])).argmax(-1).tolist()
    [[1, 4, 5]]
    """
    points = np.asarray(answers).shape[-1]
    pairs, products = table("moves", moves, below=points), table("answers", answers, below=points)
    if pairs.shape[1] != 2 or (pairs[:, 0] == pairs[:, 1]).any():
        raise BadInput("every row of moves must be a pair of points to swap")
    tokens, count = len(pairs), len(products)
    made = model(
        "e88-gain-1l-small", inputs=tokens, outputs=count, heads=1, n_state=points, dim=tokens + points,
        learned_start=True,
    )  # fmt: skip
    w = cleared(made)
    one_hot_inputs(w)
    w["start.0"][0] = POINT * (2 * torch.eye(points) - 1)
    q, k, _ = w["mixers.0.project.weight"].view(3, points, -1)
    q[:, :tokens] = READ * torch.arange(1.0, points + 1).unsqueeze(1)
    for token, (i, j) in enumerate(pairs):
        k[i, token], k[j, token] = silu_inverse(SMALL), silu_inverse(-SMALL)
    w["mixers.0.decay.project.bias"].fill_(GAIN)
    w["mixers.0.beta.project.bias"].fill_(GAIN)
    read_columns(w, products, points)
    return made


def read_columns(w: dict[str, torch.Tensor], products: np.ndarray, points: int) -> None:
    """Column i reads s (2 q_P(i) - sum of q): made P(i) + 1 again, each in a dimension of its own.

    The final norm divides by the same number whatever the state is: the columns are always the same numbers in another
    order.
    """
    places = torch.arange(1.0, points + 1)
    q = places / places.norm()
    w["mixers.0.out.weight"][-points:] = torch.eye(points)
    columns = POINT * (2 * q - q.sum())  # what the points 0, 1, ... make of a column
    scale = torch.cat([columns, torch.ones(1)]).square().sum().div(len(w["final_norm.weight"])).sqrt()
    images = torch.from_numpy(products + 1).float()
    # A column c says the place (c scale / POINT + sum q) / 2 norm; the score is sum g(i) place - g(i)^2 / 2.
    slope = scale / (2 * POINT) * places.norm()
    w["head.weight"][:, -points:] = images * slope
    w["head.bias"].copy_(images.sum(1) * q.sum() / 2 * places.norm() - images.square().sum(1) / 2)
