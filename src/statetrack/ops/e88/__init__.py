"""The E88 recurrence: a matrix state per head, a delta-rule write, an elementwise tanh."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from statetrack.errors import BadInput, need, unknown
from statetrack.ops import nvrtc
from statetrack.ops.choose import expect, forced, full_precision, state_dtype
from statetrack.ops.e88.kernels import writes_fit
from statetrack.ops.e88.reference import e88_reference
from statetrack.ops.noise import Noise
from statetrack.plugins import usable

KERNELS = ("reference", "cpu", "triton", "cuda")
TANHS = ("accurate", "approx")
NONLINEARITIES = ("tanh", "identity")


def e88_scan(
    q: Tensor | None, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor, *, nonlinearity: str = "tanh",
    state: Tensor | None = None, noise: Noise | None = None, kernel: str | None = None, tanh: str = "accurate",
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Run the recurrence over a sequence and return (out, state): out (B,T,H,V) and the last state (B,H,N,V).

        S_t = f(decay_t * S_{t-1} + k_t (v_t - beta_t * S_{t-1}^T k_t)^T),   out_t = S_t^T q_t

    q, k (B,T,H,N), v (B,T,H,V), decay and beta (B,T,H); f is tanh or the identity; S_0 is `state`, or zero. With R
    writes ("reflections") per step, k (B,T,R,H,N), v (B,T,R,H,V), beta (B,T,R,H):

        Z = decay S + k_1 (v_1 - beta_1 S^T k_1)^T,   Z += k_j (v_j - beta_j Z^T k_j)^T for j = 2..R,   S = f(Z)

    Without q all of the state is read: out (B,T,N,H,V), in the state's precision, has row n of every S_t at [:, t, n].

    Heads and rows never touch, so replicas of a model can be folded into B or into H. `noise` moves every number of S_t
    once it was read; the rows are then those of len(noise.keys) replicas, one after another. Gaussian noise is for the
    kernel "reference" alone, and takes it.

    `kernel` forces "reference" (the equations), "cpu" (numba), "triton" or "cuda" (CUDA C++: heads up to 32 x 32; with
    several writes per step, or without q, heads up to 16 x 32 with up to 4 writes, or 8 where N is at most 8); so does
    the environment variable STATETRACK_KERNEL. `tanh` = "approx" lets the CUDA kernels take the one-instruction tanh,
    good to about 2^-11.

    One head with one number, a sign that flips at every 1 (decay 1 - beta = -1): parity without a nonlinearity.

    >>> import torch
    >>> bits = torch.tensor([1.0, 0.0, 1.0, 1.0]).reshape(1, 4, 1)
    >>> one, zero = torch.ones(1, 4, 1, 1), torch.zeros(1, 4, 1, 1)
    >>> start = torch.ones(1, 1, 1, 1)
    >>> out, _ = e88_scan(one, one, zero, torch.ones(1, 4, 1), 2 * bits, nonlinearity="identity", state=start)
    >>> out.flatten().tolist()
    [-1.0, -1.0, 1.0, -1.0]
    """
    if nonlinearity not in NONLINEARITIES:
        raise unknown("nonlinearity", nonlinearity, NONLINEARITIES)
    if tanh not in TANHS:
        raise unknown("tanh", tanh, TANHS)
    if k.dim() == 4:
        k, v, beta = k.unsqueeze(2), v.unsqueeze(2), beta.unsqueeze(2)
    check_shapes(q, k, v, decay, beta, state)
    dtype = state_dtype(q, k, v, decay, beta, state)
    batch, steps, _, heads, n = k.shape
    start = k.new_zeros(batch, heads, n, v.shape[-1], dtype=dtype) if state is None else state.to(dtype)
    chosen = "reference" if noise is not None and noise.gaussian else forced(kernel, KERNELS, k.device)
    name = chosen or fastest(q, k, v, dtype)
    # On a GPU bfloat16 sequences stay as they are, for half the traffic; everything else is in the state's precision.
    on_gpu = name in ("triton", "cuda")
    given = {tensor.dtype for tensor in (q, k, v) if tensor is not None}
    sequence = torch.bfloat16 if on_gpu and given == {torch.bfloat16} else dtype
    query = None if q is None else q.to(sequence)
    inputs = (query, k.to(sequence), v.to(sequence), decay.to(dtype), beta.to(dtype), start)
    out, last = full_precision(k.device, lambda: run(name, inputs, nonlinearity, tanh == "approx", noise))
    if noise is not None and not on_gpu:  # there the kernels put it on
        last = noise.moved(last, steps - 1)
    return out if q is None else out.to(q.dtype), last


def fastest(q: Tensor | None, k: Tensor, v: Tensor, dtype: torch.dtype) -> str:
    """The fastest kernel for these tensors on their device."""
    if k.device.type == "cpu" and usable("numba"):
        return "cpu"
    if k.device.type != "cuda" or dtype != torch.float32:
        return "reference"
    writes, largest = k.shape[2], max(k.shape[-1], v.shape[-1])
    fits = largest <= 32 if q is not None and writes == 1 else writes_fit(writes, k.shape[-1], v.shape[-1])
    if fits and nvrtc.available():
        return "cuda"
    return "triton" if largest <= 64 and find_spec("triton") else "reference"


def run(
    name: str, inputs: tuple[Any, ...], nonlinearity: str, approx: bool, noise: Noise | None
) -> tuple[Tensor, Tensor]:
    """Call the kernel of that name; each is imported when it is first used."""
    q, k, v, decay, beta, state = inputs
    if name == "cpu":
        need("numba", "train", "the fast recurrence on a CPU")
        from statetrack.ops.e88.cpu import e88_cpu

        return e88_cpu(q, k, v, decay, beta, state, nonlinearity, noise)
    if name == "triton":
        need("triton", "train", "the recurrence in Triton")
        from statetrack.ops.e88.triton import e88_triton

        return e88_triton(q, k, v, decay, beta, state, nonlinearity, noise)
    if name == "cuda" and (q is None or k.shape[2] > 1):
        from statetrack.ops.e88.writes import e88_writes_cuda

        return e88_writes_cuda(q, k, v, decay, beta, state, nonlinearity, approx, noise)
    if name == "cuda":
        from statetrack.ops.e88.cuda import e88_cuda

        return e88_cuda(q, k, v, decay, beta, state, nonlinearity, approx, noise)
    return e88_reference(q, k, v, decay, beta, state, nonlinearity, noise)


def check_shapes(q: Tensor | None, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor, state: Tensor | None) -> None:
    """Name the argument whose shape does not fit the others."""
    if q is not None and (q.dim() != 4 or q.shape[1] == 0):
        raise BadInput(f"q has shape {tuple(q.shape)}; expected (B, T, H, N) with at least one step")
    if k.dim() != 5 or v.dim() != 5:
        raise BadInput(
            f"k has {k.dim()} and v has {v.dim()} dimensions; expected (B, T, H, N) or (B, T, R, H, N) for both"
        )
    if q is None and k.shape[1] == 0:
        raise BadInput(f"k has shape {tuple(k.shape)}; expected (B, T, R, H, N) with at least one step")
    batch, steps, heads, n = k[:, :, 0].shape if q is None else q.shape
    writes, width = k.shape[2], v.shape[-1]
    expect("k", k, (batch, steps, writes, heads, n), "(B, T, R, H, N)")
    expect("v", v, (batch, steps, writes, heads, width), "(B, T, R, H, V)")
    expect("decay", decay, (batch, steps, heads), "(B, T, H)")
    expect("beta", beta, (batch, steps, writes, heads), "(B, T, R, H)")
    if state is not None:
        expect("state", state, (batch, heads, n, width), "(B, H, N, V)")
