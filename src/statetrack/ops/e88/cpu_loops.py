"""The loops of E88 on a CPU, compiled by numba; cpu.py calls them.

The heads of all rows lie side by side as lanes, so that every loop is elementwise over lanes. A column of S meets the
others only in sums, so one column of one block of lanes is run at a time and stays in the first-level cache.

The forward pass keeps a state every KEEP steps. The backward pass runs such a stretch again from the state kept before
it, then walks it in reverse; memory grows with T / KEEP, not with T. For a column s of S, s' the same before the step,
g the gradient of the loss in s, z_j what write j reads (z_1 = s'), r_j = z_j . k_j and e_j = v_j - beta_j r_j:

    dq += s do,   g += q do,   g *= 1 - s^2
    for each write, last first:   dv = de = g . k,   dbeta -= de r,   dr = -beta de,   dk += g e + z dr
                                  g <- factor g + k dr,   with factor = decay at the first write and 1 at the others
    at the first write:           ddecay += g . s'

Without q all of the state is read: out is s, row by row, and g += do. Without beta nothing is corrected: e = v. Noise
moves s' before the first write; states are kept without it, and it is put on them again.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

KEEP = 16

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

    With `swap` it is lanes[t, n, j, lane], so that all writes to a column lie together. Step by step: what is written
    in one, a line of the cache for each n, stays in the first-level cache until the next lane writes beside it.
    """
    heads = source.shape[3]
    for t in range(start, stop):
        for j in range(source.shape[2]):
            for lane in range(count):
                b, h = (first + lane) // heads, (first + lane) % heads
                for n in range(source.shape[4]):
                    x, y = (n, j) if swap else (j, n)
                    lanes[t - start, x, y, lane] = source[b, t, j, h, n]


@inner
def unpack(first: int, count: int, start: int, stop: int, lanes: Any, target: Any, swap: bool) -> None:
    """The reverse of pack."""
    heads = target.shape[3]
    for t in range(start, stop):
        for j in range(target.shape[2]):
            for lane in range(count):
                b, h = (first + lane) // heads, (first + lane) % heads
                for n in range(target.shape[4]):
                    x, y = (n, j) if swap else (j, n)
                    target[b, t, j, h, n] = lanes[t - start, x, y, lane]


@inner
def pack_signs(first: int, count: int, start: int, stop: int, words: Any, rows: int, numbers: int, bits: Any) -> None:
    """bits[i, w, lane]: the signs of the numbers 32 w .. 32 w + 31 of a pair's state before step start + i.

    Those are what it was given after the step before. A replica has `rows` pairs, of this many numbers each.
    """
    for lane in range(count):
        replica, begin = (first + lane) // rows, (first + lane) % rows * numbers
        for t in range(max(1, start), stop):
            for w in range(bits.shape[1]):
                place = begin + 32 * w
                word, used = place // 64, place % 64
                found = words[replica, t - 1, word] >> np.uint64(used)
                if used > 32 and word + 1 < words.shape[2]:
                    found |= words[replica, t - 1, word + 1] << np.uint64(64 - used)
                bits[t - start, w, lane] = np.uint32(found & np.uint64(0xFFFFFFFF))


@inner
def moved(s: Any, bits: Any, size: float, c: int, width: int, target: Any) -> None:
    """target = column c of a state with its noise."""
    for n in range(s.shape[0]):
        place = n * width + c
        w, bit = place // 32, np.uint32(1) << np.uint32(place % 32)
        for lane in range(s.shape[1]):
            target[n, lane] = s[n, lane] + (size if bits[w, lane] & bit else -size)


@inner
def dot(x: Any, y: Any, product: Any) -> None:
    """product = x . y in every lane. Four rows at a time, one after the other: so a sum is loaded and stored once for
    four products, and comes out as if they were taken singly.
    """
    N, L = x.shape
    fours = N - N % 4
    product[:] = 0
    for n in range(0, fours, 4):
        for lane in range(L):
            p = product[lane]
            p += x[n, lane] * y[n, lane]
            p += x[n + 1, lane] * y[n + 1, lane]
            p += x[n + 2, lane] * y[n + 2, lane]
            p += x[n + 3, lane] * y[n + 3, lane]
            product[lane] = p
    for n in range(fours, N):
        for lane in range(L):
            product[lane] += x[n, lane] * y[n, lane]


@inner
def write(s: Any, z: Any, decay: Any, k: Any, v: Any, beta: Any, corrects: bool, saturates: bool, e: Any) -> None:
    """z = f(decay s + k e) with e = v - beta (s . k), or e = v, for one column in every lane.

    z must not be s: LLVM would see that they overlap and take its scalar loop.
    """
    N, L = s.shape
    if corrects:
        dot(k, s, e)
        for lane in range(L):
            e[lane] = v[lane] - beta[lane] * e[lane]
    else:
        e[:] = v
    for n in range(N):
        if saturates:
            for lane in range(L):
                z[n, lane] = tanh(decay[lane] * s[n, lane] + k[n, lane] * e[lane])
        else:
            for lane in range(L):
                z[n, lane] = decay[lane] * s[n, lane] + k[n, lane] * e[lane]


@inner
def step(
    s: Any, z: Any, t: int, c: int, room: Any, ones: Any, corrects: bool, saturates: bool, between: Any, e: Any
) -> None:
    """z = column c after step t of the stretch; between[j] becomes what write j > 0 reads."""
    _, k, v, decay, beta, _ = room
    last = k.shape[1] - 1
    for j in range(last + 1):
        source, factor = (s, decay[t, 0, 0]) if j == 0 else (between[j], ones)
        target = z if j == last else between[j + 1]
        write(source, target, factor, k[t, j], v[t, c, j], beta[t, 0, j], corrects, saturates and j == last, e)


@compiled
def forward_blocks(
    first: int, last: int, inputs: Any, saturates: bool, whole: bool, noise: Any, kept: Any, out: Any,
    room: Any, states: Any, between: Any, lines: Any,
) -> None:  # fmt: skip
    """Blocks first..last of lanes; kept (block, chunk + 1, V, N, L) has the first state and gets the others."""
    k = inputs[1]
    steps, V, N, L = k.shape[1], kept.shape[2], kept.shape[3], kept.shape[4]
    ones, e, shifted = lines[0], lines[1], states[2]
    words, size, rows, bits = noise
    noisy, corrects = words.shape[2] > 0, inputs[4].shape[4] > 0
    for block in range(first, last):
        row, count = block * L, min(L, k.shape[0] * k.shape[3] - block * L)
        for chunk in range(kept.shape[1] - 1):
            start, stop = chunk * KEEP, min((chunk + 1) * KEEP, steps)
            for i in range(5):
                pack(row, count, start, stop, inputs[i], room[i], SWAPPED[i])
            if noisy:
                pack_signs(row, count, start, stop, words, rows, N * V, bits)
            for c in range(V):
                s, z = states[0], states[1]
                s[:] = kept[block, chunk, c]
                for t in range(stop - start):
                    if noisy and start + t > 0:
                        moved(s, bits[t], size, c, V, shifted)
                        step(shifted, z, t, c, room, ones, corrects, saturates, between, e)
                    else:
                        step(s, z, t, c, room, ones, corrects, saturates, between, e)
                    s, z = z, s
                    if whole:
                        room[5][t, c] = s
                    else:
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
def through_whole(s: Any, do: Any, g: Any, saturates: bool) -> None:
    """g <- (g + do) (1 - s^2), where all of the state was read."""
    for n in range(s.shape[0]):
        for lane in range(s.shape[1]):
            x, y = s[n, lane], g[n, lane] + do[n, lane]
            g[n, lane] = y - y * x * x if saturates else y


@inner
def through_write(
    z: Any, g: Any, factor: Any, k: Any, v: Any, beta: Any, corrects: bool, dfactor: Any, dk: Any, de: Any, dbeta: Any,
    scratch: Any,
) -> None:  # fmt: skip
    """Back through z' = factor z + k e: g is the gradient in z' and becomes that in z."""
    N, L = z.shape
    r, e, dr = scratch[0], scratch[1], scratch[2]
    dot(g, k, de)
    if not corrects:
        for n in range(N):
            for lane in range(L):
                x, y = z[n, lane], g[n, lane]
                dk[n, lane] += y * v[lane]
                dfactor[lane] += x * y
                g[n, lane] = factor[lane] * y
        return
    dot(z, k, r)
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
def backward_step(
    s: Any, t: int, c: int, room: Any, grads: Any, g: Any, ones: Any, corrects: bool, between: Any, scratch: Any
) -> None:
    """Back through all writes of step t to column c, which read s."""
    _, k, v, decay, beta, _ = room
    _, dk, dv, ddecay, dbeta, _ = grads
    R = k.shape[1]
    between[0] = s
    for j in range(R - 1):
        factor = decay[t, 0, 0] if j == 0 else ones
        write(between[j], between[j + 1], factor, k[t, j], v[t, c, j], beta[t, 0, j], corrects, False, scratch[0])
    for j in range(R - 1, -1, -1):
        factor, dfactor = (decay[t, 0, 0], ddecay[t, 0, 0]) if j == 0 else (ones, scratch[3])
        through_write(
            between[j], g, factor, k[t, j], v[t, c, j], beta[t, 0, j], corrects,
            dfactor, dk[t, j], dv[t, c, j], dbeta[t, 0, j], scratch,
        )  # fmt: skip


@compiled
def backward_blocks(
    first: int, last: int, inputs: Any, saturates: bool, whole: bool, noise: Any, kept: Any, dout: Any, gradients: Any,
    G: Any, room: Any, grads: Any, states: Any, between: Any, lines: Any,
) -> None:  # fmt: skip
    """Blocks first..last: fills the gradients, and carries G (block, V, N, L) from the last state to the first."""
    k = inputs[1]
    steps, V, N, L = k.shape[1], kept.shape[2], kept.shape[3], kept.shape[4]
    ones, scratch, shifted = lines[0], lines[1:], states[KEEP + 1]
    words, size, rows, bits = noise
    noisy, corrects = words.shape[2] > 0, inputs[4].shape[4] > 0
    for block in range(first, last):
        row, count = block * L, min(L, k.shape[0] * k.shape[3] - block * L)
        for chunk in range(kept.shape[1] - 2, -1, -1):
            start, stop = chunk * KEEP, min((chunk + 1) * KEEP, steps)
            for i in range(5):
                pack(row, count, start, stop, inputs[i], room[i], SWAPPED[i])
                grads[i][:] = 0
            pack(row, count, start, stop, dout, room[5], True)
            if noisy:
                pack_signs(row, count, start, stop, words, rows, N * V, bits)
            for c in range(V):
                states[0] = kept[block, chunk, c]
                for t in range(stop - start):
                    s = states[t]
                    if noisy and start + t > 0:
                        moved(s, bits[t], size, c, V, shifted)
                        s = shifted
                    step(s, states[t + 1], t, c, room, ones, corrects, saturates, between, scratch[0])
                for t in range(stop - start - 1, -1, -1):
                    s, g = states[t + 1], G[block, c]
                    if whole:
                        through_whole(s, room[5][t, c], g, saturates)
                    else:
                        through_read(s, room[0][t, 0], room[5][t, c, 0], g, grads[0][t, 0], saturates)
                    s = states[t]
                    if noisy and start + t > 0:
                        moved(s, bits[t], size, c, V, shifted)
                        s = shifted
                    backward_step(s, t, c, room, grads, g, ones, corrects, between, scratch)
            for i in range(5):
                unpack(row, count, start, stop, grads[i], gradients[i], SWAPPED[i])
