"""E88 with one write per step on an NVIDIA GPU: the host side of step.cuh, which says how it works."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from statetrack.ops.e88.kernels import in_sizes, words_of
from statetrack.ops.noise import Noise
from statetrack.ops.nvrtc import bind, compiled

FOLDER = Path(__file__).parent
FORMS = {"tanh": 0, "identity": 1, "ssd": 2}
SIZES = (8, 16, 32)
SUB = 4
RESIDENT = {"e88_forward": 16, "e88_backward": 8}  # this and lanes_of: the fastest of those tried on one H200


def lanes_of(name: str, form: str, n: int) -> int:
    """Lanes per column. A second one hides waiting and costs instructions; each holds eight rows or more."""
    return 2 if name == "e88_backward" and form != "ssd" and n > 8 else 1


def keep_every(dtype: torch.dtype, form: str) -> int:
    """Steps between two kept states: time against memory. Packed ones take half the room."""
    return 8 if is_packed(dtype, form) else 16 if dtype == torch.bfloat16 else 24


def is_packed(dtype: torch.dtype, form: str) -> bool:
    """Whether two numbers of a kept state share 32 bits, as step.cuh says."""
    return dtype == torch.bfloat16 and form == "tanh"


def kernel(
    name: str, n: int, width: int, dtype: torch.dtype, form: str, approx: bool, noise: Noise | None,
    true: tuple[int, int],
) -> Any:  # fmt: skip
    """The kernel e88_forward or e88_backward for these sizes."""
    macros = {
        "N": n, "V": width, "HALF": int(dtype == torch.bfloat16), "FORM": FORMS[form], "APPROX": int(approx),
        "KEEP": keep_every(dtype, form), "SUB": SUB, "LANES": lanes_of(name, form, n), "RESIDENT": RESIDENT[name],
        "NOISY": int(noise is not None), "FILLED": int(noise is not None and true != (n, width)),
    }  # fmt: skip
    files = tuple(
        FOLDER / file for file in ("instructions.cuh", "columns.cuh", "step.cuh", f"{name.removeprefix('e88_')}.cu")
    )
    return compiled(files, name, tuple(macros.items()))


class E88OnCUDA(torch.autograd.Function):
    """q, k (B,T,QH,N), v (B,T,H,V), decay and beta (B,T,H), state (B,H,N,V), for N and V in SIZES.

    Each of the QH heads of q and k serves H / QH heads of v. In the form "ssd" the step is S = decay S + beta k v^T.
    `true` is how many rows and columns of a head the noise is for.
    """

    @staticmethod
    def forward(
        q: Tensor, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor, state: Tensor, form: str, approx: bool,
        noise: Noise | None, true: tuple[int, int],
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        batch, steps, heads, width = v.shape
        n = k.shape[-1]
        rows = batch * heads
        q, k, v, decay, beta, state = (tensor.contiguous() for tensor in (q, k, v, decay, beta, state))
        out, last = torch.empty_like(v), torch.empty_like(state)
        chunks = (steps - 1) // keep_every(v.dtype, form)  # behind the first, whose state is given
        kept = state.new_empty(batch, heads, chunks, n // 2 if is_packed(v.dtype, form) else n, width)
        bind(v.device)
        run = kernel("e88_forward", n, width, v.dtype, form, approx, noise, true)
        signs = noise_arguments(noise, steps, rows, true, decay)
        arguments = [q, k, v, decay, beta, state, out, kept, last, *signs, steps, heads, k.shape[2], rows]
        grid, block = (blocks_of(rows, width), 1, 1), (32 * lanes_of("e88_forward", form, n), 1, 1)
        with torch.cuda.device(v.device):
            run(grid=grid, block=block, args=arguments)
        return out, last, kept

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*inputs[:6], output[2])
        ctx.mark_non_differentiable(output[2])
        ctx.form, ctx.approx, ctx.noise, ctx.true = inputs[6:]
        ctx.set_materialize_grads(False)  # or the kept states would get a gradient of zeros as large as they are

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor | None, dlast: Tensor | None, _: None) -> tuple[Tensor | None, ...]:
        *inputs, kept = ctx.saved_tensors
        q, k, v, decay, beta, state = (tensor.contiguous() for tensor in inputs)
        batch, steps, heads, width = v.shape
        n, shared = k.shape[-1], k.shape[2]
        rows = batch * heads
        blocks = blocks_of(rows, width)
        dq, dk = (v.new_empty(batch, steps, heads, n) for _ in range(2))
        dv, ddecay, dbeta = (torch.empty_like(tensor) for tensor in (v, decay, beta))
        dout = torch.zeros_like(v) if dout is None else dout.contiguous()
        dlast = torch.zeros_like(state) if dlast is None else dlast.contiguous()
        dstate = torch.empty_like(dlast)
        scratch = state.new_empty(blocks, keep_every(v.dtype, ctx.form) // SUB, n, 32)
        bind(v.device)
        run = kernel("e88_backward", n, width, v.dtype, ctx.form, ctx.approx, ctx.noise, ctx.true)
        arguments = [
            q, k, v, decay, beta, state, kept, dout, dlast, scratch, dq, dk, dv, ddecay, dbeta, dstate,
            *noise_arguments(ctx.noise, steps, rows, ctx.true, decay), steps, heads, shared, rows,
        ]  # fmt: skip
        with torch.cuda.device(v.device):
            run(grid=(blocks, 1, 1), block=(32 * lanes_of("e88_backward", ctx.form, n), 1, 1), args=arguments)
        if shared != heads:
            dq, dk = (side.unflatten(2, (shared, -1)).sum(3) for side in (dq, dk))
        return dq, dk, dv, ddecay, dbeta, dstate, None, None, None, None


def noise_arguments(noise: Noise | None, steps: int, rows: int, true: tuple[int, int], filler: Tensor) -> list[Any]:
    """words, size, per_step, replica, n_true and width of the kernels; without noise these are looked at by nobody."""
    words = words_of(noise, steps, rows, true[0] * true[1])
    if noise is None or words is None:
        return [filler, 0.0, 0, 1, 0, 0]
    return [words, float(noise.size), words.shape[2], rows // len(noise.keys), *true]


def blocks_of(rows: int, width: int) -> int:
    """A block holds 32 columns."""
    return -(-rows * width // 32)


def e88_cuda(
    q: Tensor, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor, state: Tensor, nonlinearity: str,
    approx: bool = False, noise: Noise | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """e88_reference for one write per step; q, k, v may be bfloat16, the rest is float32."""
    # Contiguous before the call, so that the backward pass finds them so and does not copy again.
    q, k, v = q.contiguous(), k.squeeze(2).contiguous(), v.squeeze(2).contiguous()
    true = tuple(state.shape[-2:])
    return in_sizes(SIZES, E88OnCUDA.apply, q, k, v, decay, beta.squeeze(2), state, nonlinearity, approx, noise, true)
