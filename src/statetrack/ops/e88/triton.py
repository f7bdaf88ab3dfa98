"""E88 in Triton: any number of writes per step, heads of any size up to 64 x 64. One program is one head of one row.

It serves where forward.cu and backward.cu do not: several writes per step, larger heads, cards NVRTC cannot compile
for. Like cpu.py, which spells out the gradients, it keeps a state every KEEP steps and runs such a stretch again in the
backward pass; what each write reads goes to a scratch of KEEP steps in between.

With TRITON_INTERPRET=1 the same kernels run on CPU tensors, slowly: that is how they are tested without a GPU.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from statetrack.ops.e88.kernels import in_sizes, save_inputs_and_kept

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
def forward_kernel(  # type: ignore[no-untyped-def]
    q, k, v, decay, beta, first, out, kept, last, T, H, chunks,
    R: tl.constexpr, N: tl.constexpr, V: tl.constexpr, KEPT: tl.constexpr, SATURATES: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    n, c = tl.arange(0, N), tl.arange(0, V)
    tile = n[:, None] * V + c[None, :]
    S = tl.load(first + row * N * V + tile)
    for t in range(T):
        token = (row // H * T + t) * H + row % H
        if t % KEPT == 0:
            tl.store(kept + (row * chunks + t // KEPT) * N * V + tile, S)
        factor = tl.load(decay + token)
        for j in range(R):
            at = ((row // H * T + t) * R + j) * H + row % H
            key, value = tl.load(k + at * N + n).to(tl.float32), tl.load(v + at * V + c).to(tl.float32)
            S = write(S, factor, key, value, tl.load(beta + at))
            factor = factor * 0.0 + 1.0
        if SATURATES:
            S = saturate(S)
        query = tl.load(q + token * N + n).to(tl.float32)
        tl.store(out + token * V + c, tl.sum(S * query[:, None], 0))
    tl.store(last + row * N * V + tile, S)


@triton.jit
def backward_kernel(  # type: ignore[no-untyped-def]
    q, k, v, decay, beta, kept, dout, dlast, scratch, dq, dk, dv, ddecay, dbeta, dfirst, T, H, chunks,
    R: tl.constexpr, N: tl.constexpr, V: tl.constexpr, KEPT: tl.constexpr, SATURATES: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    n, c = tl.arange(0, N), tl.arange(0, V)
    tile = n[:, None] * V + c[None, :]
    reads = scratch + row * (KEPT * R + 1) * N * V + tile  # what write j of step i reads is number i R + j
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
                S = Z  # after the last of these: the state before the step, and after the one before it
        tl.debug_barrier()
    tl.store(dfirst + row * N * V + tile, G)


class E88InTriton(torch.autograd.Function):
    """q (B,T,H,N), k (B,T,R,H,N), v (B,T,R,H,V), decay (B,T,H), beta (B,T,R,H), state (B,H,N,V), N and V in SIZES."""

    @staticmethod
    def forward(
        q: Tensor, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor, state: Tensor, nonlinearity: str
    ) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v, decay, beta, state = (tensor.contiguous() for tensor in (q, k, v, decay, beta, state))
        batch, steps, writes, heads, width = v.shape
        n, chunks = k.shape[-1], -(-steps // KEEP)
        out = q.new_empty(batch, steps, heads, width)
        kept, last = state.new_empty(batch, heads, chunks, n, width), torch.empty_like(state)
        forward_kernel[(batch * heads,)](
            q, k, v, decay, beta, state, out, kept, last, steps, heads, chunks,
            writes, n, width, KEEP, nonlinearity == "tanh", num_warps=warps(n, width),
        )  # fmt: skip
        return out, last, kept

    setup_context = staticmethod(save_inputs_and_kept)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor | None, dlast: Tensor | None, _: None) -> tuple[Tensor | None, ...]:
        *given, kept = ctx.saved_tensors
        inputs = [tensor.contiguous() for tensor in given]
        batch, steps, writes, heads, width = inputs[2].shape
        n, chunks = inputs[1].shape[-1], kept.shape[2]
        gradients = [torch.empty_like(tensor) for tensor in inputs]
        dout = inputs[0].new_zeros(batch, steps, heads, width) if dout is None else dout.contiguous()
        dlast = kept.new_zeros(batch, heads, n, width) if dlast is None else dlast.contiguous()
        dstate = torch.empty_like(dlast)
        scratch = kept.new_empty(batch * heads, KEEP * writes + 1, n, width)
        backward_kernel[(batch * heads,)](
            *inputs, kept, dout, dlast, scratch, *gradients, dstate, steps, heads, chunks,
            writes, n, width, KEEP, ctx.saturates, num_warps=warps(n, width),
        )  # fmt: skip
        return *gradients, dstate, None


def warps(n: int, width: int) -> int:
    """A lane for every 32 numbers of the state."""
    return max(1, n * width // 1024)


def e88_triton(
    q: Tensor, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor, state: Tensor, nonlinearity: str
) -> tuple[Tensor, Tensor]:
    """e88_reference; q, k, v may be bfloat16, the rest is float32."""
    return in_sizes(SIZES, E88InTriton.apply, q, k, v, decay, beta, state, nonlinearity)
