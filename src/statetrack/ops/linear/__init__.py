"""The linear recurrence: h_t = A h_{t-1} + b_t."""

from __future__ import annotations

from torch import Tensor

from statetrack.errors import BadInput
from statetrack.ops.choose import expect, forced, full_precision, state_dtype
from statetrack.ops.linear.fast import linear_fast
from statetrack.ops.linear.reference import linear_reference

KERNELS = {"reference": linear_reference, "fast": linear_fast}


def linear_scan(
    a: Tensor, b: Tensor, state: Tensor | None = None, *, kernel: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return (h, state): h (B,T,N) with h_t = A h_{t-1} + b_t, and the last of them, (B,N).

    b (B,T,N); h_0 is `state`, or zero. The shape of `a` says what A is: (N,N) a dense matrix, the same at every step;
    (N,) a diagonal; (B,T,N) a diagonal of its own at every step. `kernel` forces "reference" or "fast".

    Two ones, counted by an A that also rotates by a quarter turn:

    >>> import torch
    >>> turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
    >>> b = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
    >>> h, last = linear_scan(turn, b)
    >>> h.tolist()
    [[[1.0, 0.0], [1.0, 1.0]]]
    """
    if b.dim() != 3 or b.shape[1] == 0:
        raise BadInput(f"b has shape {tuple(b.shape)}; expected (B, T, N) with at least one step")
    batch, steps, n = b.shape
    if a.dim() not in (1, 2, 3):
        raise BadInput(f"a has shape {tuple(a.shape)}; expected (N, N), (N,) or (B, T, N)")
    shapes = {1: ((n,), "(N,)"), 2: ((n, n), "(N, N)"), 3: ((batch, steps, n), "(B, T, N)")}
    expect("a", a, *shapes[a.dim()])
    if state is not None:
        expect("state", state, (batch, n), "(B, N)")
    scan = KERNELS[forced(kernel, tuple(KERNELS), b.device) or "fast"]
    dtype = state_dtype(a, b, state)
    start = b.new_zeros(batch, n, dtype=dtype) if state is None else state.to(dtype)
    h, last = full_precision(b.device, lambda: scan(a.to(dtype), b.to(dtype), start))
    return h.to(b.dtype), last
