"""A running majority on E88 as the design document has it, among numbers so small that tanh does nothing to them.

In float32 tanh(s) = s for |s| below about 2^-12, and a decay exp(-dt) with a dt below 2^-25 rounds to 1. There the
state is a plain sum. Ones are counted in one column and zeros in another, in steps of 2^-34, and the difference is
read:

    s_1 <- tanh(1 s_1 + step [x = 1]),   s_0 <- tanh(1 s_0 + step [x = 0]),   answer 1 where s_1 >= s_0

It is right until a column leaves the range, after about 2^21 inputs of one kind. In exact arithmetic a decay below 1
fades, and tanh(s) < s.
"""

from __future__ import annotations

import torch

from statetrack.models import model
from statetrack.models.sequence import SequenceModel
from statetrack.models.witnesses.setting import cleared, one_hot_inputs
from statetrack.models.witnesses.toggle import HEADS, N

STEP = 2.0**-34
LARGE = 1e6


def tiny_counter() -> SequenceModel:
    """Class 1 where at least half of the tokens so far are 1.

    >>> tiny_counter()(torch.tensor([[1, 0, 0, 1]])).argmax(-1).tolist()
    [[1, 1, 0, 1]]
    """
    made = model("e88-1l-small", inputs=2, outputs=2)
    w = cleared(made)
    one_hot_inputs(w)
    q, k, v = w["mixers.0.project.weight"].view(3, HEADS, N, -1)[:, 0]
    q[0, :2] = k[0, :2] = LARGE
    v[0, 1] = v[1, 0] = 2 * STEP  # silu(z) is z / 2 for a tiny z
    w["mixers.0.decay.project.weight"][0, :2] = -200.0
    w["mixers.0.out.weight"][-1, :2] = torch.tensor([1.0, -1.0]) / STEP
    w["embedding.weight"][:, -2] = 1.0  # a constant, by which half a step is added
    w["head.weight"][1, -2:] = torch.tensor([0.5, 1.0])
    return made
