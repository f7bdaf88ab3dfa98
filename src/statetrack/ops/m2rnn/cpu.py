"""M2RNN on a CPU: room, layouts and autograd around the loops of cpu_loops.py, which says how it works."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from statetrack.ops.m2rnn.cpu_loops import KEEP, backward_units, forward_units
from statetrack.ops.m2rnn.kernels import save_inputs_and_kept, words_of
from statetrack.ops.noise import Noise
from statetrack.ops.parallel import in_threads

LANES = 64  # of a block, or as many as a head has rows


class Units:
    """How the rows of a scan are shared among blocks of lanes."""

    def __init__(self, q: Tensor, v: Tensor, W: Tensor) -> None:
        self.batch, self.steps, self.heads, self.n = q.shape
        self.width, self.replicas, self.dtype = v.shape[-1], len(W), v.numpy().dtype
        self.of_replica = self.batch // self.replicas
        self.rows = min(self.of_replica, max(1, LANES // self.n))  # of the batch, in a block
        self.blocks = -(-self.of_replica // self.rows)
        self.lanes = self.rows * self.n
        self.count = self.replicas * self.heads * self.blocks

    def to_lanes(self, state: Tensor) -> Tensor:
        """(B,H,N,V) -> (unit, V, lane), the last block of a replica padded with zeros."""
        padded = state.new_zeros(self.replicas, self.blocks * self.rows, *state.shape[1:])
        padded[:, : self.of_replica] = state.unflatten(0, (self.replicas, -1))
        units = padded.unflatten(1, (self.blocks, self.rows)).permute(0, 3, 1, 5, 2, 4)
        return units.reshape(self.count, self.width, self.lanes).contiguous()

    def from_lanes(self, packed: Tensor) -> Tensor:
        """The reverse of to_lanes."""
        units = packed.reshape(self.replicas, self.heads, self.blocks, self.width, self.rows, self.n)
        padded = units.permute(0, 2, 4, 1, 5, 3).flatten(1, 2)
        return padded[:, : self.of_replica].flatten(0, 1).contiguous()

    def room(self, *shape: int) -> np.ndarray:
        return np.zeros(shape, self.dtype)

    def stretch(self) -> tuple[np.ndarray, ...]:
        """Room for KEEP steps of q, k, v, f and the gradient of out in lanes."""
        own = (self.rows, self.n)
        query, key, keep = (self.room(KEEP, *own) for _ in range(3))
        value, do = (self.room(KEEP, self.width, *own) for _ in range(2))
        return query, key, value, keep, do

    def noise(self, noise: Noise | None) -> tuple[np.ndarray, Any, int]:
        """The noise as the loops take it; none is no words."""
        words = words_of(noise, self.steps, self.batch * self.heads, self.n * self.width)
        if noise is None or words is None:
            return np.zeros((1, 0, 0), np.uint64), self.room(1)[0], 1
        return words.numpy().view(np.uint64), self.dtype.type(noise.size), self.batch // len(noise.keys)


# Memory is taken here and not in the compiled loops: allocations are slow to compile.
def forward_part(first: int, last: int, units: Units, *arguments: Any) -> None:
    z, states = units.room(units.width, units.lanes), units.room(2, units.width, units.lanes)
    forward_units(first, last, *arguments, units.stretch()[:4], z, states)


def backward_part(first: int, last: int, units: Units, *arguments: Any) -> None:
    z, states = (units.room(steps, units.width, units.lanes) for steps in (KEEP, KEEP + 1))
    grads = (units.room(units.width, units.lanes), *(units.room(units.lanes) for _ in range(3)))
    backward_units(first, last, *arguments, units.stretch(), z, states, grads)


def arrays(*tensors: Tensor) -> tuple[np.ndarray, ...]:
    """The same memory as numpy sees it."""
    return tuple(tensor.numpy() for tensor in tensors)


def plain(q: Tensor, k: Tensor, v: Tensor, f: Tensor, W: Tensor) -> list[Tensor]:
    """Contiguous and cut from the graph; f with a last axis of one."""
    return [tensor.detach().contiguous() for tensor in (q, k, v, f.unsqueeze(-1), W)]


class M2RNNOnCPU(torch.autograd.Function):
    """The same arguments and results as m2rnn_reference, and the kept states."""

    @staticmethod
    def forward(
        q: Tensor, k: Tensor, v: Tensor, f: Tensor, W: Tensor, state: Tensor, noise: Noise | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        inputs = plain(q, k, v, f, W)
        units = Units(inputs[0], inputs[2], inputs[4])
        kept = v.new_empty(units.count, -(-units.steps // KEEP) + 1, units.width, units.lanes)
        kept[:, 0] = units.to_lanes(state)
        out = v.new_empty(v.shape)
        in_threads(
            forward_part, units.count, units, arrays(*inputs), units.noise(noise), (units.blocks, units.of_replica),
            kept.numpy(), out.numpy(),
        )  # fmt: skip
        return out, units.from_lanes(kept[:, -1]), kept

    setup_context = staticmethod(save_inputs_and_kept)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor | None, dlast: Tensor | None, _: None) -> tuple[Tensor | None, ...]:
        *given, kept = ctx.saved_tensors
        inputs = plain(*given)
        v = inputs[2]
        units = Units(inputs[0], v, inputs[4])
        gradients = [torch.empty_like(tensor) for tensor in inputs[:4]]
        shares = v.new_zeros(units.count, units.width, units.width)
        dout = torch.zeros_like(v) if dout is None else dout.contiguous()
        dlast = v.new_zeros(units.batch, units.heads, units.n, units.width) if dlast is None else dlast
        dstate = units.to_lanes(dlast)
        in_threads(
            backward_part, units.count, units, arrays(*inputs), units.noise(ctx.noise),
            (units.blocks, units.of_replica), kept.numpy(), dout.numpy(), arrays(*gradients, shares), dstate.numpy(),
        )  # fmt: skip
        dq, dk, dv, df = gradients
        dW = shares.view(units.replicas, units.heads, units.blocks, units.width, units.width).sum(2)
        return dq, dk, dv, df.squeeze(-1), dW, units.from_lanes(dstate), None


def m2rnn_cpu(
    q: Tensor, k: Tensor, v: Tensor, f: Tensor, W: Tensor, state: Tensor, noise: Noise | None = None
) -> tuple[Tensor, Tensor]:
    """m2rnn_reference, faster."""
    out, last, _ = M2RNNOnCPU.apply(q, k, v, f, W, state, noise)
    return out, last
