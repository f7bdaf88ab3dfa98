"""The linear RNN: h_t = A h_{t-1} + B x_t, y_t = C h_t + c, with x_t the token as a one-hot vector.

B x_t is an embedding. If every token has one of its own, the recurrence has an input bias (the part that all embeddings
share), which is what counting to a moving threshold needs. With `bias=False` token 0 is the zero vector, and A alone
moves h.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from statetrack import ops
from statetrack.models.layers import Embedding, Linear, affine
from statetrack.models.sequence import SequenceModel, Shape, State, whole_numbers


class LinearRNN(SequenceModel):
    """One linear recurrence with a dense A that starts at the identity: what training finds first is a counter."""

    def __init__(
        self, *, inputs: int, outputs: int, hidden: int = 128, bias: bool = True, learned_start: bool = False
    ) -> None:
        super().__init__(inputs, outputs)
        whole_numbers(hidden=hidden)
        self.hidden = hidden
        self.embedding = Embedding(inputs, hidden, silent_zero=not bias)
        self.A = nn.Parameter(torch.eye(hidden))
        self.head = Linear(hidden, outputs)
        if learned_start:
            self.learn_start()

    def state_shapes(self) -> list[Shape]:
        return [(self.hidden,)]

    def no_decay(self) -> set[str]:
        """Weight decay on A would be a forgetting that nobody asked for."""
        return super().no_decay() | {"A"}

    @property
    def takes_noise(self) -> bool:  # type: ignore[override]
        """On a GPU; on a CPU the bits of noise that is put on step by step stay what they are."""
        return self.A.is_cuda and self.A.dtype != torch.float64

    def forward_from(self, ids: Tensor, state: State, noise: ops.Noise | None = None) -> tuple[Tensor, State]:
        """To a linear recurrence noise is one more input: A (h + s) + B x = A h + (B x + A s)."""
        Bx = self.embedding(ids)
        if noise is not None:
            with torch.autocast(ids.device.type, enabled=False):
                Bx = Bx + affine(before_steps(noise, Bx), self.A, None)
        if self.A.dim() == 2:
            h, last = ops.linear_scan(self.A, Bx, state[0])
        else:  # the scan takes one matrix, and replicas have one each
            own = (part.unflatten(0, (len(self.A), -1)) for part in (Bx, state[0]))
            h, last = (part.flatten(0, 1) for part in torch.vmap(ops.linear_scan)(self.A, *own))
        return self.head(h), (last if noise is None else noise.moved(last, ids.shape[1] - 1),)


def before_steps(noise: ops.Noise, x: Tensor) -> Tensor:
    """What moves a state (rows, H) before every step, like x (rows, T, H): nothing before the first."""
    rows, steps, hidden = x.shape
    moves = noise.moves(steps, rows // len(noise.keys) * hidden, x.dtype)
    of_replicas = torch.stack(list(moves), dim=1).unflatten(2, (-1, hidden))  # (R, T, B, H)
    return F.pad(of_replicas.transpose(1, 2).flatten(0, 1)[:, :-1], (0, 0, 1, 0))
