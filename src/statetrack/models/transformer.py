"""The transformer: causal attention over everything so far, so its memory grows with every step.

Positions are learned vectors added to the embedding, or, with `rotary`, turn queries and keys. Either way there are
`positions` of them, and a longer sequence is refused.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from statetrack import ops
from statetrack.errors import BadInput
from statetrack.models.layers import Linear, per_row
from statetrack.models.sequence import Mixer, Shape, Stack, State, whole_numbers


class Attention(Mixer):
    """softmax(q k^T / sqrt(d)) v over the past; the state is the keys and values so far."""

    def __init__(self, dim: int, heads: int, positions: int, rotary: bool) -> None:
        super().__init__()
        self.heads, self.head_dim, self.positions, self.rotary = heads, dim // heads, positions, rotary
        self.project = Linear(dim, 3 * dim, bias=False)
        self.out = Linear(dim, dim, bias=False)

    def state_shapes(self) -> list[Shape]:
        """At most: a cache begins empty and grows to this."""
        return [(self.heads, self.positions, self.head_dim)] * 2

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        q, k, v = self.project(x).unflatten(-1, (3, self.heads, self.head_dim)).permute(2, 0, 3, 1, 4)
        past = state[0].shape[2]
        if self.rotary:
            q, k = rotate(q, past), rotate(k, past)
        keys, values = (torch.cat([old.to(new.dtype), new], dim=2) for old, new in zip(state, (k, v)))
        steps = x.shape[1]
        if past == 0:
            y = ops.causal_attention(q, keys, values)
        else:
            seen = torch.ones(steps, past + steps, dtype=torch.bool, device=x.device).tril(past)
            y = F.scaled_dot_product_attention(q, keys, values, attn_mask=seen)
        return self.out(y.transpose(1, 2).flatten(-2)), (keys, values)


def rotate(x: Tensor, past: int) -> Tensor:
    """Turn the pair (x_i, x_{i+d/2}) at position p by the angle p / 10000^(2i/d)."""
    steps, half = x.shape[-2], x.shape[-1] // 2
    place = torch.arange(past, past + steps, device=x.device, dtype=torch.float32)
    speed = 10000.0 ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
    angle = place[:, None] * speed
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


class FeedForward(Mixer):
    """W_2 gelu(W_1 x)."""

    def __init__(self, dim: int, inside: int) -> None:
        super().__init__()
        self.up, self.down = Linear(dim, inside), Linear(inside, dim)

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        return self.down(F.gelu(self.up(x))), ()


class Transformer(Stack):
    """Layers of attention and a feed-forward net, each after an RMSNorm and with a residual. `feed` is the width inside
    the latter, four times `dim` where it is not given.
    """

    recurrent = False

    def __init__(
        self, *, inputs: int, outputs: int, layers: int = 4, heads: int = 4, dim: int = 64, positions: int = 2048,
        rotary: bool = False, feed: int | None = None,
    ) -> None:  # fmt: skip
        feed = 4 * dim if feed is None else feed
        whole_numbers(feed=feed, inputs=inputs, layers=layers, heads=heads, dim=dim, positions=positions)
        if dim % heads or (rotary and dim // heads % 2):
            raise BadInput(f"dim {dim} cannot be shared among {heads} heads of {'even' if rotary else 'whole'} width")
        mixers: list[Mixer] = []
        for _ in range(layers):
            mixers += [Attention(dim, heads, positions, rotary), FeedForward(dim, feed)]
        super().__init__(inputs, outputs, dim, mixers)
        self.positions = positions
        self.place = None if rotary else nn.Parameter(0.02 * torch.randn(positions, dim))

    def initial_state(self, batch: int, device: torch.device | str | None = None) -> State:
        own = self.embedding.weight
        empty = [(heads, 0, width) for heads, _, width in self.state_shapes()]
        return tuple(own.new_zeros(batch, *shape, device=device or own.device) for shape in empty)

    def embed(self, ids: Tensor, state: State) -> Tensor:
        past = state[0].shape[2]
        until = past + ids.shape[1]
        if until > self.positions:
            raise BadInput(f"{until} tokens are more than this transformer's {self.positions} positions")
        x = self.embedding(ids)
        return x if self.place is None else x + per_row(self.place[..., past:until, :], 2, len(ids))
