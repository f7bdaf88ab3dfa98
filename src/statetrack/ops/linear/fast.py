"""The linear recurrence with its gradient written out: no graph of T nodes, one matrix product for dA.

g_t = dh_t + A^T g_{t+1},   db_t = g_t,   dA = sum_t g_t h_{t-1}^T,   dh_0 = A^T g_1

On a GPU, where T small products one after another are T waits, a dense A runs all pieces of a row at once.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

PIECE = 16  # steps


class LinearScan(torch.autograd.Function):
    """The same arguments and results as linear_reference, without the last state, which is the last of h."""

    generate_vmap_rule = True

    @staticmethod
    def forward(a: Tensor, b: Tensor, state: Tensor) -> Tensor:
        return run(a, b, state, backwards=False)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        a, _, state = inputs
        ctx.save_for_backward(a, state, output)

    @staticmethod
    def backward(ctx: Any, dh: Tensor) -> tuple[Tensor, ...]:
        a, state, h = ctx.saved_tensors
        # g runs backwards: g_T = dh_T, and at step t the factor is that of step t + 1.
        later = torch.cat([a[:, 1:], torch.ones_like(a[:, :1])], dim=1) if a.dim() == 3 else a
        g = run(later, dh, torch.zeros_like(state), backwards=True)
        before = torch.cat([state[:, None], h[:, :-1]], dim=1)
        if a.dim() == 2:
            return g.flatten(0, 1).T @ before.flatten(0, 1), g, g[:, 0] @ a
        product = g * before
        if a.dim() == 1:
            return product.sum((0, 1)), g, g[:, 0] * a
        return product, g, g[:, 0] * a[:, 0]


def run(a: Tensor, b: Tensor, h: Tensor, *, backwards: bool) -> Tensor:
    """h_t = A h_{t-1} + b_t in time, or with the transpose of A against it."""
    if a.dim() == 2 and in_pieces(b):
        return by_pieces(a, b.flip(1), h).flip(1) if backwards else by_pieces(a.T, b, h)
    matrix = a if backwards or a.dim() != 2 else a.T
    states = []
    inputs = b.unbind(1)
    factors = a.unbind(1) if a.dim() == 3 else [matrix] * len(inputs)
    for factor, b_t in zip(factors[::-1], inputs[::-1]) if backwards else zip(factors, inputs):
        h = torch.addmm(b_t, h, factor) if a.dim() == 2 else torch.addcmul(b_t, factor, h)
        states.append(h)
    return torch.stack(states[::-1] if backwards else states, dim=1)


def in_pieces(b: Tensor) -> bool:
    """Whether pieces are quicker there; they are added up in another order."""
    return b.is_cuda and b.dtype != torch.float64


def by_pieces(matrix: Tensor, b: Tensor, h: Tensor) -> Tensor:
    """h_t = h_{t-1} A + b_t for rows h and a matrix A, all pieces of PIECE steps at once.

    They run from zero first, for what each adds up to. The states between them are then a recurrence of the same kind,
    with A^PIECE, and from those the pieces run once more.
    """
    batch, steps = b.shape[:2]
    if steps < 2 * PIECE:
        return torch.stack(states(matrix, b, h), dim=1)
    pieces = F.pad(b, (0, 0, 0, -steps % PIECE)).unflatten(1, (-1, PIECE)).flatten(0, 1)
    sums, power = torch.zeros_like(pieces[:, 0]), matrix
    for b_t in pieces.unbind(1):
        sums = torch.addmm(b_t, sums, matrix)
    for _ in range(PIECE.bit_length() - 1):
        power = power @ power
    ends = by_pieces(power, sums.unflatten(0, (batch, -1)), h)
    starts = torch.cat([h.unsqueeze(1), ends[:, :-1]], dim=1).flatten(0, 1)
    inside = torch.stack(states(matrix, pieces, starts), dim=1)
    return inside.unflatten(0, (batch, -1)).flatten(1, 2)[:, :steps]


def states(matrix: Tensor, b: Tensor, h: Tensor) -> list[Tensor]:
    """The same, step by step."""
    found = []
    for b_t in b.unbind(1):
        h = torch.addmm(b_t, h, matrix)
        found.append(h)
    return found


def linear_fast(a: Tensor, b: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """linear_reference, faster."""
    h = LinearScan.apply(a, b, state)
    return h, h[:, -1]
