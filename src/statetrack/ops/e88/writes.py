"""E88 with several writes per step, or read whole, on an NVIDIA GPU: the host side of writes.cuh, which says how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from statetrack.errors import BadInput
from statetrack.ops.e88.cuda import SIZES, blocks_of, noise_arguments
from statetrack.ops.e88.kernels import in_sizes, writes_fit
from statetrack.ops.noise import Noise
from statetrack.ops.nvrtc import bind, compiled

FOLDER = Path(__file__).parent
FILES = ("instructions.cuh", "columns.cuh", "writes.cuh")
RESIDENT = {"e88_writes_forward": 8, "e88_writes_backward": 6}  # as many as need no register in memory


def keep_every(n: int, writes: int) -> int:
    """Steps between two kept states, which the backward pass stages and runs again at a time."""
    return 8 if n == 8 and writes <= 4 else 4


def staged(name: str, n: int, writes: int, whole: bool) -> int:
    """Steps staged at a time: enough for the next ones to arrive meanwhile, few enough for shared memory."""
    if name == "e88_writes_forward":
        return 16 if writes <= 2 else 8 if writes <= 4 else 4
    return 4 if whole else keep_every(n, writes)


def lanes_of(name: str, n: int, width: int) -> int:
    """Lanes per column: a second one halves the work of a step and makes every sum wait longer."""
    return 1 if width > 16 or (name == "e88_writes_forward" and n == 8) else 2


def block_of(name: str, n: int, width: int) -> tuple[int, int, int]:
    return 32 * lanes_of(name, n, width), 1, 1


def kernel(
    name: str, n: int, width: int, writes: int, dtype: torch.dtype, whole: bool, options: tuple[str, bool],
    noise: Noise | None, true: tuple[int, int],
) -> Any:  # fmt: skip
    """The kernel e88_writes_forward or e88_writes_backward for these sizes; the options: nonlinearity and approx."""
    nonlinearity, approx = options
    macros = {
        "N": n, "V": width, "LANES": lanes_of(name, n, width), "HALF": int(dtype == torch.bfloat16),
        "WRITES": writes, "WHOLE": int(whole), "SATURATES": int(nonlinearity == "tanh"), "APPROX": int(approx),
        "KEEP": keep_every(n, writes), "SUB": staged(name, n, writes, whole), "RESIDENT": RESIDENT[name],
        "NOISY": int(noise is not None), "FILLED": int(noise is not None and true != (n, width)),
    }  # fmt: skip
    files = tuple(FOLDER / file for file in (*FILES, f"{name.removeprefix('e88_')}.cu"))
    return compiled(files, name, tuple(macros.items()))


class WritesOnCUDA(torch.autograd.Function):
    """q (B,T,H,N) or None, k (B,T,R,H,N), v (B,T,R,H,V), decay (B,T,H), beta (B,T,R,H), state (B,H,N,V), N and V in
    SIZES and such that writes_fit.

    `true` is how many rows and columns of a head the noise is for.
    """

    @staticmethod
    def forward(
        q: Tensor | None, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor, state: Tensor, options: tuple[str, bool],
        noise: Noise | None, true: tuple[int, int],
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        k, v, decay, beta, state = (tensor.contiguous() for tensor in (k, v, decay, beta, state))
        batch, steps, writes, heads, width = v.shape
        n, rows = k.shape[-1], batch * heads
        if q is None:  # then out has every state
            out, chunks = state.new_empty(batch, steps, n, heads, width), 0
        else:
            q = q.contiguous()
            out, chunks = q.new_empty(batch, steps, heads, width), (steps - 1) // keep_every(n, writes)
        kept, last = state.new_empty(batch, heads, chunks, n, width), torch.empty_like(state)
        bind(v.device)
        run = kernel("e88_writes_forward", n, width, writes, v.dtype, q is None, options, noise, true)
        signs = noise_arguments(noise, steps, rows, true, decay)
        arguments = [k if q is None else q, k, v, decay, beta, state, out, kept, last, *signs, steps, heads, rows]
        with torch.cuda.device(v.device):
            run(grid=(blocks_of(rows, width), 1, 1), block=block_of("e88_writes_forward", n, width), args=arguments)
        return out, last, kept

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        out, _, kept = output
        ctx.save_for_backward(*inputs[:6], out if inputs[0] is None else kept)
        ctx.mark_non_differentiable(kept)
        ctx.options, ctx.noise, ctx.true = inputs[6:]
        ctx.set_materialize_grads(False)  # or the kept states would get a gradient of zeros as large as they are

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor | None, dlast: Tensor | None, _: None) -> tuple[Tensor | None, ...]:
        query, *given, states = ctx.saved_tensors
        whole = query is None
        k, v, decay, beta, state = (tensor.contiguous() for tensor in given)
        q = k if whole else query.contiguous()  # the kernel touches neither it nor its gradient where all is read
        batch, steps, writes, heads, width = v.shape
        n, rows = k.shape[-1], batch * heads
        gradients = [torch.empty_like(tensor) for tensor in (k, v, decay, beta, state)]
        dq = None if whole else torch.empty_like(q)
        if dout is None:
            dout = torch.zeros_like(states) if whole else v.new_zeros(batch, steps, heads, width)
        dlast = torch.zeros_like(state) if dlast is None else dlast.contiguous()
        bind(v.device)
        run = kernel("e88_writes_backward", n, width, writes, v.dtype, whole, ctx.options, ctx.noise, ctx.true)
        arguments = [
            q, k, v, decay, beta, state, states, dout.contiguous(), dlast, gradients[0] if dq is None else dq,
            *gradients, *noise_arguments(ctx.noise, steps, rows, ctx.true, decay), steps, heads, rows,
        ]  # fmt: skip
        with torch.cuda.device(v.device):
            run(grid=(blocks_of(rows, width), 1, 1), block=block_of("e88_writes_backward", n, width), args=arguments)
        return dq, *gradients, None, None, None


def e88_writes_cuda(
    q: Tensor | None, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor, state: Tensor, nonlinearity: str,
    approx: bool = False, noise: Noise | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """e88_reference for small heads; q, k, v may be bfloat16, the rest is float32."""
    n, width = state.shape[-2:]
    writes = k.shape[2]
    if not writes_fit(writes, n, width):
        raise BadInput(
            f"the kernel cuda has no way for {writes} writes per step, or all of the state read, in heads of {n} x "
            f"{width}: it takes up to 8 writes in heads of up to 8 x 32, and 4 in those of up to 16 x 32; take triton"
        )
    # Contiguous before the call, so that the backward pass finds them so and does not copy again.
    k, v = k.contiguous(), v.contiguous()
    true, options = (n, width), (nonlinearity, approx)
    return in_sizes(SIZES, WritesOnCUDA.apply, q, k, v, decay, beta, state, options, noise, true)
