"""The loops of M2RNN on a CPU, compiled by numba; cpu.py calls them.

A row of a state meets the others of its head in sums alone: it is a small network of its own, s <- f s + (1 - f)
tanh(W^T s + k_n v). So the rows of all states that share W lie side by side as lanes, n by n and one row of the batch
after another, and every loop is elementwise over lanes. A unit is one head of as many rows as fill a block of lanes.

The forward pass keeps a state every KEEP steps, without its noise. The backward pass runs such a stretch again and
walks it in reverse: with s' what a step reads, z its tanh and g the gradient of the loss in s,

    dq = s . do,   g += q do,   df = g . (s' - z),   d = (1 - f) g (1 - z^2)
    dk = d . v,    dv = d k,    dW += s' d^T,        g <- f g + W d
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.ops.e88.cpu_loops import compiled, inner, tanh

KEEP = 16


@inner
def pack_keys(row: int, rows: int, h: int, start: int, stop: int, source: Any, lanes: Any) -> None:
    """lanes[i, (b, n)] = source[row + b, start + i, h, n]; the same for all n where source has one number a head."""
    size = lanes.shape[2]
    for b in range(rows):
        for t in range(start, stop):
            for n in range(size):
                lanes[t - start, b, n] = source[row + b, t, h, n if source.shape[3] > 1 else 0]


@inner
def pack_values(row: int, rows: int, h: int, start: int, stop: int, source: Any, lanes: Any) -> None:
    """lanes[i, c, (b, n)] = source[row + b, start + i, h, c] for all n."""
    for b in range(rows):
        for t in range(start, stop):
            for c in range(lanes.shape[1]):
                for n in range(lanes.shape[3]):
                    lanes[t - start, c, b, n] = source[row + b, t, h, c]


@inner
def sum_values(row: int, rows: int, h: int, t: int, x: Any, weights: Any, size: int, target: Any) -> None:
    """target[row + b, t, h, c] = the sum over n of x[c, (b, n)] weights[(b, n)]."""
    for c in range(x.shape[0]):
        for b in range(rows):
            total = x[c, b * size] * weights[b * size]
            for n in range(1, size):
                total += x[c, b * size + n] * weights[b * size + n]
            target[row + b, t, h, c] = total


@inner
def add_noise(s: Any, row: int, rows: int, h: int, t: int, sizes: Any, noise: Any) -> None:
    """s with the noise that it gets after step t."""
    words, size, of_replica = noise
    heads, N = sizes
    V = s.shape[0]
    for b in range(rows):
        replica, among = (row + b) // of_replica, (row + b) % of_replica
        for n in range(N):
            begin = ((among * heads + h) * N + n) * V
            for c in range(V):
                bit = words[replica, t, (begin + c) // 64] >> np.uint64((begin + c) % 64) & np.uint64(1)
                s[c, b * N + n] += size if bit else -size


@inner
def clear(room: Any) -> None:
    """Zeros in the lanes that a block has too many, in which the unit before left what it had there."""
    for part in room:
        part[:] = 0


@inner
def step(s: Any, W: Any, key: Any, value: Any, keep: Any, z: Any, after: Any) -> None:
    """z = tanh(W^T s + k v), after = f s + (1 - f) z."""
    V, L = s.shape
    for c in range(V):
        for lane in range(L):
            z[c, lane] = key[lane] * value[c, lane]
        for u in range(V):
            w = W[u, c]
            for lane in range(L):
                z[c, lane] += w * s[u, lane]
        for lane in range(L):
            x = tanh(z[c, lane])
            z[c, lane] = x
            after[c, lane] = x + keep[lane] * (s[c, lane] - x)


@inner
def place(unit: int, blocks: int, rows: int, heads: int, of_replica: int) -> Any:
    """The replica, the head, the first row and the number of rows of a unit."""
    block, h, replica = unit % blocks, unit // blocks % heads, unit // (blocks * heads)
    return replica, h, replica * of_replica + block * rows, min(rows, of_replica - block * rows)


@compiled
def forward_units(
    first: int, last: int, inputs: Any, noise: Any, counts: Any, kept: Any, out: Any, room: Any, z: Any, states: Any
) -> None:
    """Units first..last; kept (unit, chunk + 1, V, L) has the first state and gets the others."""
    q, k, v, f, W = inputs
    query, key, value, keep = room
    blocks, of_replica = counts
    steps, heads, N = q.shape[1], q.shape[2], q.shape[3]
    L, noisy = kept.shape[3], noise[0].shape[2] > 0
    for unit in range(first, last):
        replica, h, row, rows = place(unit, blocks, L // N, heads, of_replica)
        if rows * N < L:
            clear((query, key, keep))
            value[:] = 0
        for chunk in range(kept.shape[1] - 1):
            start, stop = chunk * KEEP, min((chunk + 1) * KEEP, steps)
            pack_keys(row, rows, h, start, stop, q, query)
            pack_keys(row, rows, h, start, stop, k, key)
            pack_keys(row, rows, h, start, stop, f, keep)
            pack_values(row, rows, h, start, stop, v, value)
            s, after = states[0], states[1]
            s[:] = kept[unit, chunk]
            for t in range(start, stop):
                i = t - start
                if noisy and t > 0:
                    add_noise(s, row, rows, h, t - 1, (heads, N), noise)
                step(s, W[replica, h], key[i].reshape(L), value[i].reshape(-1, L), keep[i].reshape(L), z, after)
                s, after = after, s
                sum_values(row, rows, h, t, s, query[i].reshape(L), N, out)
            kept[unit, chunk + 1] = s


@inner
def through_read(
    before: Any, z: Any, keep: Any, query: Any, do: Any, value: Any, g: Any, d: Any, dq: Any, dk: Any, df: Any
) -> None:
    """Back to the argument of tanh: fills dq, dk, df (one for each lane) and d."""
    V, L = z.shape
    dq[:] = 0
    dk[:] = 0
    df[:] = 0
    for c in range(V):
        for lane in range(L):
            x, s = z[c, lane], before[c, lane]
            y = g[c, lane] + query[lane] * do[c, lane]
            dq[lane] += (x + keep[lane] * (s - x)) * do[c, lane]
            df[lane] += y * (s - x)
            g[c, lane] = y
            y *= (1 - keep[lane]) * (1 - x * x)
            dk[lane] += y * value[c, lane]
            d[c, lane] = y


@inner
def through_product(before: Any, W: Any, keep: Any, d: Any, g: Any, dW: Any) -> None:
    """dW += s' d^T and g <- f g + W d."""
    V, L = g.shape
    for u in range(V):
        for lane in range(L):
            g[u, lane] *= keep[lane]
        for c in range(V):
            w = W[u, c]
            total = w * 0
            for lane in range(L):
                total += before[u, lane] * d[c, lane]
                g[u, lane] += w * d[c, lane]
            dW[u, c] += total


@inner
def put_keys(row: int, rows: int, h: int, t: int, size: int, lanes: Any, target: Any) -> None:
    """target[row + b, t, h, n] = lanes[(b, n)], or their sum over n where target has one number a head."""
    for b in range(rows):
        if target.shape[3] == size:
            for n in range(size):
                target[row + b, t, h, n] = lanes[b * size + n]
        else:
            target[row + b, t, h, 0] = lanes[b * size : (b + 1) * size].sum()


@compiled
def backward_units(
    first: int, last: int, inputs: Any, noise: Any, counts: Any, kept: Any, dout: Any, gradients: Any, G: Any,
    room: Any, z: Any, states: Any, grads: Any,
) -> None:  # fmt: skip
    """Units first..last: fills the gradients, and carries G (unit, V, L) from the last state to the first."""
    q, k, v, f, W = inputs
    query, key, value, keep, do = room
    dq, dk, dv, df, dW = gradients
    d, of_query, of_key, of_keep = grads
    blocks, of_replica = counts
    steps, heads, N = q.shape[1], q.shape[2], q.shape[3]
    L, noisy = kept.shape[3], noise[0].shape[2] > 0
    for unit in range(first, last):
        replica, h, row, rows = place(unit, blocks, L // N, heads, of_replica)
        if rows * N < L:
            clear((query, key, keep))
            clear((value, do))
        for chunk in range(kept.shape[1] - 2, -1, -1):
            start, stop = chunk * KEEP, min((chunk + 1) * KEEP, steps)
            pack_keys(row, rows, h, start, stop, q, query)
            pack_keys(row, rows, h, start, stop, k, key)
            pack_keys(row, rows, h, start, stop, f, keep)
            pack_values(row, rows, h, start, stop, v, value)
            pack_values(row, rows, h, start, stop, dout, do)
            states[0] = kept[unit, chunk]
            for t in range(start, stop):
                i = t - start
                if noisy and t > 0:
                    add_noise(states[i], row, rows, h, t - 1, (heads, N), noise)
                values, kept_part = value[i].reshape(-1, L), keep[i].reshape(L)
                step(states[i], W[replica, h], key[i].reshape(L), values, kept_part, z[i], states[i + 1])
            for t in range(stop - 1, start - 1, -1):
                i = t - start
                values, kept_part = value[i].reshape(-1, L), keep[i].reshape(L)
                through_read(
                    states[i], z[i], kept_part, query[i].reshape(L), do[i].reshape(-1, L), values, G[unit], d,
                    of_query, of_key, of_keep,
                )  # fmt: skip
                put_keys(row, rows, h, t, N, of_query, dq)
                put_keys(row, rows, h, t, N, of_key, dk)
                put_keys(row, rows, h, t, N, of_keep, df)
                sum_values(row, rows, h, t, d, key[i].reshape(L), N, dv)
                through_product(states[i], W[replica, h], kept_part, d, G[unit], dW[unit])
