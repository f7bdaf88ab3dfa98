"""The classic cells in Triton: one program runs 16 rows of one network through all steps, forward or backward.

The products with the state are of 16 x H times H x H for each gate, on tensor cores in three parts of TF32, which is as
exact as float32. Where all gates' weights find room in registers (HELD) they stay there. Else they come from the cache
in stretches of columns at every step, and what they are multiplied with goes through memory, as a tile in registers
cannot be cut in stretches.

For the backward pass the gates and the states before each step, with their noise, are kept; it walks back through them
and leaves the gradient of every product. Those of the weights are one large product over all steps, at the end.

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

from statetrack.ops.noise import Noise
from statetrack.ops.rnn import filled, is_held
from statetrack.ops.rnn.reference import GATES, State

ROWS = 16  # of a program: the least that a product on tensor cores takes
PIECES = 32  # in which the product over all steps is cut
PASSED = ("T", "B", "per_step", "layer", "layers")  # whatever they are, the same code serves


@triton.jit
def saturate(z):  # type: ignore[no-untyped-def]
    """tanh z = 1 - 2 / (1 + e^{2z}), absolute error about 1e-7."""
    return 1.0 - 2.0 / (1.0 + tl.exp(2.0 * z))


@triton.jit
def opened(z):  # type: ignore[no-untyped-def]
    """sigmoid z"""
    return 1.0 / (1.0 + tl.exp(-z))


@triton.jit
def moved(S, words, t, replica, T, m, n, real, size, per_step, layer, layers, H: tl.constexpr):  # type: ignore[no-untyped-def]
    """S with the noise that it gets after step t."""
    place = (m[:, None] * layers + layer) * H + n[None, :]
    word = tl.load(words + (replica * T + t) * per_step + place // 32, mask=real, other=0)
    return S + tl.where(real, tl.where(((word >> (place % 32)) & 1) == 1, size, -size), 0.0)


@triton.jit
def tiles(base, at, apart, mask, COUNT: tl.constexpr):  # type: ignore[no-untyped-def]
    """One tile for each of COUNT gates, `apart` from each other; those that are not there repeat the first."""
    first = tl.load(base + at, mask=mask, other=0.0)
    second, third, fourth = first, first, first
    if COUNT > 1:
        second = tl.load(base + at + apart, mask=mask, other=0.0)
        third = tl.load(base + at + 2 * apart, mask=mask, other=0.0)
    if COUNT > 3:
        fourth = tl.load(base + at + 3 * apart, mask=mask, other=0.0)
    return first, second, third, fourth


@triton.jit
def put(base, at, apart, mask, first, second, third, fourth, COUNT: tl.constexpr):  # type: ignore[no-untyped-def]
    """Store what `tiles` reads."""
    tl.store(base + at, first, mask=mask)
    if COUNT > 1:
        tl.store(base + at + apart, second, mask=mask)
        tl.store(base + at + 2 * apart, third, mask=mask)
    if COUNT > 3:
        tl.store(base + at + 3 * apart, fourth, mask=mask)


@triton.jit
def product(h, W, acc):  # type: ignore[no-untyped-def]
    return tl.dot(h, W, acc, input_precision="tf32x3")


@triton.jit
def products(  # type: ignore[no-untyped-def]
    source, start, weight, m, n, B, W0, W1, W2, W3, h,
    COUNT: tl.constexpr, H: tl.constexpr, BM: tl.constexpr, BH: tl.constexpr, BK: tl.constexpr, HELD: tl.constexpr,
):  # fmt: skip
    """h times every gate's weights; h lies in memory too, its rows beginning at `start`."""
    a0 = tl.zeros((BM, BH), tl.float32)
    a1, a2, a3 = a0, a0, a0
    if HELD:
        a0 = product(h, W0, a0)
        if COUNT > 1:
            a1, a2 = product(h, W1, a1), product(h, W2, a2)
        if COUNT > 3:
            a3 = product(h, W3, a3)
    else:
        for first in range(0, H, BK):
            k = first + tl.arange(0, BK)
            part = tl.load(source + start + k[None, :], mask=(m[:, None] < B) & (k[None, :] < H), other=0.0)
            at, inside = k[:, None] * (COUNT * H) + n[None, :], (k[:, None] < H) & (n[None, :] < H)
            a0 = product(part, tl.load(weight + at, mask=inside, other=0.0), a0)
            if COUNT > 1:
                a1 = product(part, tl.load(weight + at + H, mask=inside, other=0.0), a1)
                a2 = product(part, tl.load(weight + at + 2 * H, mask=inside, other=0.0), a2)
            if COUNT > 3:
                a3 = product(part, tl.load(weight + at + 3 * H, mask=inside, other=0.0), a3)
    return a0, a1, a2, a3


@triton.jit(do_not_specialize=PASSED)
def forward_kernel(  # type: ignore[no-untyped-def]
    x, turned, bias, h_first, c_first, out, h_last, c_last, before, cells, gates, words, size, per_step, layer, layers,
    T, B, CELL: tl.constexpr, COUNT: tl.constexpr, H: tl.constexpr, BM: tl.constexpr, BH: tl.constexpr,
    BK: tl.constexpr, HELD: tl.constexpr, KEEP: tl.constexpr, BIASED: tl.constexpr, NOISY: tl.constexpr,
):  # fmt: skip
    replica = tl.program_id(1).to(tl.int64)
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BH)
    real = (m[:, None] < B) & (n[None, :] < H)
    row = replica * B + m[:, None]
    h = tl.load(h_first + row * H + n[None, :], mask=real, other=0.0)
    c = h
    if CELL == "lstm":
        c = tl.load(c_first + row * H + n[None, :], mask=real, other=0.0)
    inner = n[None, :] * 0.0
    if BIASED:
        inner = tl.load(bias + replica * H + n, mask=n < H, other=0.0)[None, :]
    weight = turned + replica * COUNT * H * H
    W0, W1, W2, W3 = h, h, h, h
    if HELD:
        column = tl.arange(0, BH)[:, None]
        W0, W1, W2, W3 = tiles(weight, column * (COUNT * H) + n[None, :], H, (column < H) & (n[None, :] < H), COUNT)
    x0, x1, x2, x3 = tiles(x, row * T * (COUNT * H) + n[None, :], H, real, COUNT)
    for t in range(T):
        if NOISY:  # noqa: SIM102  (known when the kernel is compiled, and what stands inside is not)
            if t > 0:
                h = moved(h, words, t - 1, replica, T, m, n, real, size, per_step, layer, layers, H)
                if CELL == "lstm":
                    of_c = words + tl.num_programs(1).to(tl.int64) * T * per_step
                    c = moved(c, of_c, t - 1, replica, T, m, n, real, size, per_step, layer, layers, H)
        token = row * T + t
        place = token * H + n[None, :]
        start = token * H if KEEP else row * H
        if KEEP or not HELD:
            tl.store(before + start + n[None, :], h, mask=real)
        if KEEP and CELL == "lstm":
            tl.store(cells + place, c, mask=real)
        if not HELD:
            tl.debug_barrier()
        a0, a1, a2, a3 = products(before, start, weight, m, n, B, W0, W1, W2, W3, h, COUNT, H, BM, BH, BK, HELD)
        if not HELD and not KEEP:
            tl.debug_barrier()
        if CELL == "tanh":
            h = saturate(x0 + a0)
        elif CELL == "gru":
            r, z, within = opened(x0 + a0), opened(x1 + a1), a2 + inner
            candidate = saturate(x2 + r * within)
            h = candidate + z * (h - candidate)
            if KEEP:
                put(gates, token * (4 * H) + n[None, :], H, real, r, z, candidate, within, 4)
        else:
            i, f, g, o = opened(x0 + a0), opened(x1 + a1), saturate(x2 + a2), opened(x3 + a3)
            c = f * c + i * g
            h = o * saturate(c)
            if KEEP:
                put(gates, token * (4 * H) + n[None, :], H, real, i, f, g, o, 4)
        tl.store(out + place, h, mask=real)
        # Asked for a step ahead, so that nothing waits for it.
        ahead = row * T + tl.minimum(t + 1, T - 1)
        x0, x1, x2, x3 = tiles(x, ahead * (COUNT * H) + n[None, :], H, real, COUNT)
    tl.store(h_last + row * H + n[None, :], h, mask=real)
    if CELL == "lstm":
        tl.store(c_last + row * H + n[None, :], c, mask=real)


@triton.jit
def back_through(  # type: ignore[no-untyped-def]
    dh, source, start, weight, m, n, B, V, p,
    H: tl.constexpr, BK: tl.constexpr, HELD: tl.constexpr,
):  # fmt: skip
    """dh + p W for one gate; p lies in memory too, its rows beginning at `start`."""
    if HELD:
        dh = product(p, V, dh)
    else:
        for first in range(0, H, BK):
            k = first + tl.arange(0, BK)
            part = tl.load(source + start + k[None, :], mask=(m[:, None] < B) & (k[None, :] < H), other=0.0)
            inside = (k[:, None] < H) & (n[None, :] < H)
            dh = product(part, tl.load(weight + k[:, None] * H + n[None, :], mask=inside, other=0.0), dh)
    return dh


@triton.jit(do_not_specialize=("T", "B"))
def backward_kernel(  # type: ignore[no-untyped-def]
    weights, out, before, cells, gates, dout, dh_last, dc_last, dx, dinner, dh_first, dc_first, T, B,
    CELL: tl.constexpr, COUNT: tl.constexpr, H: tl.constexpr, BM: tl.constexpr, BH: tl.constexpr, BK: tl.constexpr,
    HELD: tl.constexpr,
):  # fmt: skip
    replica = tl.program_id(1).to(tl.int64)
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BH)
    real = (m[:, None] < B) & (n[None, :] < H)
    row = replica * B + m[:, None]
    dh = tl.load(dh_last + row * H + n[None, :], mask=real, other=0.0)
    dc = dh
    if CELL == "lstm":
        dc = tl.load(dc_last + row * H + n[None, :], mask=real, other=0.0)
    weight = weights + replica * COUNT * H * H
    V0, V1, V2, V3 = dh, dh, dh, dh
    if HELD:
        line = tl.arange(0, BH)[:, None]
        V0, V1, V2, V3 = tiles(weight, line * H + n[None, :], H * H, (line < H) & (n[None, :] < H), COUNT)
    for down in range(T):
        token = row * T + (T - 1 - down)
        place, wide = token * H + n[None, :], token * (COUNT * H) + n[None, :]
        dh += tl.load(dout + place, mask=real, other=0.0)
        direct = dh * 0.0  # what reaches the state before the step without a product
        if CELL == "tanh":
            h = tl.load(out + place, mask=real, other=0.0)
            p0 = dh * (1.0 - h * h)
            p1, p2, p3 = p0, p0, p0
        elif CELL == "gru":
            r, z, candidate, within = tiles(gates, token * (4 * H) + n[None, :], H, real, 4)
            h = tl.load(before + place, mask=real, other=0.0)
            direct = dh * z
            p1 = dh * (h - candidate) * z * (1.0 - z)
            dn = dh * (1.0 - z) * (1.0 - candidate * candidate)
            p0 = dn * within * r * (1.0 - r)
            p2 = dn * r
            p3 = p2
            tl.store(dinner + place, p2, mask=real)
            tl.store(dx + wide + 2 * H, dn, mask=real)
        else:
            i, f, g, o = tiles(gates, token * (4 * H) + n[None, :], H, real, 4)
            c = tl.load(cells + place, mask=real, other=0.0)
            read = saturate(f * c + i * g)
            dc += dh * o * (1.0 - read * read)
            p0, p1 = dc * g * i * (1.0 - i), dc * c * f * (1.0 - f)
            p2, p3 = dc * i * (1.0 - g * g), dh * read * o * (1.0 - o)
            dc = dc * f
            tl.store(dx + wide + 2 * H, p2, mask=real)
            tl.store(dx + wide + 3 * H, p3, mask=real)
        tl.store(dx + wide, p0, mask=real)
        if COUNT > 1:
            tl.store(dx + wide + H, p1, mask=real)
        if not HELD:
            tl.debug_barrier()
        start = token * (COUNT * H)
        dh = back_through(direct, dx, start, weight, m, n, B, V0, p0, H, BK, HELD)
        if COUNT > 1:
            dh = back_through(dh, dx, start + H, weight + H * H, m, n, B, V1, p1, H, BK, HELD)
            if CELL == "gru":
                dh = back_through(dh, dinner, token * H, weight + 2 * H * H, m, n, B, V2, p2, H, BK, HELD)
            else:
                dh = back_through(dh, dx, start + 2 * H, weight + 2 * H * H, m, n, B, V2, p2, H, BK, HELD)
                dh = back_through(dh, dx, start + 3 * H, weight + 3 * H * H, m, n, B, V3, p3, H, BK, HELD)
    tl.store(dh_first + row * H + n[None, :], dh, mask=real)
    if CELL == "lstm":
        tl.store(dc_first + row * H + n[None, :], dc, mask=real)


def shape_of(cell: str, hidden: int) -> dict[str, Any]:
    """How a kernel for this cell is laid out."""
    wide = filled(hidden)
    return {
        "CELL": cell, "COUNT": GATES[cell], "H": hidden, "HELD": is_held(cell, hidden), "BM": ROWS, "BH": wide,
        "BK": min(wide, 16 if wide > 128 else 32), "num_warps": min(8, wide // 8),
    }  # fmt: skip


class RNNInTriton(torch.autograd.Function):
    """x (R,B,T,G H), weight (R,G H,H), h and c (R,B,H), bias (R,H); c of an LSTM and bias of a GRU alone.

    Gives h of every step and the last h and c, and what is kept for the gradient.
    """

    @staticmethod
    def forward(
        x: Tensor, weight: Tensor, h: Tensor, c: Tensor | None, bias: Tensor | None, cell: str, noise: list[Any] | None,
        keep: bool,
    ) -> tuple[Tensor | None, ...]:  # fmt: skip
        x, h = x.contiguous(), h.contiguous()
        count, rows, steps, hidden = *x.shape[:3], h.shape[-1]
        shape = shape_of(cell, hidden)
        slots = steps if keep else 0 if shape["HELD"] else 1
        out, before = x.new_empty(count, rows, steps, hidden), x.new_empty(count, rows, slots, hidden)
        gates = x.new_empty(count, rows, steps, 4, hidden) if keep and cell != "tanh" else None
        cells = torch.empty_like(before) if keep and c is not None else None
        h_last, c_last = torch.empty_like(h), None if c is None else torch.empty_like(h)
        forward_kernel[(triton.cdiv(rows, ROWS), count)](
            x, weight.mT.contiguous(), given(bias, x), h, given(c, x), out, h_last, given(c_last, x), before,
            given(cells, x), given(gates, x), *(noise or [x, 0.0, 0, 0, 1]), steps, rows,
            **shape, KEEP=keep, BIASED=bias is not None, NOISY=noise is not None,
        )  # fmt: skip
        return out, h_last, c_last, before, cells, gates

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor | None, ...]) -> None:
        out, _, _, before, cells, gates = output
        ctx.save_for_backward(inputs[1], out, before, cells, gates)
        ctx.mark_non_differentiable(*(kept for kept in (before, cells, gates) if kept is not None))
        ctx.cell, ctx.biased = inputs[5], inputs[4] is not None
        ctx.set_materialize_grads(False)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor | None, dh: Tensor | None, dc: Tensor | None, *_: None) -> Any:
        weight, out, before, cells, gates = ctx.saved_tensors
        count, rows, steps, hidden = out.shape
        weight = weight.contiguous()
        dout = torch.zeros_like(out) if dout is None else dout.contiguous()
        last = out.new_zeros(count, rows, hidden)
        dh = last if dh is None else dh.contiguous()
        dc = last if dc is None else dc.contiguous()
        dx = out.new_empty(count, rows, steps, weight.shape[1])
        dinner = torch.empty_like(out) if ctx.cell == "gru" else None
        dh_first, dc_first = torch.empty_like(last), None if cells is None else torch.empty_like(last)
        backward_kernel[(triton.cdiv(rows, ROWS), count)](
            weight, out, before, given(cells, out), given(gates, out), dout, dh, dc, dx, given(dinner, out), dh_first,
            given(dc_first, out), steps, rows, **shape_of(ctx.cell, hidden),
        )  # fmt: skip
        if dinner is None:
            return dx, over_tokens(dx, before), dh_first, dc_first, None, None, None, None
        dweight = torch.cat([over_tokens(dx[..., : 2 * hidden], before), over_tokens(dinner, before)], dim=1)
        return dx, dweight, dh_first, None, dinner.sum((1, 2)) if ctx.biased else None, None, None, None


def over_tokens(gradient: Tensor, h: Tensor) -> Tensor:
    """The sum of gradient h^T over all tokens, (R, G, H), in pieces: as one product it would be small and lonely."""
    pieces = math.gcd(h.shape[1] * h.shape[2], PIECES)
    left, right = (part.flatten(1, 2).unflatten(1, (pieces, -1)).flatten(0, 1) for part in (gradient, h))
    return torch.bmm(left.mT, right).unflatten(0, (-1, pieces)).sum(1)


def given(tensor: Tensor | None, filler: Tensor) -> Tensor:
    """A kernel is handed something for what it does not look at."""
    return filler if tensor is None else tensor


def noise_arguments(noise: Noise, steps: int, numbers: int, parts: int, layer: int, layers: int) -> list[Any]:
    """words, size, per_step, layer and layers of the kernels: the signs of h, and behind them those of c."""
    keys = torch.cat([noise.of_tensor(number).keys for number in range(parts)])
    words = noise._replace(keys=keys).words(steps, numbers).view(torch.int32)
    return [words, float(noise.size), words.shape[2], layer, layers]


def rnn_triton(
    cell: str,
    x: Tensor,
    weight: Tensor,
    state: State,
    bias: Tensor | None,
    noise: Noise | None,
    layer: int,
    layers: int,
) -> tuple[Tensor, State]:
    """rnn_reference in float32."""
    h, c = state[0], state[1] if cell == "lstm" else None
    keep = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, weight, bias, h, c))
    signs = None
    if noise is not None:
        numbers = x.shape[1] * layers * h.shape[-1]
        signs = noise_arguments(noise, x.shape[2], numbers, len(state), layer, layers)
    out, *last = RNNInTriton.apply(x, weight, h, c, bias, cell, signs, keep)[: 1 + len(state)]
    return out, tuple(last)
