"""E88 on a CPU, compiled by numba.

The heads of all rows lie side by side as lanes, so that every loop is elementwise over lanes. A column of S meets the
others only in sums, so one column of one block of lanes is run at a time and stays in the first-level cache.

The forward pass keeps a state every KEEP steps. The backward pass runs such a stretch again from the state kept before
it, then walks it in reverse; memory grows with T / KEEP, not with T. For a column s of S, s' the same before the step,
g the gradient of the loss in s, z_j what write j reads (z_1 = s'), r_j = z_j . k_j and e_j = v_j - beta_j r_j:

    dq += s do,   g += q do,   g *= 1 - s^2
    for each write, last first:   dv = de = g . k,   dbeta -= de r,   dr = -beta de,   dk += g e + z dr
                                  g <- factor g + k dr,   with factor = decay at the first write and 1 at the others
    at the first write:           ddecay += g . s'
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numba import njit, types
from numba.extending import overload
from torch import Tensor
from torch.autograd.function import once_differentiable

from statetrack.ops.e88.kernels import save_inputs_and_kept
from statetrack.ops.parallel import in_threads

KEEP = 16
LANES = 64  # by measurement, over heads of 8 and of 32: fewer leave loops too short, more leave the cache

SWAPPED = (False, False, True, False, True)  # of q, k, v, decay, beta: see pack

# Sums may be reordered (they vectorise), NaN and infinity keep their meaning, and a division needs no check for zero.
OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}
compiled = njit(cache=True, **OPTIONS)  # called from Python
inner = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **OPTIONS)  # called from the compiled ones only

# tanh(x) = x P(x^2) / Q(x^2) for |x| < 9, fitted by weighted least squares to 2.1e-8; beyond, float32 rounds tanh to 1.
EDGE, ONE = np.float32(9), np.float32(1)
P1, P2, P3, P4 = (np.float32(p) for p in (0.133810216, 0.00349558315, 2.0608997e-05, 1.3354542e-08))
Q1, Q2, Q3, Q4 = (np.float32(q) for q in (0.467143372, 0.0258769636, 0.000328562652, 7.77650963e-07))


def tanh(x: float) -> float:
    """tanh, in a form that LLVM vectorises for float32 and exactly for float64."""
    return math.tanh(x)


@overload(tanh, inline="always")
def _tanh(x: Any) -> Any:
    def exact(x: Any) -> Any:
        return math.tanh(x)

    def rational(x: Any) -> Any:
        # Written so that NaN falls through every comparison and stays NaN.
        y = EDGE if x > EDGE else (-EDGE if x < -EDGE else x)
        u = y * y
        y = y * (ONE + u * (P1 + u * (P2 + u * (P3 + u * P4)))) / (ONE + u * (Q1 + u * (Q2 + u * (Q3 + u * Q4))))
        y = ONE if y > ONE else (-ONE if y < -ONE else y)
        return ONE if x > EDGE else (-ONE if x < -EDGE else y)

    return rational if x == types.float32 else exact


@inner
def pack(first: int, count: int, start: int, stop: int, source: Any, lanes: Any, swap: bool) -> None:
    """lanes[t, j, n, lane] = source[b, start + t, j, h, n] for the `count` pairs (b, h) from `first` on.

    With `swap` it is lanes[t, n, j, lane], so that all writes to a column lie together.
    """
    heads = source.shape[3]
    for lane in range(count):
        b, h = (first + lane) // heads, (first + lane) % heads
        for t in range(start, stop):
            for j in range(source.shape[2]):
                for n in range(source.shape[4]):
                    x, y = (n, j) if swap else (j, n)
                    lanes[t - start, x, y, lane] = source[b, t, j, h, n]


@inner
def unpack(first: int, count: int, start: int, stop: int, lanes: Any, target: Any, swap: bool) -> None:
    """The reverse of pack."""
    heads = target.shape[3]
    for lane in range(count):
        b, h = (first + lane) // heads, (first + lane) % heads
        for t in range(start, stop):
            for j in range(target.shape[2]):
                for n in range(target.shape[4]):
                    x, y = (n, j) if swap else (j, n)
                    target[b, t, j, h, n] = lanes[t - start, x, y, lane]


@inner
def dot(x: Any, y: Any, product: Any) -> None:
    """product = x . y in every lane."""
    product[:] = 0
    for n in range(x.shape[0]):
        for lane in range(x.shape[1]):
            product[lane] += x[n, lane] * y[n, lane]


@inner
def write(s: Any, z: Any, decay: Any, k: Any, v: Any, beta: Any, saturates: bool, e: Any) -> None:
    """z = f(decay s + k e) with e = v - beta (s . k), for one column in every lane.

    z must not be s: LLVM would see that they overlap and take its scalar loop.
    """
    N, L = s.shape
    dot(k, s, e)
    for lane in range(L):
        e[lane] = v[lane] - beta[lane] * e[lane]
    for n in range(N):
        if saturates:
            for lane in range(L):
                z[n, lane] = tanh(decay[lane] * s[n, lane] + k[n, lane] * e[lane])
        else:
            for lane in range(L):
                z[n, lane] = decay[lane] * s[n, lane] + k[n, lane] * e[lane]


@inner
def step(s: Any, z: Any, t: int, c: int, room: Any, ones: Any, saturates: bool, between: Any, e: Any) -> None:
    """z = column c after step t of the stretch; between[j] becomes what write j > 0 reads."""
    _, k, v, decay, beta, _ = room
    last = k.shape[1] - 1
    for j in range(last + 1):
        source, factor = (s, decay[t, 0, 0]) if j == 0 else (between[j], ones)
        target = z if j == last else between[j + 1]
        write(source, target, factor, k[t, j], v[t, c, j], beta[t, 0, j], saturates and j == last, e)


@compiled
def forward_blocks(
    first: int, last: int, inputs: Any, saturates: bool, kept: Any, out: Any,
    room: Any, states: Any, between: Any, lines: Any,
) -> None:  # fmt: skip
    """Blocks first..last of lanes; kept (block, chunk + 1, V, N, L) has the first state and gets the others."""
    q = inputs[0]
    steps, V, L = q.shape[1], kept.shape[2], kept.shape[4]
    ones, e = lines[0], lines[1]
    for block in range(first, last):
        row, count = block * L, min(L, q.shape[0] * q.shape[3] - block * L)
        for chunk in range(kept.shape[1] - 1):
            start, stop = chunk * KEEP, min((chunk + 1) * KEEP, steps)
            for i in range(5):
                pack(row, count, start, stop, inputs[i], room[i], SWAPPED[i])
            for c in range(V):
                s, z = states[0], states[1]
                s[:] = kept[block, chunk, c]
                for t in range(stop - start):
                    step(s, z, t, c, room, ones, saturates, between, e)
                    s, z = z, s
                    dot(room[0][t, 0], s, room[5][t, c, 0])
                kept[block, chunk + 1, c] = s
            unpack(row, count, start, stop, room[5], out, True)


@inner
def through_read(s: Any, q: Any, do: Any, g: Any, dq: Any, saturates: bool) -> None:
    """dq += s do; g <- (g + q do) (1 - s^2)."""
    for n in range(s.shape[0]):
        for lane in range(s.shape[1]):
            x = s[n, lane]
            y = g[n, lane] + q[n, lane] * do[lane]
            dq[n, lane] += x * do[lane]
            g[n, lane] = y - y * x * x if saturates else y


@inner
def through_write(
    z: Any, g: Any, factor: Any, k: Any, v: Any, beta: Any, dfactor: Any, dk: Any, de: Any, dbeta: Any, scratch: Any
) -> None:
    """Back through z' = factor z + k e: g is the gradient in z' and becomes that in z."""
    N, L = z.shape
    r, e, dr = scratch[0], scratch[1], scratch[2]
    dot(z, k, r)
    dot(g, k, de)
    for lane in range(L):
        dbeta[lane] -= de[lane] * r[lane]
        e[lane] = v[lane] - beta[lane] * r[lane]
        dr[lane] = -beta[lane] * de[lane]
    for n in range(N):
        for lane in range(L):
            x, y = z[n, lane], g[n, lane]
            dk[n, lane] += y * e[lane] + x * dr[lane]
            dfactor[lane] += x * y
            g[n, lane] = factor[lane] * y + k[n, lane] * dr[lane]


@inner
def backward_step(s: Any, t: int, c: int, room: Any, grads: Any, g: Any, ones: Any, between: Any, scratch: Any) -> None:
    """Back through all writes of step t to column c, whose state before the step is s."""
    _, k, v, decay, beta, _ = room
    _, dk, dv, ddecay, dbeta, _ = grads
    R = k.shape[1]
    between[0] = s
    for j in range(R - 1):
        factor = decay[t, 0, 0] if j == 0 else ones
        write(between[j], between[j + 1], factor, k[t, j], v[t, c, j], beta[t, 0, j], False, scratch[0])
    for j in range(R - 1, -1, -1):
        factor, dfactor = (decay[t, 0, 0], ddecay[t, 0, 0]) if j == 0 else (ones, scratch[3])
        through_write(
            between[j], g, factor, k[t, j], v[t, c, j], beta[t, 0, j],
            dfactor, dk[t, j], dv[t, c, j], dbeta[t, 0, j], scratch,
        )  # fmt: skip


@compiled
def backward_blocks(
    first: int, last: int, inputs: Any, saturates: bool, kept: Any, dout: Any, gradients: Any, G: Any,
    room: Any, grads: Any, states: Any, between: Any, lines: Any,
) -> None:  # fmt: skip
    """Blocks first..last: fills the gradients, and carries G (block, V, N, L) from the last state to the first."""
    q = inputs[0]
    steps, V, L = q.shape[1], kept.shape[2], kept.shape[4]
    ones, scratch = lines[0], lines[1:]
    for block in range(first, last):
        row, count = block * L, min(L, q.shape[0] * q.shape[3] - block * L)
        for chunk in range(kept.shape[1] - 2, -1, -1):
            start, stop = chunk * KEEP, min((chunk + 1) * KEEP, steps)
            for i in range(5):
                pack(row, count, start, stop, inputs[i], room[i], SWAPPED[i])
                grads[i][:] = 0
            pack(row, count, start, stop, dout, room[5], True)
            for c in range(V):
                states[0] = kept[block, chunk, c]
                for t in range(stop - start):
                    step(states[t], states[t + 1], t, c, room, ones, saturates, between, scratch[0])
                for t in range(stop - start - 1, -1, -1):
                    through_read(states[t + 1], room[0][t, 0], room[5][t, c, 0], G[block, c], grads[0][t, 0], saturates)
                    backward_step(states[t], t, c, room, grads, G[block, c], ones, between, scratch)
            for i in range(5):
                unpack(row, count, start, stop, grads[i], gradients[i], SWAPPED[i])


def stretch(inputs: tuple[np.ndarray, ...], lanes: int) -> tuple[np.ndarray, ...]:
    """Room for KEEP steps of q, k, v, decay, beta and out in lanes."""
    _, k, v, _, _ = inputs
    R, N, V = k.shape[2], k.shape[4], v.shape[4]
    shapes = ((1, N), (R, N), (V, R), (1, 1), (1, R), (V, 1))
    return tuple(np.zeros((KEEP, *shape, lanes), k.dtype) for shape in shapes)


def workspace(inputs: tuple[np.ndarray, ...], lanes: int, states: int) -> tuple[np.ndarray, ...]:
    """Columns of `states` steps, what the writes of a step read, and lines of scratch, the first of them ones."""
    k = inputs[1]
    R, N = k.shape[2], k.shape[4]
    lines = np.zeros((5, lanes), k.dtype)
    lines[0] = 1
    return np.zeros((states, N, lanes), k.dtype), np.zeros((R, N, lanes), k.dtype), lines


# Memory is taken here and not in the compiled loops: allocations are slow to compile.
def forward_part(
    first: int, last: int, inputs: tuple[np.ndarray, ...], saturates: bool, kept: np.ndarray, out: np.ndarray
) -> None:
    lanes = kept.shape[-1]
    forward_blocks(
        first, last, inputs, saturates, kept, out, stretch(inputs, lanes), *workspace(inputs, lanes, states=2)
    )


def backward_part(
    first: int, last: int, inputs: tuple[np.ndarray, ...], saturates: bool, kept: np.ndarray, dout: np.ndarray,
    gradients: tuple[np.ndarray, ...], dstate: np.ndarray,
) -> None:  # fmt: skip
    lanes = kept.shape[-1]
    backward_blocks(
        first, last, inputs, saturates, kept, dout, gradients, dstate,
        stretch(inputs, lanes), stretch(inputs, lanes), *workspace(inputs, lanes, states=KEEP + 1),
    )  # fmt: skip


def to_lanes(state: Tensor, lanes: int) -> Tensor:
    """(B,H,N,V) -> (block, V, N, lane), the last block padded with zeros."""
    rows = state.flatten(0, 1)
    blocks = -(-rows.shape[0] // lanes)
    padded = rows.new_zeros(blocks * lanes, *rows.shape[1:])
    padded[: rows.shape[0]] = rows
    return padded.unflatten(0, (blocks, lanes)).permute(0, 3, 2, 1)


def from_lanes(packed: Tensor, batch: int, heads: int) -> Tensor:
    """The reverse of to_lanes."""
    return packed.permute(0, 3, 2, 1).flatten(0, 1)[: batch * heads].unflatten(0, (batch, heads)).contiguous()


def five_axes(q: Tensor, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor) -> list[Tensor]:
    """Every input as (B, T, R or 1, H, N, V or 1), contiguous and cut from the graph."""
    shaped = (q.unsqueeze(2), k, v, decay[:, :, None, :, None], beta.unsqueeze(-1))
    return [tensor.detach().contiguous() for tensor in shaped]


def arrays(tensors: Iterable[Tensor]) -> tuple[np.ndarray, ...]:
    """The same memory as numpy sees it."""
    return tuple(tensor.numpy() for tensor in tensors)


class E88OnCPU(torch.autograd.Function):
    """The same arguments and results as e88_reference, and the kept states."""

    @staticmethod
    def forward(
        q: Tensor, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor, state: Tensor, nonlinearity: str
    ) -> tuple[Tensor, Tensor, Tensor]:
        batch, steps, heads, _ = q.shape
        start = to_lanes(state.detach(), min(LANES, batch * heads))
        blocks = start.shape[0]
        kept = start.new_empty(blocks, -(-steps // KEEP) + 1, *start.shape[1:])
        kept[:, 0] = start
        out = q.new_empty(batch, steps, 1, heads, v.shape[-1])
        inputs = arrays(five_axes(q, k, v, decay, beta))
        in_threads(forward_part, blocks, inputs, nonlinearity == "tanh", kept.numpy(), out.numpy())
        return out.squeeze(2), from_lanes(kept[:, -1], batch, heads), kept

    setup_context = staticmethod(save_inputs_and_kept)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Any, tuple[int | None, ...]]:
        """Under torch.func.vmap the mapped axis (replicas of a model, say) joins the batch."""
        count = info.batch_size
        folded = []
        for tensor, dim in zip(inputs[:6], in_dims):
            mapped = tensor.expand(count, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
            folded.append(mapped.flatten(0, 1))
        out, last, kept = E88OnCPU.apply(*folded, inputs[6])
        return (out.unflatten(0, (count, -1)), last.unflatten(0, (count, -1)), kept), (0, 0, None)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor | None, dlast: Tensor | None, _: None) -> tuple[Tensor | None, ...]:
        *inputs, kept = ctx.saved_tensors
        shaped = five_axes(*inputs)
        gradients = [torch.empty_like(tensor) for tensor in shaped]
        batch, steps, heads = inputs[0].shape[:3]
        width = kept.shape[2]
        dout = kept.new_zeros(batch, steps, heads, width) if dout is None else dout
        dlast = kept.new_zeros(batch, heads, kept.shape[3], width) if dlast is None else dlast
        dstate = to_lanes(dlast, kept.shape[-1]).contiguous()
        dout = dout.unsqueeze(2).contiguous()
        in_threads(
            backward_part, len(kept), arrays(shaped), ctx.saturates,
            kept.numpy(), dout.numpy(), arrays(gradients), dstate.numpy(),
        )  # fmt: skip
        as_given = [gradient.reshape(tensor.shape) for gradient, tensor in zip(gradients, inputs)]
        return *as_given, from_lanes(dstate, batch, heads), None


def e88_cpu(
    q: Tensor, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor, state: Tensor, nonlinearity: str
) -> tuple[Tensor, Tensor]:
    """e88_reference, faster."""
    out, last, _ = E88OnCPU.apply(q, k, v, decay, beta, state, nonlinearity)
    return out, last
