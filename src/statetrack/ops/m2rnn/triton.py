"""M2RNN in Triton: heads of any size up to 64 x 64. One program is one head of PACKED rows that share W.

The rows' states lie one below the other, (PACKED N) x V, so that small heads fill a tile of a matrix product. A state
is kept every KEEP steps, without its noise; the backward pass runs such a stretch again, with what every step reads
and its tanh in a scratch, and walks it in reverse. For S after a step, S' what the step reads (with its noise), Z its
tanh and G the gradient of the loss in S:

    dq = S do,   G += q do^T,   df = sum G (S' - Z),   D = (1 - f) G (1 - Z^2)
    dk = D v,    dv = D^T k,    dW += S'^T D,          G <- f G + D W^T

With TRITON_INTERPRET=1 the same kernels run on CPU tensors, slowly: that is how they are tested without a GPU.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from statetrack.ops.m2rnn.kernels import save_inputs_and_kept, words_of
from statetrack.ops.noise import Noise

LARGEST = 64
KEEP = 8  # so few that the scratch of all programs at work finds room in the L2 of a large card
PRECISION = "tf32x3"  # of products: three in TF32, of which each lacks the low bits of one side


@triton.jit
def saturate(z):  # type: ignore[no-untyped-def]
    """tanh z = 1 - 2 / (1 + e^{2z}), absolute error about 1e-7. e^{2z} = 2^{2z / ln 2} takes fewer instructions so."""
    return 1.0 - 2.0 / (1.0 + tl.exp2(2.8853900817779268 * z))


@triton.jit
def moved(S, words, t, head, n, c, T, size, rows, per_step, N_TRUE, V_TRUE):  # type: ignore[no-untyped-def]
    """S with the noise that it gets after step t; none on what heads are filled up with. A replica has `rows` heads."""
    place = ((head % rows * N_TRUE + n)[:, None]) * V_TRUE + c[None, :]
    real = (n[:, None] < N_TRUE) & (c[None, :] < V_TRUE)
    word = tl.load(words + ((head // rows * T + t) * per_step)[:, None] + place // 64, mask=real, other=0)
    up = ((word >> (place % 64)) & 1) == 1
    return S + tl.where(real, tl.where(up, size, -size), 0.0)


@triton.jit
def tanh_of(S, W, key, value, PRECISION: tl.constexpr):  # type: ignore[no-untyped-def]
    """Z = tanh(S W + k v^T)"""
    return saturate(tl.dot(S, W, input_precision=PRECISION) + key[:, None] * value)


@triton.jit
def places(T, H, of_replica, PACKED: tl.constexpr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    """For every row of a tile: its row of the batch, whether there is one, and n."""
    packs = (of_replica + PACKED - 1) // PACKED
    m = tl.arange(0, PACKED * N)
    among = tl.program_id(0) % packs * PACKED + m // N
    real = among < of_replica
    row = (tl.program_id(0) // packs * of_replica + tl.where(real, among, 0)).to(tl.int64)
    return row, real, m % N


@triton.jit
def first_rows(x, PACKED: tl.constexpr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    """What stands at n = 0 of each of the packed rows, where it is the same at all n."""
    return tl.max(tl.reshape(x, (PACKED, N)), 1)


@triton.jit
def forward_kernel(  # type: ignore[no-untyped-def]
    q, k, v, f, W, first, out, kept, last, words, size, rows, per_step, T, H, of_replica, chunks,
    N_TRUE: tl.constexpr, V_TRUE: tl.constexpr, N: tl.constexpr, V: tl.constexpr, PACKED: tl.constexpr,
    KEPT: tl.constexpr, NOISY: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    row, real, n = places(T, H, of_replica, PACKED, N)
    head, c, i = row * H + tl.program_id(1), tl.arange(0, V), tl.arange(0, V)
    keyed, wide = real & (n < N_TRUE), real[:, None] & (c[None, :] < V_TRUE)
    whole = keyed[:, None] & (c[None, :] < V_TRUE)
    replica = tl.program_id(0) // ((of_replica + PACKED - 1) // PACKED)
    square = (i[:, None] < V_TRUE) & (c[None, :] < V_TRUE)
    of_head = W + ((replica * H + tl.program_id(1)) * V_TRUE + i[:, None]) * V_TRUE + c[None, :]
    matrix = tl.load(of_head, mask=square, other=0.0)
    tile = n[:, None] * V_TRUE + c[None, :]
    one, is_one = first_rows(row, PACKED, N), first_rows(real.to(tl.int32), PACKED, N) == 1
    S = tl.load(first + head[:, None] * N_TRUE * V_TRUE + tile, mask=whole, other=0.0)
    for t in range(T):
        token = (row * T + t) * H + tl.program_id(1)
        if t % KEPT == 0:
            tl.store(kept + (head * chunks + t // KEPT)[:, None] * N_TRUE * V_TRUE + tile, S, mask=whole)
        if NOISY:  # noqa: SIM102  (known when the kernel is compiled, and what stands inside is not)
            if t > 0:
                S = moved(S, words, t - 1, head, n, c, T, size, rows, per_step, N_TRUE, V_TRUE)
        key = tl.load(k + token * N_TRUE + n, mask=keyed, other=0.0).to(tl.float32)
        value = tl.load(v + token[:, None] * V_TRUE + c[None, :], mask=wide, other=0.0).to(tl.float32)
        keep = tl.load(f + token, mask=real, other=0.0)
        Z = tanh_of(S, matrix, key, value, PRECISION)
        S = Z + keep[:, None] * (S - Z)
        query = tl.load(q + token * N_TRUE + n, mask=keyed, other=0.0).to(tl.float32)
        read = tl.sum(tl.reshape(S * query[:, None], (PACKED, N, V)), 1)
        place = ((one * T + t) * H + tl.program_id(1))[:, None] * V_TRUE + c[None, :]
        tl.store(out + place, read, mask=is_one[:, None] & (c[None, :] < V_TRUE))
    tl.store(last + head[:, None] * N_TRUE * V_TRUE + tile, S, mask=whole)


@triton.jit
def backward_kernel(  # type: ignore[no-untyped-def]
    q, k, v, f, W, kept, dout, dlast, scratch, dq, dk, dv, df, dW, dfirst, words, size, rows, per_step,
    T, H, of_replica, chunks,
    N_TRUE: tl.constexpr, V_TRUE: tl.constexpr, N: tl.constexpr, V: tl.constexpr, PACKED: tl.constexpr,
    KEPT: tl.constexpr, NOISY: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    row, real, n = places(T, H, of_replica, PACKED, N)
    head, c, i = row * H + tl.program_id(1), tl.arange(0, V), tl.arange(0, V)
    keyed, wide = real & (n < N_TRUE), real[:, None] & (c[None, :] < V_TRUE)
    whole = keyed[:, None] & (c[None, :] < V_TRUE)
    replica = tl.program_id(0) // ((of_replica + PACKED - 1) // PACKED)
    square = (i[:, None] < V_TRUE) & (c[None, :] < V_TRUE)
    of_head = W + ((replica * H + tl.program_id(1)) * V_TRUE + i[:, None]) * V_TRUE + c[None, :]
    matrix = tl.load(of_head, mask=square, other=0.0)
    tile = n[:, None] * V_TRUE + c[None, :]
    one, is_one = first_rows(row, PACKED, N), first_rows(real.to(tl.int32), PACKED, N) == 1
    program = (tl.program_id(0) * H + tl.program_id(1)).to(tl.int64)
    flat = tl.arange(0, PACKED * N)[:, None] * V + c[None, :]
    reads = scratch + program * (2 * KEPT * PACKED * N * V) + flat  # then, of every step, its tanh
    G = tl.load(dlast + head[:, None] * N_TRUE * V_TRUE + tile, mask=whole, other=0.0)
    sums = tl.zeros((V, V), tl.float32)
    for back in range(chunks):
        chunk = chunks - 1 - back
        steps = tl.minimum(KEPT, T - chunk * KEPT)
        S = tl.load(kept + (head * chunks + chunk)[:, None] * N_TRUE * V_TRUE + tile, mask=whole, other=0.0)
        for j in range(steps):
            t = chunk * KEPT + j
            token = (row * T + t) * H + tl.program_id(1)
            if NOISY:  # noqa: SIM102
                if t > 0:
                    S = moved(S, words, t - 1, head, n, c, T, size, rows, per_step, N_TRUE, V_TRUE)
            key = tl.load(k + token * N_TRUE + n, mask=keyed, other=0.0).to(tl.float32)
            value = tl.load(v + token[:, None] * V_TRUE + c[None, :], mask=wide, other=0.0).to(tl.float32)
            keep = tl.load(f + token, mask=real, other=0.0)
            Z = tanh_of(S, matrix, key, value, PRECISION)
            tl.store(reads + 2 * j * PACKED * N * V, S)
            tl.store(reads + (2 * j + 1) * PACKED * N * V, Z)
            S = Z + keep[:, None] * (S - Z)
        tl.debug_barrier()
        for down in range(steps):
            j = steps - 1 - down
            token = (row * T + chunk * KEPT + j) * H + tl.program_id(1)
            one_token = (one * T + chunk * KEPT + j) * H + tl.program_id(1)
            key = tl.load(k + token * N_TRUE + n, mask=keyed, other=0.0).to(tl.float32)
            query = tl.load(q + token * N_TRUE + n, mask=keyed, other=0.0).to(tl.float32)
            value = tl.load(v + token[:, None] * V_TRUE + c[None, :], mask=wide, other=0.0).to(tl.float32)
            do = tl.load(dout + token[:, None] * V_TRUE + c[None, :], mask=wide, other=0.0).to(tl.float32)
            keep = tl.load(f + token, mask=real, other=0.0)
            before = tl.load(reads + 2 * j * PACKED * N * V)
            Z = tl.load(reads + (2 * j + 1) * PACKED * N * V)
            S = Z + keep[:, None] * (before - Z)
            tl.store(dq + token * N_TRUE + n, tl.sum(S * do, 1), mask=keyed)
            G += query[:, None] * do
            of_keep = tl.sum(tl.reshape(tl.sum(G * (before - Z), 1), (PACKED, N)), 1)
            tl.store(df + one_token, of_keep, mask=is_one)
            D = (1.0 - keep)[:, None] * G * (1.0 - Z * Z)
            tl.store(dk + token * N_TRUE + n, tl.sum(D * value, 1), mask=keyed)
            of_value = tl.sum(tl.reshape(D * key[:, None], (PACKED, N, V)), 1)
            place = one_token[:, None] * V_TRUE + c[None, :]
            tl.store(dv + place, of_value, mask=is_one[:, None] & (c[None, :] < V_TRUE))
            sums += tl.dot(tl.trans(before), D, input_precision=PRECISION)
            G = keep[:, None] * G + tl.dot(D, tl.trans(matrix), input_precision=PRECISION)
        tl.debug_barrier()
    tl.store(dfirst + head[:, None] * N_TRUE * V_TRUE + tile, G, mask=whole)
    tl.store(dW + (program * V_TRUE + i[:, None]) * V_TRUE + c[None, :], sums, mask=square)


class M2RNNInTriton(torch.autograd.Function):
    """The same arguments and results as m2rnn_reference, and the kept states; q, k, v may be bfloat16."""

    @staticmethod
    def forward(
        q: Tensor, k: Tensor, v: Tensor, f: Tensor, W: Tensor, state: Tensor, noise: Noise | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v, f, W, state = (tensor.contiguous() for tensor in (q, k, v, f, W, state))
        out, last = torch.empty_like(v), torch.empty_like(state)
        batch, steps, heads, width = v.shape
        kept = state.new_empty(batch, heads, -(-steps // KEEP), k.shape[-1], width)
        shape = Shape(v, len(W), k.shape[-1])
        forward_kernel[shape.grid](
            q, k, v, f, W, state, out, kept, last, *shape.noise(noise, f), *shape.sizes, **shape.constants(noise)
        )  # fmt: skip
        return out, last, kept

    setup_context = staticmethod(save_inputs_and_kept)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor | None, dlast: Tensor | None, _: None) -> tuple[Tensor | None, ...]:
        *given, kept = ctx.saved_tensors
        inputs = [tensor.contiguous() for tensor in given]
        v, W = inputs[2], inputs[4]
        shape = Shape(v, len(W), kept.shape[3])
        gradients = [torch.empty_like(tensor) for tensor in inputs[:4]]
        dout = torch.zeros_like(v) if dout is None else dout.contiguous()
        dlast = kept.new_zeros(kept[:, :, 0].shape) if dlast is None else dlast.contiguous()
        dstate = torch.empty_like(dlast)
        programs, heads = shape.grid
        shares = W.new_empty(len(W), programs // len(W), *W.shape[1:])
        scratch = kept.new_empty(programs * heads, KEEP, 2, shape.packed * shape.n, shape.width)
        backward_kernel[shape.grid](
            *inputs, kept, dout, dlast, scratch, *gradients, shares, dstate,
            *shape.noise(ctx.noise, inputs[3]), *shape.sizes, **shape.constants(ctx.noise),
        )  # fmt: skip
        return *gradients, shares.sum(1), dstate, None


class Shape:
    """How a scan's heads are filled up and shared among programs."""

    def __init__(self, v: Tensor, replicas: int, n: int) -> None:
        self.batch, self.steps, self.heads, self.true_width = v.shape
        self.true_n, self.replicas = n, replicas
        self.n, self.width = (max(least, triton.next_power_of_2(x)) for least, x in ((8, n), (16, v.shape[-1])))
        self.packed = max(1, 16 // self.n)  # a product has 16 rows or more
        of_replica = self.batch // replicas
        self.grid = (replicas * -(-of_replica // self.packed), self.heads)
        self.sizes = (self.steps, self.heads, of_replica, -(-self.steps // KEEP))

    def noise(self, noise: Noise | None, filler: Tensor) -> list[Any]:
        """words, size, rows and per_step of the kernels; without noise these are looked at by nobody."""
        rows = self.batch * self.heads
        words = words_of(noise, self.steps, rows, self.true_n * self.true_width)
        if noise is None or words is None:
            return [filler, 0.0, 1, 0]
        return [words, float(noise.size), rows // len(noise.keys), words.shape[2]]

    def constants(self, noise: Noise | None) -> dict[str, Any]:
        return {
            "N_TRUE": self.true_n, "V_TRUE": self.true_width, "N": self.n, "V": self.width, "PACKED": self.packed,
            "KEPT": KEEP, "NOISY": noise is not None, "PRECISION": PRECISION,
            "num_warps": self.warps(),
        }  # fmt: skip

    def warps(self) -> int:
        """One for every 512 numbers of a tile: a lane that holds more of them keeps some in memory, walking back.

        Never above four: with eight the largest heads would need more shared memory than an A100 has.
        """
        return min(4, max(1, self.packed * self.n * self.width // 512))


def m2rnn_triton(
    q: Tensor, k: Tensor, v: Tensor, f: Tensor, W: Tensor, state: Tensor, noise: Noise | None = None
) -> tuple[Tensor, Tensor]:
    """m2rnn_reference; q, k, v may be bfloat16, the rest is float32."""
    out, last, _ = M2RNNInTriton.apply(q, k, v, f, W, state, noise)
    return out, last
