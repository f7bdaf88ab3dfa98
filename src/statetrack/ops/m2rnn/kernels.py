"""What the fast kernels share: what they keep for the gradient, and the signs of the noise."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from statetrack.ops.noise import Noise


def save_inputs_and_kept(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    """The setup_context of (q, k, v, f, W, state, noise) -> (out, last state, kept states)."""
    ctx.save_for_backward(*inputs[:5], output[2])
    ctx.mark_non_differentiable(output[2])
    ctx.noise = inputs[6]
    ctx.set_materialize_grads(False)


def words_of(noise: Noise | None, steps: int, rows: int, numbers: int) -> Tensor | None:
    """The signs of a scan's noise, for this many heads of rows and numbers of each.

    They are drawn again for the backward pass: nothing is kept.
    """
    return None if noise is None else noise.words(steps, rows // len(noise.keys) * numbers)
