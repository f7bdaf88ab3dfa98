"""Any finite automaton, for ever, on one layer of the tanh RNN, the GRU or the LSTM.

A unit for each pair (p, x) is +1 where the last token was x and came in state p, else -1. Exactly one is on, and the
state now is delta(p, x). The next pair is (q, y) if that state is q and the token is y: an AND, which one tanh unit
does.

    h'_(q,y) = tanh(G (onehot_y - 3/2 + [q = start] + s (m_q / 2 - [q = start]) + sum of h_(p,x) / 2))

The sum is over the m_q pairs with delta(p, x) = q; with m_q / 2 it is 1 in state q and 0 in another. One more unit s is
0 before the first token (as all units are) and 1 afterwards, which is how the start state enters. The argument is G / 2
for the right pair and -G / 2 or less for others, and with G = 40 the tanh is exactly +-1 in float32.

With gates that are open or shut throughout, a GRU (r = 1, z = 0) is that tanh RNN, and an LSTM (i = o = 1, f = 0) has
h = tanh(tanh(...)), the same with tanh(1) in the place of 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from statetrack.errors import BadInput
from statetrack.models.build import model
from statetrack.models.sequence import SequenceModel
from statetrack.models.witnesses.setting import Table, classes, cleared, table

STEEP = 40.0
ON = {"tanh": 1.0, "gru": 1.0, "lstm": math.tanh(1.0)}  # what a unit is that is on
BLOCK = {"tanh": 0, "gru": 2, "lstm": 2}  # of torch's weights: the one inside of the tanh
GATES = {"tanh": {}, "gru": {0: True, 1: False}, "lstm": {0: True, 1: False, 3: True}}  # by block: open or shut


def automaton(
    delta: Table, answers: Sequence[int] | NDArray[np.integer], *, start: int = 0, outputs: int | None = None,
    cell: str = "tanh",
) -> SequenceModel:  # fmt: skip
    """delta[state][token] is the next state, answers[state] the class to say there.

    Count ones up to three and stay:

    >>> three = automaton([[0, 1], [1, 2], [2, 3], [3, 3]], [0, 0, 0, 1])
    >>> three(torch.tensor([[1, 1, 0, 1, 0]])).argmax(-1).tolist()
    [[0, 0, 0, 1, 1]]
    """
    moves = table("delta", delta, below=len(delta))
    states, tokens = moves.shape
    answer, count = classes(answers, states, outputs)
    if not 0 <= start < states:
        raise BadInput(f"start is {start}; allowed: 0 to {states - 1}")
    made = model("tanh-rnn", inputs=tokens, outputs=count, hidden=states * tokens + 1, dim=tokens, cell=cell)
    w = cleared(made)
    lead_to = F.one_hot(torch.from_numpy(moves.reshape(-1)), states).float()  # pair (p, x) by state q
    set_recurrence(w, lead_to, F.one_hot(torch.tensor(start), states).float(), cell)
    # Of the pairs that lead to a class all are -1 but one, if any: with their number added that is 2 against 0.
    says = lead_to @ F.one_hot(torch.tensor(answer), count).float()
    w["head.weight"][:, :-1] = says.T
    w["head.bias"].copy_(says.sum(0) * ON[cell])
    return made


def set_recurrence(w: dict[str, Tensor], lead_to: Tensor, begins: Tensor, cell: str) -> None:
    """The equation above; row (q, y), and the last row is s. The gates of a GRU and an LSTM stand open or shut."""
    pairs, states = lead_to.shape
    tokens, units = pairs // states, pairs + 1
    place = BLOCK[cell] * units
    inputs, bias, own = (
        w[name][place : place + units] for name in ("rnn.weight_ih_l0", "rnn.bias_ih_l0", "rnn.weight_hh_l0")
    )
    w["embedding.weight"].copy_(torch.eye(tokens))
    inputs[:-1] = STEEP * torch.eye(tokens).repeat(states, 1)
    bias[:-1] = STEEP * (begins - 1.5).repeat_interleave(tokens)
    bias[-1] = STEEP
    own[:-1, :-1] = STEEP / 2 * lead_to.T.repeat_interleave(tokens, dim=0) / ON[cell]
    own[:-1, -1] = STEEP * (lead_to.sum(0) / 2 - begins).repeat_interleave(tokens) / ON[cell]
    for gate, is_open in GATES[cell].items():
        w["rnn.bias_ih_l0"][gate * units : (gate + 1) * units] = STEEP if is_open else -STEEP
