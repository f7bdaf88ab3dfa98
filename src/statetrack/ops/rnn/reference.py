"""The classic cells, one step after the other, for autograd to differentiate: slow, and right by inspection.

x holds the products with the input and their biases, for all steps and gates; W h is the product with the state.

    tanh    h' = tanh(x + W h)
    gru     r, z = sigmoid(x_r + W_r h), sigmoid(x_z + W_z h)
            n = tanh(x_n + r (W_n h + b)),   h' = (1 - z) n + z h
    lstm    i, f, o = sigmoid(x_i + W_i h), sigmoid(x_f + W_f h), sigmoid(x_o + W_o h)
            c' = f c + i tanh(x_g + W_g h),  h' = o tanh(c')

The gates come in torch's order: r, z, n and i, f, g, o.
"""

from __future__ import annotations

import torch
from torch import Tensor

from statetrack.ops.noise import Noise

State = tuple[Tensor, ...]
GATES = {"tanh": 1, "gru": 3, "lstm": 4}


def rnn_reference(
    cell: str,
    x: Tensor,
    weight: Tensor,
    state: State,
    bias: Tensor | None,
    noise: Noise | None,
    layer: int,
    layers: int,
) -> tuple[Tensor, State]:
    """x (R, B, T, G H), weight (R, G H, H), h and c (R, B, H), bias (R, H), all of one dtype -> h of every step, state.

    Noise comes between the steps; the last state has none.
    """
    outputs = []
    for time, x_t in enumerate(x.unbind(2)):
        if noise is not None and time > 0:
            state = moved(state, noise, time - 1, layer, layers)
        state = STEPS[cell](x_t, state[0] @ weight.mT, state, bias)
        outputs.append(state[0])
    return torch.stack(outputs, dim=2), state


def tanh_step(x: Tensor, Wh: Tensor, state: State, bias: Tensor | None) -> State:
    return (torch.tanh(x + Wh),)


def gru_step(x: Tensor, Wh: Tensor, state: State, bias: Tensor | None) -> State:
    x_r, x_z, x_n = x.chunk(3, -1)
    h_r, h_z, h_n = Wh.chunk(3, -1)
    r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * (h_n if bias is None else h_n + bias.unsqueeze(1)))
    return ((1 - z) * n + z * state[0],)


def lstm_step(x: Tensor, Wh: Tensor, state: State, bias: Tensor | None) -> State:
    i, f, g, o = (x + Wh).chunk(4, -1)
    c = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


STEPS = {"tanh": tanh_step, "gru": gru_step, "lstm": lstm_step}


def moved(state: State, noise: Noise, time: int, layer: int, layers: int) -> State:
    """h, and c, with the noise that they get after step `time` as one layer of a state (R x B, layers, H)."""
    found = []
    for number, part in enumerate(state):
        hidden = part.shape[-1]
        all_layers = part.new_zeros(part.numel() // hidden, layers, hidden)
        found.append(part + noise.of_tensor(number).moved(all_layers, time)[:, layer].view_as(part))
    return tuple(found)
