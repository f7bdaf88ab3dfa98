"""A bit that is set and held, on the linear RNN: h <- h / 2 + 1 sets it, h <- h / 2 - 1 clears it, h <- h / 2 holds it.

|h| stays below 2, so half of it never outweighs the next write, and halving keeps the sign. In exact arithmetic that is
right at every length. In float32 the state is 0 after about 150 holds in a row.
"""

from __future__ import annotations

import torch

from statetrack.models import model
from statetrack.models.sequence import SequenceModel
from statetrack.models.witnesses.setting import cleared


def latch() -> SequenceModel:
    """Tokens of `flip_flop`: 0 holds, 1 clears, 2 sets; the learned start is a cleared bit.

    >>> latch()(torch.tensor([[2, 0, 1, 0]])).argmax(-1).tolist()
    [[1, 1, 0, 0]]
    """
    made = model("linear-rnn", inputs=3, outputs=2, learned_start=True)
    w = cleared(made)
    w["A"][0, 0] = 0.5
    w["start.0"][0] = -1.0
    w["embedding.weight"][1:, 0] = torch.tensor([-1.0, 1.0])
    w["head.weight"][1, 0] = 1.0
    return made
