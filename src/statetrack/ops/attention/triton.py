"""Causal attention in Triton, by blocks: the scores are made where they are used and never written down.

A program of the forward pass takes a block of positions and walks through those that it sees, with the largest score so
far and the sum of the exponentials beside the output; it leaves the logarithm of that sum. The backward pass makes the
scores once more: a block of keys walks through the positions that see it, a block of positions through its keys.
Products are on tensor cores in three parts of TF32, which is as exact as float32. Exponentials are of base 2.

With TRITON_INTERPRET=1 the same kernels run on CPU tensors, slowly: that is how they are tested without a GPU.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

BLOCK = 64  # positions, and keys
PASSED = ("T", "H")  # whatever they are, the same code serves
INFINITE = tl.constexpr(float("inf"))


@triton.jit
def rows_of(base, apart_b, apart_h, apart_t, H, T, first, D: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Where the numbers of a block of positions are, and which positions are there."""
    z = tl.program_id(1).to(tl.int64)
    t, d = first + tl.arange(0, BLOCK), tl.arange(0, D)
    place = base + (z // H) * apart_b + (z % H) * apart_h + t.to(tl.int64)[:, None] * apart_t + d[None, :]
    return place, (t < T)[:, None]


@triton.jit
def product(a, b, acc):  # type: ignore[no-untyped-def]
    return tl.dot(a, b, acc, input_precision="tf32x3")


@triton.jit
def scores(Q, K, t, s, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Q K^T where a key is not later than the position."""
    S = product(Q, tl.trans(K), tl.zeros((BLOCK, BLOCK), tl.float32))
    return tl.where(t[:, None] >= s[None, :], S, -INFINITE)


@triton.jit(do_not_specialize=PASSED)
def forward_kernel(  # type: ignore[no-untyped-def]
    q, q_b, q_h, q_t, k, k_b, k_h, k_t, v, v_b, v_h, v_t, out, out_b, out_h, out_t, sums, scale, T, H,
    D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    first = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK  # those that see most begin first
    t = first + tl.arange(0, BLOCK)
    place, real = rows_of(q, q_b, q_h, q_t, H, T, first, D, BLOCK)
    Q = tl.load(place, mask=real, other=0.0) * scale
    most = tl.full((BLOCK,), -INFINITE, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    acc = tl.zeros((BLOCK, D), tl.float32)
    for begin in range(0, first + BLOCK, BLOCK):
        place, real = rows_of(k, k_b, k_h, k_t, H, T, begin, D, BLOCK)
        K = tl.load(place, mask=real, other=0.0)
        place, real = rows_of(v, v_b, v_h, v_t, H, T, begin, D, BLOCK)
        V = tl.load(place, mask=real, other=0.0)
        S = scores(Q, K, t, begin + tl.arange(0, BLOCK), BLOCK)
        larger = tl.maximum(most, tl.max(S, 1))
        P, shrunk = tl.exp2(S - larger[:, None]), tl.exp2(most - larger)
        total = total * shrunk + tl.sum(P, 1)
        acc = product(P, V, acc * shrunk[:, None])
        most = larger
    place, real = rows_of(out, out_b, out_h, out_t, H, T, first, D, BLOCK)
    tl.store(place, acc / total[:, None], mask=real)
    tl.store(sums + tl.program_id(1).to(tl.int64) * T + t, most + tl.log2(total), mask=t < T)


@triton.jit(do_not_specialize=PASSED)
def keys_kernel(  # type: ignore[no-untyped-def]
    q, q_b, q_h, q_t, k, k_b, k_h, k_t, v, v_b, v_h, v_t, dout, dout_b, dout_h, dout_t, dk, dk_b, dk_h, dk_t,
    dv, dv_b, dv_h, dv_t, sums, deltas, scale, T, H, D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradients of a block of keys and values."""
    first = tl.program_id(0) * BLOCK
    s = first + tl.arange(0, BLOCK)
    place, real = rows_of(k, k_b, k_h, k_t, H, T, first, D, BLOCK)
    K = tl.load(place, mask=real, other=0.0)
    place, real = rows_of(v, v_b, v_h, v_t, H, T, first, D, BLOCK)
    V = tl.load(place, mask=real, other=0.0)
    row = tl.program_id(1).to(tl.int64) * T
    dK = tl.zeros((BLOCK, D), tl.float32)
    dV = tl.zeros((BLOCK, D), tl.float32)
    for begin in range(first, T, BLOCK):
        t = begin + tl.arange(0, BLOCK)
        place, real = rows_of(q, q_b, q_h, q_t, H, T, begin, D, BLOCK)
        Q = tl.load(place, mask=real, other=0.0) * scale
        place, real = rows_of(dout, dout_b, dout_h, dout_t, H, T, begin, D, BLOCK)
        dO = tl.load(place, mask=real, other=0.0)
        total = tl.load(sums + row + t, mask=t < T, other=0.0)
        delta = tl.load(deltas + row + t, mask=t < T, other=0.0)
        P = tl.exp2(scores(Q, K, t, s, BLOCK) - total[:, None])
        dV = product(tl.trans(P), dO, dV)
        dP = product(dO, tl.trans(V), tl.zeros((BLOCK, BLOCK), tl.float32))
        dK = product(tl.trans(P * (dP - delta[:, None])), Q, dK)
    place, real = rows_of(dk, dk_b, dk_h, dk_t, H, T, first, D, BLOCK)
    tl.store(place, dK * 0.6931471805599453, mask=real)  # ln 2: Q was scaled for exponentials of base 2
    place, real = rows_of(dv, dv_b, dv_h, dv_t, H, T, first, D, BLOCK)
    tl.store(place, dV, mask=real)


@triton.jit(do_not_specialize=PASSED)
def queries_kernel(  # type: ignore[no-untyped-def]
    q, q_b, q_h, q_t, k, k_b, k_h, k_t, v, v_b, v_h, v_t, dout, dout_b, dout_h, dout_t, dq, dq_b, dq_h, dq_t,
    sums, deltas, scale, T, H, D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradients of a block of positions."""
    first = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK
    t = first + tl.arange(0, BLOCK)
    place, real = rows_of(q, q_b, q_h, q_t, H, T, first, D, BLOCK)
    Q = tl.load(place, mask=real, other=0.0) * scale
    place, real = rows_of(dout, dout_b, dout_h, dout_t, H, T, first, D, BLOCK)
    dO = tl.load(place, mask=real, other=0.0)
    row = tl.program_id(1).to(tl.int64) * T
    total = tl.load(sums + row + t, mask=t < T, other=0.0)
    delta = tl.load(deltas + row + t, mask=t < T, other=0.0)
    dQ = tl.zeros((BLOCK, D), tl.float32)
    for begin in range(0, first + BLOCK, BLOCK):
        place, real = rows_of(k, k_b, k_h, k_t, H, T, begin, D, BLOCK)
        K = tl.load(place, mask=real, other=0.0)
        place, real = rows_of(v, v_b, v_h, v_t, H, T, begin, D, BLOCK)
        V = tl.load(place, mask=real, other=0.0)
        P = tl.exp2(scores(Q, K, t, begin + tl.arange(0, BLOCK), BLOCK) - total[:, None])
        dP = product(dO, tl.trans(V), tl.zeros((BLOCK, BLOCK), tl.float32))
        dQ = product(P * (dP - delta[:, None]), K, dQ)
    place, real = rows_of(dq, dq_b, dq_h, dq_t, H, T, first, D, BLOCK)
    tl.store(place, dQ * (scale * 0.6931471805599453), mask=real)


class CausalAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        batch, heads, steps, width = q.shape
        out = q.new_empty(batch, steps, heads, width).transpose(1, 2)  # as what follows wants it
        sums = q.new_empty(batch, heads, steps)
        forward_kernel[grid_of(q)](
            *placed(q, k, v, out), sums, scale_of(q), steps, heads, D=width, BLOCK=BLOCK, num_warps=4
        )
        ctx.save_for_backward(q, k, v, out, sums)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v, out, sums = ctx.saved_tensors
        dout = rowwise(dout)
        deltas = (dout * out).sum(-1).contiguous()
        dq, dk, dv = (torch.empty(each.shape, dtype=each.dtype, device=each.device) for each in (q, k, v))
        told = (sums, deltas, scale_of(q), q.shape[2], q.shape[1])
        shape = {"D": q.shape[3], "BLOCK": BLOCK, "num_warps": 4}
        keys_kernel[grid_of(q)](*placed(q, k, v, dout, dk, dv), *told, **shape)
        queries_kernel[grid_of(q)](*placed(q, k, v, dout, dq), *told, **shape)
        return dq, dk, dv


def grid_of(q: Tensor) -> tuple[int, int]:
    return triton.cdiv(q.shape[2], BLOCK), q.shape[0] * q.shape[1]


def scale_of(q: Tensor) -> float:
    """1 / sqrt(D), for exponentials of base 2."""
    return 1 / (math.sqrt(q.shape[3]) * math.log(2))


def rowwise(x: Tensor) -> Tensor:
    """As the kernels read it: the numbers of a position lie side by side."""
    return x if x.stride(-1) == 1 else x.contiguous()


def placed(*tensors: Tensor) -> list[Any]:
    """Each tensor, and how far apart its rows, heads and positions are."""
    return [part for each in tensors for part in (each, *each.stride()[:3])]


def attention_triton(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """attention_reference, in one pass."""
    out: Tensor = CausalAttention.apply(rowwise(q), rowwise(k), rowwise(v))
    return out
