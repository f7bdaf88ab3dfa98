"""M2RNN's scan on one GPU: time, memory and error, at the small size of the catalogue and at heads of 32 x 32.

python -m benchmarks.m2rnn               every kernel that fits
python -m benchmarks.m2rnn triton        this one alone

An error is the largest of |found - exact| / |exact| over outputs and gradients, for the first rows of the same inputs,
where exact is the readable loop in float64.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.gpu import measured, milliseconds, show, show_row, training_step
from statetrack import ops

LARGE = (256, 1024, 16, 32)  # batch, steps, heads, N = V
SMALL = (64, 1024, 4, 8)
CHECKED = 4  # rows
KERNELS = ("triton",)
NAMES = ("q", "k", "v", "f", "W")
Scan = Callable[..., Tensor]


def inputs_of(batch: int, steps: int, heads: int, n: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """q, k, v, f, W: q and k of unit length, f in (0, 1), W near the identity."""
    generator = torch.Generator("cuda").manual_seed(0)
    q, k, v = torch.randn(3, batch, steps, heads, n, device="cuda", generator=generator)
    f = torch.rand(batch, steps, heads, device="cuda", generator=generator)
    W = torch.eye(n, device="cuda") + torch.randn(heads, n, n, device="cuda", generator=generator) / (2 * n**0.5)
    sequence = (F.normalize(q, dim=-1).to(dtype), F.normalize(k, dim=-1).to(dtype), v.to(dtype))
    return [tensor.contiguous().requires_grad_() for tensor in (*sequence, f, W)]


def work(inputs: list[Tensor], scan: Scan, backward: bool) -> Callable[[], object]:
    """A forward pass, or a forward and a backward pass with a dense gradient."""
    gradient = torch.randn_like(inputs[2])

    def forward() -> object:
        with torch.no_grad():
            return scan(*inputs)

    return (lambda: torch.autograd.grad(scan(*inputs), inputs, gradient)) if backward else forward


def ours(kernel: str) -> Scan:
    return lambda *inputs: ops.m2rnn_scan(*inputs, kernel=kernel)[0]


def error(inputs: list[Tensor], scan: Scan) -> tuple[float, str]:
    """The largest error of a scan over outputs and gradients, and where it is."""
    few = [tensor.detach()[:CHECKED] for tensor in inputs[:4]] + [inputs[4].detach()]
    weights = torch.randn(few[2].shape, device="cuda", generator=torch.Generator("cuda").manual_seed(1))

    def found(scan: Scan, dtype: torch.dtype | None) -> list[Tensor]:
        leaves = [tensor.to(dtype or tensor.dtype, copy=True).requires_grad_() for tensor in few]
        out = scan(*leaves)
        return [out, *torch.autograd.grad(out, leaves, weights.to(out))]

    exact = found(ours("reference"), torch.float64)
    errors = {
        name: ((mine.double() - wanted).norm() / wanted.norm()).item()
        for name, mine, wanted in zip(("out", *(f"d{name}" for name in NAMES)), found(scan, None), exact)
    }
    worst = max(errors, key=lambda name: errors[name])
    return errors[worst], worst


def main(kernels: list[str]) -> None:
    if not torch.cuda.is_available():
        sys.exit("benchmarks.m2rnn needs a CUDA device")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    show("what", "ms", "tokens/s", "GiB")
    for kernel in kernels:
        for dtype in (torch.float32, torch.bfloat16):
            for shape in (LARGE, SMALL):
                show_kernel(kernel, shape, dtype)
    batch, steps = SMALL[:2]
    step = milliseconds(training_step("m2rnn", batch, steps))
    show(f"m2rnn training step, B={batch} T={steps}", f"{step:.2f}", f"{batch * steps / step * 1e3:,.0f}")


def show_kernel(kernel: str, shape: tuple[int, int, int, int], dtype: torch.dtype) -> None:
    """Its rows for one shape, and its error."""
    batch, steps, heads, n = shape
    inputs, scan = inputs_of(*shape, dtype), ours(kernel)
    name = f"{kernel}, {str(dtype).removeprefix('torch.')}, B={batch} T={steps} H={heads} N=V={n}"
    show_row(measured(f"{name}, forward", batch * steps, work(inputs, scan, False)))
    show_row(measured(f"{name}, and backward", batch * steps, work(inputs, scan, True)))
    show("  largest error, {1}: {0:.1e}".format(*error(inputs, scan)))


if __name__ == "__main__":
    main(sys.argv[1:] or list(KERNELS))
