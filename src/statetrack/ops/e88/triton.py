"""E88 in Triton: any number of writes per step, heads of any size up to 64 x 64. One program is one head of one row.

It serves where the CUDA C++ does not: larger heads, many writes per step, cards NVRTC cannot compile for. Like
cpu_loops.py, which spells out the gradients, it keeps a state every KEEP steps and runs such a stretch again in the
backward pass; what each write reads goes to a scratch of KEEP steps in between. States are kept without their noise.

With TRITON_INTERPRET=1 the same kernels run on CPU tensors, slowly: that is how they are tested without a GPU.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from statetrack.ops.e88.kernels import in_sizes, save_inputs_and_kept, words_of
from statetrack.ops.noise import Noise

SIZES = (8, 16, 32, 64)
KEEP = 16


@triton.jit
def saturate(z):  # type: ignore[no-untyped-def]
    """tanh z = 1 - 2 / (1 + e^{2z}), absolute error about 1e-7."""
    return 1.0 - 2.0 / (1.0 + tl.exp(2.0 * z))


@triton.jit
def write(z, factor, key, value, rate):  # type: ignore[no-untyped-def]
    """factor z + k (v - beta z^T k)^T"""
    error = value - rate * tl.sum(z * key[:, None], 0)
    return factor * z + key[:, None] * error[None, :]


@triton.jit
def moved(S, words, t, row, n, c, T, size, rows, per_step, n_true, width):  # type: ignore[no-untyped-def]
    """S with the noise that it gets after step t; none on what heads are filled up with. A replica has `rows` heads."""
    place = (row % rows * n_true + n[:, None]) * width + c[None, :]
    real = (n[:, None] < n_true) & (c[None, :] < width)
    word = tl.load(words + (row // rows * T + t) * per_step + place // 64, mask=real, other=0)
    up = ((word >> (place % 64)) & 1) == 1
    return S + tl.where(real, tl.where(up, size, -size), 0.0)


@triton.jit
def forward_kernel(  # type: ignore[no-untyped-def]
    q, k, v, decay, beta, first, out, kept, last, words, size, rows, per_step, n_true, width, T, H, chunks,
    R: tl.constexpr, N: tl.constexpr, V: tl.constexpr, KEPT: tl.constexpr, SATURATES: tl.constexpr,
    WHOLE: tl.constexpr, NOISY: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    n, c = tl.arange(0, N), tl.arange(0, V)
    tile = n[:, None] * V + c[None, :]
    S = tl.load(first + row * N * V + tile)
    for t in range(T):
        token = (row // H * T + t) * H + row % H
        if t % KEPT == 0:
            tl.store(kept + (row * chunks + t // KEPT) * N * V + tile, S)
        if NOISY:  # noqa: SIM102  (known when the kernel is compiled, and what stands inside is not)
            if t > 0:
                S = moved(S, words, t - 1, row, n, c, T, size, rows, per_step, n_true, width)
        factor = tl.load(decay + token)
        for j in range(R):
            at = ((row // H * T + t) * R + j) * H + row % H
            key, value = tl.load(k + at * N + n).to(tl.float32), tl.load(v + at * V + c).to(tl.float32)
            S = write(S, factor, key, value, tl.load(beta + at))
            factor = factor * 0.0 + 1.0
        if SATURATES:
            S = saturate(S)
        if WHOLE:
            tl.store(out + ((row // H * T + t) * N + n[:, None]) * H * V + row % H * V + c[None, :], S)
        else:
            query = tl.load(q + token * N + n).to(tl.float32)
            tl.store(out + token * V + c, tl.sum(S * query[:, None], 0))
    if NOISY:
        S = moved(S, words, T - 1, row, n, c, T, size, rows, per_step, n_true, width)
    tl.store(last + row * N * V + tile, S)


@triton.jit
def backward_kernel(  # type: ignore[no-untyped-def]
    q, k, v, decay, beta, kept, dout, dlast, scratch, dq, dk, dv, ddecay, dbeta, dfirst,
    words, size, rows, per_step, n_true, width, T, H, chunks,
    R: tl.constexpr, N: tl.constexpr, V: tl.constexpr, KEPT: tl.constexpr, SATURATES: tl.constexpr,
    WHOLE: tl.constexpr, NOISY: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    n, c = tl.arange(0, N), tl.arange(0, V)
    tile = n[:, None] * V + c[None, :]
    # What write j of step i reads is number i R + j; the first of a step reads that with its noise.
    reads = scratch + row * (KEPT * R + 1) * N * V + tile
    G = tl.load(dlast + row * N * V + tile)
    for back in range(chunks):
        chunk = chunks - 1 - back
        steps = tl.minimum(KEPT, T - chunk * KEPT)
        S = tl.load(kept + (row * chunks + chunk) * N * V + tile)
        for i in range(steps):
            t = chunk * KEPT + i
            factor = tl.load(decay + (row // H * T + t) * H + row % H)
            for j in range(R):
                tl.store(reads + (i * R + j) * N * V, S)
                if NOISY:  # noqa: SIM102
                    if (j == 0) & (t > 0):
                        S = moved(S, words, t - 1, row, n, c, T, size, rows, per_step, n_true, width)
                at = ((row // H * T + t) * R + j) * H + row % H
                key, value = tl.load(k + at * N + n).to(tl.float32), tl.load(v + at * V + c).to(tl.float32)
                S = write(S, factor, key, value, tl.load(beta + at))
                factor = factor * 0.0 + 1.0
            if SATURATES:
                S = saturate(S)
        tl.debug_barrier()
        for down in range(steps):
            i = steps - 1 - down
            token = (row // H * T + chunk * KEPT + i) * H + row % H
            if WHOLE:
                t = chunk * KEPT + i
                G += tl.load(dout + ((row // H * T + t) * N + n[:, None]) * H * V + row % H * V + c[None, :])
            else:
                query, do = tl.load(q + token * N + n).to(tl.float32), tl.load(dout + token * V + c).to(tl.float32)
                tl.store(dq + token * N + n, tl.sum(S * do[None, :], 1))
                G += query[:, None] * do[None, :]
            if SATURATES:
                G -= G * S * S
            for up in range(R):
                j = R - 1 - up
                at = ((row // H * T + chunk * KEPT + i) * R + j) * H + row % H
                key, value = tl.load(k + at * N + n).to(tl.float32), tl.load(v + at * V + c).to(tl.float32)
                rate = tl.load(beta + at)
                Z = tl.load(reads + (i * R + j) * N * V)
                S = Z  # after the last of these: the state before the step, and after the one before it
                if NOISY:  # noqa: SIM102
                    if (j == 0) & (chunk * KEPT + i > 0):
                        before = chunk * KEPT + i - 1
                        Z = moved(Z, words, before, row, n, c, T, size, rows, per_step, n_true, width)
                r = tl.sum(Z * key[:, None], 0)
                de = tl.sum(G * key[:, None], 0)
                dr = -rate * de
                tl.store(dv + at * V + c, de)
                tl.store(dbeta + at, -tl.sum(de * r, 0))
                tl.store(dk + at * N + n, tl.sum(G * (value - rate * r)[None, :] + Z * dr[None, :], 1))
                if j == 0:
                    tl.store(ddecay + token, tl.sum(tl.sum(G * Z, 1), 0))
                    G = tl.load(decay + token) * G
                G += key[:, None] * dr[None, :]
        tl.debug_barrier()
    tl.store(dfirst + row * N * V + tile, G)


class E88InTriton(torch.autograd.Function):
    """q (B,T,H,N) or None, k (B,T,R,H,N), v (B,T,R,H,V), decay (B,T,H), beta (B,T,R,H), state (B,H,N,V), N and V in
    SIZES; noise, and for how many rows and columns of a head it is.
    """

    @staticmethod
    def forward(
        q: Tensor | None, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor, state: Tensor, nonlinearity: str,
        noise: Noise | None, true: tuple[int, int],
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        k, v, decay, beta, state = (tensor.contiguous() for tensor in (k, v, decay, beta, state))
        batch, steps, writes, heads, width = v.shape
        n, chunks = k.shape[-1], -(-steps // KEEP)
        if q is None:
            out = state.new_empty(batch, steps, n, heads, width)
        else:
            q = q.contiguous()
            out = q.new_empty(batch, steps, heads, width)
        kept, last = state.new_empty(batch, heads, chunks, n, width), torch.empty_like(state)
        forward_kernel[(batch * heads,)](
            k if q is None else q, k, v, decay, beta, state, out, kept, last,
            *noise_arguments(noise, steps, batch * heads, true, decay), steps, heads, chunks,
            writes, n, width, KEEP, nonlinearity == "tanh", q is None, noise is not None, num_warps=warps(n, width),
        )  # fmt: skip
        return out, last, kept

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        save_inputs_and_kept(ctx, inputs, output)
        ctx.true = inputs[8]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor | None, dlast: Tensor | None, _: None) -> tuple[Tensor | None, ...]:
        query, *given, kept = ctx.saved_tensors
        whole = query is None
        # Without q the kernel is handed k in its place, and touches neither that nor its gradient.
        inputs = [tensor.contiguous() for tensor in (given[0] if whole else query, *given)]
        batch, steps, writes, heads, width = inputs[2].shape
        n, chunks = inputs[1].shape[-1], kept.shape[2]
        gradients = [torch.empty_like(tensor) for tensor in inputs]
        if dout is None:
            dout = kept.new_zeros((batch, steps, n, heads, width) if whole else (batch, steps, heads, width))
        dlast = kept.new_zeros(batch, heads, n, width) if dlast is None else dlast.contiguous()
        dstate = torch.empty_like(dlast)
        scratch = kept.new_empty(batch * heads, KEEP * writes + 1, n, width)
        backward_kernel[(batch * heads,)](
            *inputs, kept, dout.contiguous(), dlast, scratch, *gradients, dstate,
            *noise_arguments(ctx.noise, steps, batch * heads, ctx.true, inputs[3]), steps, heads, chunks,
            writes, n, width, KEEP, ctx.saturates, whole, ctx.noise is not None, num_warps=warps(n, width),
        )  # fmt: skip
        return None if whole else gradients[0], *gradients[1:], dstate, None, None, None


def noise_arguments(noise: Noise | None, steps: int, rows: int, true: tuple[int, int], filler: Tensor) -> list[Any]:
    """words, size, rows, per_step, n_true and width of the kernels; without noise these are looked at by nobody."""
    words = words_of(noise, steps, rows, true[0] * true[1])
    if noise is None or words is None:
        return [filler, 0.0, 1, 0, 0, 0]
    return [words, float(noise.size), rows // len(noise.keys), words.shape[2], *true]


def warps(n: int, width: int) -> int:
    """A lane for every 32 numbers of the state."""
    return max(1, n * width // 1024)


def e88_triton(
    q: Tensor | None, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor, state: Tensor, nonlinearity: str,
    noise: Noise | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """e88_reference; q, k, v may be bfloat16, the rest is float32."""
    n, width = state.shape[-2:]
    return in_sizes(SIZES, E88InTriton.apply, q, k, v, decay, beta, state, nonlinearity, noise, (n, width))
