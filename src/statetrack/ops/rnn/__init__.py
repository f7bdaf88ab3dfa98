"""The recurrences of the classic cells: the tanh RNN, the GRU and the LSTM, many networks at once."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from statetrack.errors import BadInput, need, unknown
from statetrack.ops.choose import expect, forced, state_dtype
from statetrack.ops.noise import Noise
from statetrack.ops.rnn.reference import GATES, State, moved, rnn_reference
from statetrack.plugins import usable

KERNELS = ("reference", "triton")
WIDEST = 256  # what a program of the fast kernel can hold of a state
MOST_HELD = 4 * 64 * 64  # and of weights, through all steps


def rnn_scan(
    cell: str, x: Tensor, weight: Tensor, state: State, *, bias: Tensor | None = None, noise: Noise | None = None,
    layer: int = 0, layers: int = 1, kernel: str | None = None,
) -> tuple[Tensor, State]:  # fmt: skip
    """Run a cell over a sequence and return (out, state): h at every step (B,T,H), and the last h, for an LSTM also c.

        tanh    h' = tanh(x + W h)
        gru     r, z = sigmoid(x + W h),      n = tanh(x_n + r (W_n h + b)),    h' = (1 - z) n + z h
        lstm    i, f, o = sigmoid(x + W h),   c' = f c + i tanh(x_g + W_g h),   h' = o tanh(c')

    x (B,T,G H) holds the products with the input and their biases, for the G = 1, 3 or 4 gates in torch's order;
    weight (G H, H) is torch's weight_hh, bias (H) the one that a GRU adds within its reset gate, state h and c (B,H).
    Weights of R networks are (R, G H, H), their bias (R, H); the rows are then those of R networks, one after another.

    `noise` moves every number of h and c once the step is over, as the first and the second tensor of a state
    (B, layers, H) of which this is one layer; its keys are those of len(noise.keys) networks. Gaussian noise is for
    the kernel "reference" alone, and takes it.

    `kernel` forces "reference" (the equations) or "triton"; so does the environment variable STATETRACK_KERNEL.

    A sign that is kept until an input is strong enough to set it:

    >>> import torch
    >>> x = torch.tensor([0.0, 9.0, 0.0, -9.0, 0.0]).reshape(1, 5, 1)
    >>> h, _ = rnn_scan("tanh", x, torch.tensor([[3.0]]), (torch.tensor([[-1.0]]),))
    >>> h.flatten().sign().tolist()
    [-1.0, 1.0, 1.0, -1.0, -1.0]
    """
    if cell not in GATES:
        raise unknown("cell", cell, GATES)
    weights = weight if weight.dim() == 3 else weight.unsqueeze(0)
    biases = bias if bias is None or bias.dim() == 2 else bias.unsqueeze(0)
    check_shapes(cell, x, weights, state, biases)
    if not 0 <= layer < layers:
        raise BadInput(f"layer {layer} is none of {layers}")
    dtype = state_dtype(x, weight, bias, *state)
    count = len(weights)
    start = tuple(part.to(dtype).unflatten(0, (count, -1)) for part in state)
    given = (
        x.to(dtype).unflatten(0, (count, -1)),
        weights.to(dtype),
        start,
        None if biases is None else biases.to(dtype),
    )
    chosen = "reference" if noise is not None and noise.gaussian else forced(kernel, KERNELS, x.device)
    # Without autocast no matmul of the recurrence falls to half precision.
    with torch.autocast(x.device.type, enabled=False):
        out, after = run(chosen or fastest(x, weights.shape[-1], dtype), cell, given, noise, layer, layers)
        if noise is not None:
            after = moved(after, noise, x.shape[1] - 1, layer, layers)
    return out.flatten(0, 1).to(x.dtype), tuple(part.flatten(0, 1) for part in after)


def fastest(x: Tensor, hidden: int, dtype: torch.dtype) -> str:
    """The fastest kernel for these tensors on their device."""
    return "triton" if is_fused(x.device, hidden, dtype) else "reference"


def is_fused(device: torch.device, hidden: int, dtype: torch.dtype) -> bool:
    """Whether a scan of this width is one kernel there."""
    return device.type == "cuda" and dtype != torch.float64 and hidden <= WIDEST and has_triton()


def is_held(cell: str, hidden: int) -> bool:
    """Whether the fast kernel holds the weights of a network in registers, or has to read them anew at every step."""
    return GATES[cell] * filled(hidden) ** 2 <= MOST_HELD


def filled(hidden: int) -> int:
    """The width of the fast kernel's tiles: a power of two, of which 16 is the least for tensor cores."""
    return max(16, 1 << (hidden - 1).bit_length())


@functools.cache
def has_triton() -> bool:
    return usable("triton")


def run(
    name: str,
    cell: str,
    given: tuple[Tensor, Tensor, State, Tensor | None],
    noise: Noise | None,
    layer: int,
    layers: int,
) -> tuple[Tensor, State]:
    """Call the kernel of that name; each is imported when it is first used."""
    if name == "triton":
        need("triton", "train", "the recurrence in Triton")
        from statetrack.ops.rnn.triton import rnn_triton

        return rnn_triton(cell, *given, noise, layer, layers)
    return rnn_reference(cell, *given, noise, layer, layers)


def check_shapes(cell: str, x: Tensor, weights: Tensor, state: State, biases: Tensor | None) -> None:
    """Name the argument whose shape does not fit the others."""
    if x.dim() != 3 or x.shape[1] == 0:
        raise BadInput(f"x has shape {tuple(x.shape)}; expected (B, T, G H) with at least one step")
    if weights.dim() != 3:
        raise BadInput(f"weight has shape {tuple(weights.shape)}; expected (G H, H) or (R, G H, H)")
    (count, _, hidden), gates = weights.shape, GATES[cell]
    if len(x) % count:
        raise BadInput(f"the {len(x)} rows of x are not those of {count} networks")
    expect("weight", weights, (count, gates * hidden, hidden), "(R, G H, H)")
    expect("x", x, (*x.shape[:2], gates * hidden), "(B, T, G H)")
    parts = 2 if cell == "lstm" else 1
    if len(state) != parts:
        raise BadInput(f"a state of {len(state)} tensors; expected {parts}")
    for part in state:
        expect("state", part, (len(x), hidden), "(B, H)")
    if biases is not None:
        if cell != "gru":
            raise BadInput("a bias within the step is a GRU's; add others to x")
        expect("bias", biases, (count, hidden), "(R, H)")
