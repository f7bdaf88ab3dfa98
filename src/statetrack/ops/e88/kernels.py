"""What the fast kernels share: heads of a size that they know, and what they keep for the gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor
from torch.nn.functional import pad

from statetrack.ops.noise import Noise


def writes_fit(writes: int, n: int, width: int) -> bool:
    """Whether writes.cuh takes so many writes in heads of this size: all keys of a step stand in registers."""
    return n <= 16 and width <= 32 and writes * (8 if n <= 8 else 16) <= 64


def in_sizes(
    sizes: Sequence[int], scan: Callable[..., Any], q: Tensor | None, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor,
    state: Tensor, *options: Any,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Call a scan with N and V filled up to the next of its sizes, and cut its results back.

    They are filled up with zeros, which stay zero through every step; noise is not put on them.
    """
    n, width = state.shape[-2:]
    fit_n, fit_width = (next(fit for fit in sizes if fit >= size) for size in (n, width))
    if (fit_n, fit_width) == (n, width):
        return scan(q, k, v, decay, beta, state, *options)[:2]  # no slice: it would cost a copy in the backward pass
    more_n, more_width = fit_n - n, fit_width - width
    query, k, v = None if q is None else pad(q, (0, more_n)), pad(k, (0, more_n)), pad(v, (0, more_width))
    out, last = scan(query, k, v, decay, beta, pad(state, (0, more_width, 0, more_n)), *options)[:2]
    if q is None:
        out = out[:, :, :n]
    return out[..., :width], last[..., :n, :width]


def save_inputs_and_kept(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    """The setup_context of (q, k, v, decay, beta, state, nonlinearity, noise) -> (out, last state, kept states)."""
    ctx.save_for_backward(*inputs[:5], output[2])
    ctx.mark_non_differentiable(output[2])
    ctx.saturates = inputs[6] == "tanh"
    ctx.noise = inputs[7]
    ctx.set_materialize_grads(False)


def words_of(noise: Noise | None, steps: int, rows: int, numbers: int) -> Tensor | None:
    """The signs of a scan's noise, for this many heads of rows and numbers of each.

    They are drawn again for the backward pass: nothing is kept.
    """
    return None if noise is None else noise.words(steps, rows // len(noise.keys) * numbers)
