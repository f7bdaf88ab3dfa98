"""E88 on a CPU: room, layouts and autograd around the loops of cpu_loops.py, which says how it works."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from statetrack.errors import BadInput
from statetrack.ops.e88.cpu_loops import KEEP, backward_blocks, forward_blocks
from statetrack.ops.e88.kernels import save_inputs_and_kept, words_of
from statetrack.ops.noise import Noise
from statetrack.ops.parallel import in_threads

LANES = 64  # by measurement, over heads of 8 and of 32: fewer leave loops too short, more leave the cache

Signs = tuple[np.ndarray, Any, int]  # the noise of all steps: words, size, and the pairs of a replica


def stretch(inputs: tuple[np.ndarray, ...], whole: bool, lanes: int) -> tuple[np.ndarray, ...]:
    """Room for KEEP steps of q, k, v, decay, beta and out in lanes."""
    _, k, v, _, _ = inputs
    R, N, V = k.shape[2], k.shape[4], v.shape[4]
    shapes = ((1, 0 if whole else N), (R, N), (V, R), (1, 1), (1, R), (V, N if whole else 1))
    return tuple(np.zeros((KEEP, *shape, lanes), k.dtype) for shape in shapes)


def workspace(inputs: tuple[np.ndarray, ...], lanes: int, states: int) -> tuple[np.ndarray, ...]:
    """Columns of `states` steps, what the writes of a step read, and lines of scratch, the first of them ones."""
    k = inputs[1]
    R, N = k.shape[2], k.shape[4]
    lines = np.zeros((5, lanes), k.dtype)
    lines[0] = 1
    return np.zeros((states, N, lanes), k.dtype), np.zeros((R, N, lanes), k.dtype), lines


def with_bits(signs: Signs, inputs: tuple[np.ndarray, ...], lanes: int) -> tuple[Any, ...]:
    """The noise, with room for that of KEEP steps in lanes."""
    each = inputs[1].shape[4] * inputs[2].shape[4] if signs[0].size else 0
    return *signs, np.zeros((KEEP, -(-each // 32), lanes), np.uint32)


# Memory is taken here and not in the compiled loops: allocations are slow to compile.
def forward_part(
    first: int, last: int, inputs: tuple[np.ndarray, ...], saturates: bool, whole: bool, signs: Signs,
    kept: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    lanes = kept.shape[-1]
    forward_blocks(
        first, last, inputs, saturates, whole, with_bits(signs, inputs, lanes), kept, out,
        stretch(inputs, whole, lanes), *workspace(inputs, lanes, states=3),
    )  # fmt: skip


def backward_part(
    first: int, last: int, inputs: tuple[np.ndarray, ...], saturates: bool, whole: bool, signs: Signs,
    kept: np.ndarray, dout: np.ndarray, gradients: tuple[np.ndarray, ...], dstate: np.ndarray,
) -> None:  # fmt: skip
    lanes = kept.shape[-1]
    backward_blocks(
        first, last, inputs, saturates, whole, with_bits(signs, inputs, lanes), kept, dout, gradients, dstate,
        stretch(inputs, whole, lanes), stretch(inputs, whole, lanes), *workspace(inputs, lanes, states=KEEP + 2),
    )  # fmt: skip


def signs_of(noise: Noise | None, v: Tensor, n: int) -> Signs:
    """The noise as the loops take it; none is no words."""
    batch, steps, _, heads, width = v.shape
    words = words_of(noise, steps, batch * heads, n * width)
    if noise is None or words is None:
        return np.zeros((1, 0, 0), np.uint64), np.zeros(1, v.numpy().dtype)[0], 1
    size = torch.tensor(noise.size, dtype=v.dtype).numpy()[()]
    return words.numpy().view(np.uint64), size, batch * heads // len(noise.keys)


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


def five_axes(q: Tensor | None, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor | None) -> list[Tensor]:
    """Every input as (B, T, R or 1, H, N, V or 1), contiguous and cut from the graph; what is not there has 0 for the
    last.
    """
    query = k[:, :, :1, :, :0] if q is None else q.unsqueeze(2)
    shaped = (query, k, v, decay[:, :, None, :, None], k[..., :0] if beta is None else beta.unsqueeze(-1))
    return [tensor.detach().contiguous() for tensor in shaped]


def arrays(tensors: Iterable[Tensor]) -> tuple[np.ndarray, ...]:
    """The same memory as numpy sees it."""
    return tuple(tensor.numpy() for tensor in tensors)


class E88OnCPU(torch.autograd.Function):
    """The same arguments and results as e88_reference, and the kept states; without beta nothing is corrected."""

    @staticmethod
    def forward(
        q: Tensor | None, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor | None, state: Tensor, nonlinearity: str,
        noise: Noise | None,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        batch, steps, heads = decay.shape
        n, width = state.shape[-2:]
        start = to_lanes(state.detach(), min(LANES, batch * heads))
        blocks = start.shape[0]
        kept = start.new_empty(blocks, -(-steps // KEEP) + 1, *start.shape[1:])
        kept[:, 0] = start
        out = v.new_empty(batch, steps, n if q is None else 1, heads, width)
        inputs, signs = arrays(five_axes(q, k, v, decay, beta)), signs_of(noise, v.detach(), n)
        in_threads(forward_part, blocks, inputs, nonlinearity == "tanh", q is None, signs, kept.numpy(), out.numpy())
        return out if q is None else out.squeeze(2), from_lanes(kept[:, -1], batch, heads), kept

    setup_context = staticmethod(save_inputs_and_kept)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Any, tuple[int | None, ...]]:
        """Under torch.func.vmap the mapped axis (replicas of a model, say) joins the batch."""
        count = info.batch_size
        if inputs[7] is not None:
            raise BadInput("a scan with noise knows replicas by its rows: call it without torch.func.vmap")
        folded: list[Tensor | None] = []
        for tensor, dim in zip(inputs[:6], in_dims):
            if tensor is None:
                folded.append(None)
                continue
            mapped = tensor.expand(count, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
            folded.append(mapped.flatten(0, 1))
        out, last, kept = E88OnCPU.apply(*folded, *inputs[6:])
        return (out.unflatten(0, (count, -1)), last.unflatten(0, (count, -1)), kept), (0, 0, None)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor | None, dlast: Tensor | None, _: None) -> tuple[Tensor | None, ...]:
        *inputs, kept = ctx.saved_tensors
        shaped = five_axes(*inputs)
        gradients = [torch.empty_like(tensor) for tensor in shaped]
        batch, steps, heads = inputs[3].shape
        width, n = kept.shape[2:4]
        whole = inputs[0] is None
        dout = kept.new_zeros(batch, steps, n if whole else 1, heads, width) if dout is None else dout
        # In training nobody asks for the last state, nor what the first one's gradient is: neither is carried over.
        dstate = torch.zeros_like(kept[:, 0]) if dlast is None else to_lanes(dlast, kept.shape[-1]).contiguous()
        dout = (dout if whole else dout.reshape(batch, steps, 1, heads, width)).contiguous()
        in_threads(
            backward_part, len(kept), arrays(shaped), ctx.saturates, whole, signs_of(ctx.noise, shaped[2], n),
            kept.numpy(), dout.numpy(), arrays(gradients), dstate.numpy(),
        )  # fmt: skip
        as_given = [None if x is None else gradient.reshape(x.shape) for gradient, x in zip(gradients, inputs)]
        first = from_lanes(dstate, batch, heads) if ctx.needs_input_grad[5] else None
        return *as_given, first, None, None


def e88_cpu(
    q: Tensor | None, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor | None, state: Tensor, nonlinearity: str,
    noise: Noise | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """e88_reference, faster. Without beta the state is written to and not corrected: z = decay s + k v^T."""
    out, last, _ = E88OnCPU.apply(q, k, v, decay, beta, state, nonlinearity, noise)
    return out, last
