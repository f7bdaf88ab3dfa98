"""The M2RNN recurrence: a matrix state per head, multiplied by a learned matrix inside a tanh, with a forget gate."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from statetrack.errors import BadInput, need
from statetrack.ops.choose import expect, forced, full_precision, state_dtype
from statetrack.ops.m2rnn.reference import m2rnn_reference
from statetrack.ops.noise import Noise
from statetrack.plugins import usable

KERNELS = ("reference", "cpu", "triton")


def m2rnn_scan(
    q: Tensor, k: Tensor, v: Tensor, f: Tensor, W: Tensor, *,
    state: Tensor | None = None, noise: Noise | None = None, kernel: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Run the recurrence over a sequence and return (out, state): out (B,T,H,V) and the last state (B,H,N,V).

        Z_t = tanh(S_{t-1} W + k_t v_t^T),   S_t = f_t S_{t-1} + (1 - f_t) Z_t,   out_t = S_t^T q_t

    q, k (B,T,H,N), v (B,T,H,V), f (B,T,H), W (H,V,V); S_0 is `state`, or zero. W of R replicas is (R,H,V,V), and the
    rows are then theirs, one replica after another.

    `noise` moves every number of S_t once it was read; the rows are those of len(noise.keys) replicas, one after
    another. Gaussian noise is for the kernel "reference" alone, and takes it. `kernel` forces "reference" (the
    equations), "cpu" (numba) or "triton"; so does the environment variable STATETRACK_KERNEL.

    One head with one number that keeps two thirds of itself: from 9, over 6, to 4.

    >>> import torch
    >>> zero = torch.zeros(1, 2, 1, 1)
    >>> start, two_thirds = torch.full((1, 1, 1, 1), 9.0), torch.full((1, 2, 1), 2 / 3)
    >>> m2rnn_scan(zero, zero, zero, two_thirds, torch.zeros(1, 1, 1), state=start)[1].item()
    4.0
    """
    W = W.unsqueeze(0) if W.dim() == 3 else W
    check_shapes(q, k, v, f, W, state)
    dtype = state_dtype(q, k, v, f, W, state)
    batch, _, heads, n = q.shape
    start = q.new_zeros(batch, heads, n, v.shape[-1], dtype=dtype) if state is None else state.to(dtype)
    chosen = "reference" if noise is not None and noise.gaussian else forced(kernel, KERNELS, q.device)
    name = chosen or fastest(q, v, dtype)
    # On a GPU bfloat16 sequences stay as they are, for half the traffic; everything else is in the state's precision.
    half = name == "triton" and {tensor.dtype for tensor in (q, k, v)} == {torch.bfloat16}
    sequence = torch.bfloat16 if half else dtype
    inputs = (q.to(sequence), k.to(sequence), v.to(sequence), f.to(dtype), W.to(dtype), start)
    out, last = full_precision(q.device, lambda: run(name, inputs, noise))
    if noise is not None:
        last = noise.moved(last, q.shape[1] - 1)
    return out.to(q.dtype), last


def fastest(q: Tensor, v: Tensor, dtype: torch.dtype) -> str:
    """The fastest kernel for these tensors on their device."""
    if q.device.type == "cpu" and usable("numba"):
        return "cpu"
    if q.device.type != "cuda" or dtype != torch.float32:
        return "reference"
    return "triton" if max(q.shape[-1], v.shape[-1]) <= 64 and find_spec("triton") else "reference"


def run(name: str, inputs: tuple[Any, ...], noise: Noise | None) -> tuple[Tensor, Tensor]:
    """Call the kernel of that name; each is imported when it is first used."""
    q, k, v, f, W, state = inputs
    if name == "cpu":
        need("numba", "train", "the fast recurrence on a CPU")
        from statetrack.ops.m2rnn.cpu import m2rnn_cpu

        return m2rnn_cpu(q, k, v, f, W, state, noise)
    if name == "triton":
        need("triton", "train", "the recurrence in Triton")
        from statetrack.ops.m2rnn.triton import m2rnn_triton

        return m2rnn_triton(q, k, v, f, W, state, noise)
    return m2rnn_reference(q, k, v, f, W, state, noise)


def check_shapes(q: Tensor, k: Tensor, v: Tensor, f: Tensor, W: Tensor, state: Tensor | None) -> None:
    """Name the argument whose shape does not fit the others."""
    if q.dim() != 4 or q.shape[1] == 0:
        raise BadInput(f"q has shape {tuple(q.shape)}; expected (B, T, H, N) with at least one step")
    if v.dim() != 4 or W.dim() != 4:
        raise BadInput(f"v has {v.dim()} dimensions; expected (B, T, H, V), and (H, V, V) or (R, H, V, V) for W")
    batch, steps, heads, n = q.shape
    replicas, width = len(W), v.shape[-1]
    expect("k", k, (batch, steps, heads, n), "(B, T, H, N)")
    expect("v", v, (batch, steps, heads, width), "(B, T, H, V)")
    expect("f", f, (batch, steps, heads), "(B, T, H)")
    expect("W", W, (replicas, heads, width, width), "(R, H, V, V)")
    if replicas == 0 or batch % replicas:
        raise BadInput(f"W is that of {replicas} replicas, which cannot share {batch} rows")
    if state is not None:
        expect("state", state, (batch, heads, n, width), "(B, H, N, V)")
