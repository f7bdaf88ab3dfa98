"""A running sum against a threshold, on the linear RNN: exact in float32 while the sum is below 2^24.

h_t = h_{t-1} + increment[token],   logit of class 1 minus that of class 0 = 2 (h_t - threshold)
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from statetrack.errors import BadInput
from statetrack.models.build import model
from statetrack.models.sequence import SequenceModel
from statetrack.models.witnesses.setting import cleared


def counter(increments: Sequence[int], threshold: float) -> SequenceModel:
    """Class 1 where the sum of the increments of the tokens so far is above the threshold, else class 0.

    At least as many ones as zeros so far:

    >>> majority = counter([-1, 1], -0.5)
    >>> majority(torch.tensor([[1, 0, 0, 1]])).argmax(-1).tolist()
    [[1, 1, 0, 1]]
    """
    if len(increments) == 0 or any(step != int(step) for step in increments) or threshold == int(threshold):
        raise BadInput("increments must be whole numbers and the threshold not, so that no sum can hit it")
    made = model("linear-rnn", inputs=len(increments), outputs=2)
    w = cleared(made)
    w["A"][0, 0] = 1.0
    w["embedding.weight"][:, 0] = torch.tensor([float(step) for step in increments])
    w["head.weight"][:, 0] = torch.tensor([-1.0, 1.0])
    w["head.bias"].copy_(torch.tensor([threshold, -threshold]))
    return made
