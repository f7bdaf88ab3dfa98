"""The classic cells, one step after the other, for autograd to differentiate: right by inspection.

x holds the products with the input and their biases, for all steps and gates; W h is the product with the state.

    tanh    h' = tanh(x + W h)
    gru     r, z = sigmoid(x_r + W_r h), sigmoid(x_z + W_z h)
            n = tanh(x_n + r (W_n h + b)),   h' = (1 - z) n + z h
    lstm    i, f, o = sigmoid(x_i + W_i h), sigmoid(x_f + W_f h), sigmoid(x_o + W_o h)
            c' = f c + i tanh(x_g + W_g h),  h' = o tanh(c')

The gates come in torch's order: r, z, n and i, f, g, o.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from statetrack.ops.noise import Noise

State = tuple[Tensor, ...]
GATES = {"tanh": 1, "gru": 3, "lstm": 4}


def rnn_reference(
    cell: str, x: Tensor, weight: Tensor, state: State, bias: Tensor | None,
    noise: Noise | None = None, layer: int = 0, layers: int = 1,
) -> tuple[Tensor, State]:  # fmt: skip
    """x (R, B, T, G H), weight (R, G H, H), h and c (R, B, H), bias (R, H), all of one dtype -> h of every step, state.

    Noise comes between the steps; the last state has none.
    """
    steps, step, outputs = x.unbind(2), STEPS[cell], []
    moves = None if noise is None else moves_of(state, noise, len(steps), layer, layers)
    for time, x_t in enumerate(steps):
        if moves is not None and time > 0:
            state = tuple(part + by for part, by in zip(state, next(moves)))
        state = step(x_t, weight.mT, state, bias)
        outputs.append(state[0])
    return torch.stack(outputs, dim=2), state


def tanh_step(x: Tensor, W: Tensor, state: State, bias: Tensor | None) -> State:
    return (torch.tanh(torch.baddbmm(x, state[0], W)),)


def gru_step(x: Tensor, W: Tensor, state: State, bias: Tensor | None) -> State:
    (h,) = state
    x_r, x_z, x_n = x.chunk(3, -1)
    Wh_r, Wh_z, Wh_n = torch.bmm(h, W).chunk(3, -1)
    r, z = torch.sigmoid(x_r + Wh_r), torch.sigmoid(x_z + Wh_z)
    n = torch.tanh(x_n + r * (Wh_n if bias is None else Wh_n + bias.unsqueeze(1)))
    return (n + z * (h - n),)


def lstm_step(x: Tensor, W: Tensor, state: State, bias: Tensor | None) -> State:
    h, c = state
    i, f, g, o = torch.baddbmm(x, h, W).chunk(4, -1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


STEPS = {"tanh": tanh_step, "gru": gru_step, "lstm": lstm_step}


def moves_of(state: State, noise: Noise, steps: int, layer: int, layers: int) -> Iterator[State]:
    """What each step moves h, and c, by, as one layer of a state (R x B, layers, H)."""
    replicas, rows, hidden = state[0].shape
    drawn = (noise.of_tensor(n).moves(steps, rows * layers * hidden, h.dtype) for n, h in enumerate(state))
    for parts in zip(*drawn):
        yield tuple(part.view(replicas, rows, layers, hidden)[:, :, layer] for part in parts)


def moved(state: State, noise: Noise, time: int, layer: int, layers: int) -> State:
    """h, and c, with the noise that they get after step `time`."""
    found = []
    for number, part in enumerate(state):
        replicas, rows, hidden = part.shape
        whole = part.new_zeros(replicas * rows, layers, hidden)
        found.append(part + noise.of_tensor(number).moved(whole, time)[:, layer].view_as(part))
    return tuple(found)
