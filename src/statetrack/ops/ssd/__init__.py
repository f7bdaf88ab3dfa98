"""Mamba-2's recurrence ("state-space duality"): a matrix state per head that only decays and is written to."""

from __future__ import annotations

import torch
from torch import Tensor

from statetrack.errors import BadInput
from statetrack.ops import nvrtc
from statetrack.ops.choose import expect, forced, full_precision, state_dtype
from statetrack.ops.ssd.chunked import ssd_chunked
from statetrack.ops.ssd.reference import ssd_reference
from statetrack.plugins import usable

KERNELS = ("reference", "chunked", "cpu", "cuda")


def ssd_scan(
    x: Tensor, dt: Tensor, A: Tensor | None, B: Tensor, C: Tensor, *, D: Tensor | None = None,
    decay: Tensor | None = None, state: Tensor | None = None, kernel: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return (y, state): y (B,T,H,P) and the last state (B,H,P,N).

        h_t = decay_t h_{t-1} + dt_t x_t B_t^T,   y_t = h_t C_t + D x_t,   decay_t = exp(dt_t A)

    x (B,T,H,P), dt (B,T,H), A (H,) negative, B and C (B,T,N), or (B,T,G,N) for G groups of heads, D (H,). With A = None
    a `decay` (B,T,H) is taken as given, so that eigenvalues may lie anywhere in [-1, 1]. `kernel` forces
    "reference" (the equations), "chunked" (matrix products), or step by step "cpu" (numba) or "cuda" (up to 32 states
    and numbers per head).

    A decay of -1 and no writes after the first: the state flips at every step.

    >>> ones = torch.ones(1, 3, 1)
    >>> x = torch.tensor([1.0, 0.0, 0.0]).reshape(1, 3, 1, 1)
    >>> y, _ = ssd_scan(x, ones, None, ones, ones, decay=-ones)
    >>> y.flatten().tolist()
    [1.0, -1.0, 1.0]
    """
    if x.dim() != 4 or x.shape[1] == 0:
        raise BadInput(f"x has shape {tuple(x.shape)}; expected (B, T, H, P) with at least one step")
    if (A is None) == (decay is None):
        raise BadInput("give either A (decay is then exp(dt A)) or decay, exactly one of the two")
    b, c = (group.unsqueeze(2) if group.dim() == 3 else group for group in (B, C))
    check_shapes(x, dt, A, b, c, D, decay, state)
    dtype = state_dtype(x, dt, A, b, c, D, decay, state)
    name = forced(kernel, KERNELS, x.device) or fastest(x, b, dtype)
    batch, _, heads, p = x.shape
    start = x.new_zeros(batch, heads, p, b.shape[-1], dtype=dtype) if state is None else state.to(dtype)
    # On a GPU bfloat16 sequences stay as they are, for half the traffic; everything else is in the state's precision.
    half = name == "cuda" and {x.dtype, b.dtype, c.dtype} == {torch.bfloat16}
    wide_x, wide_b, wide_c = (tensor if half else tensor.to(dtype) for tensor in (x, b, c))
    wide_dt = dt.to(dtype)
    log_decay = None if A is None else wide_dt * A.to(dtype)
    factor = None if decay is None else decay.to(dtype)

    def run() -> tuple[Tensor, Tensor]:
        if name == "chunked":
            return ssd_chunked(wide_x, wide_dt, *log_and_sign(log_decay, factor), wide_b, wide_c, start)
        if name == "cpu":
            from statetrack.ops.ssd.cpu import ssd_cpu as scan
        elif name == "cuda":
            from statetrack.ops.ssd.cuda import ssd_cuda as scan
        else:
            scan = ssd_reference
        return scan(wide_x, wide_dt, given(log_decay, factor), wide_b, wide_c, start)

    y, last = full_precision(x.device, run)
    if D is not None:
        y = y + D.to(dtype)[:, None] * wide_x
    return y.to(x.dtype), last


def fastest(x: Tensor, b: Tensor, dtype: torch.dtype) -> str:
    """The fastest kernel for these tensors on their device."""
    if x.device.type == "cpu" and usable("numba"):
        return "cpu"
    fits = b.shape[-1] <= 32 and (x.shape[-1] <= 32 or x.shape[-1] % 32 == 0)
    if x.device.type == "cuda" and dtype == torch.float32 and fits and nvrtc.available():
        return "cuda"
    return "chunked"


def given(log_decay: Tensor | None, decay: Tensor | None) -> Tensor:
    """The decay itself, from whichever of the two there is."""
    if decay is not None:
        return decay
    assert log_decay is not None
    return torch.exp(log_decay)


def log_and_sign(log_decay: Tensor | None, decay: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """The logarithm of |decay| and, where a decay was given, its sign; a decay of exactly 0 becomes the least float."""
    if decay is None:
        assert log_decay is not None
        return log_decay, None
    least = torch.finfo(decay.dtype).tiny
    sign = torch.where(decay < 0, -1.0, 1.0).to(decay.dtype)
    return decay.abs().clamp_min(least).log(), sign


def check_shapes(
    x: Tensor, dt: Tensor, A: Tensor | None, b: Tensor, c: Tensor, D: Tensor | None, decay: Tensor | None,
    state: Tensor | None,
) -> None:  # fmt: skip
    """Name the argument whose shape does not fit the others."""
    batch, steps, heads, p = x.shape
    if b.dim() != 4:
        raise BadInput(f"B has shape {tuple(b.shape)}; expected (B, T, N) or (B, T, G, N)")
    groups, n = b.shape[2:]
    if groups == 0 or heads % groups:
        raise BadInput(f"B has {groups} groups for {heads} heads; the number of groups must divide the number of heads")
    expect("dt", dt, (batch, steps, heads), "(B, T, H)")
    expect("B", b, (batch, steps, groups, n), "(B, T, G, N)")
    expect("C", c, (batch, steps, groups, n), "(B, T, G, N)")
    for name, tensor in (("A", A), ("D", D)):
        if tensor is not None:
            expect(name, tensor, (heads,), "(H,)")
    if decay is not None:
        expect("decay", decay, (batch, steps, heads), "(B, T, H)")
    if state is not None:
        expect("state", state, (batch, heads, p, n), "(B, H, P, N)")
