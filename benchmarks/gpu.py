"""The recurrences on one GPU: our op beside the PyTorch loop, torch.compile, cuDNN's LSTM and the counted floor.

python -m benchmarks.gpu                 the table, a few minutes
python -m benchmarks.gpu --no-compile    without torch.compile, which takes most of them

A floor is the longest of three times, each a count over a ceiling measured in the same run: bytes over the copy
bandwidth, tanh over the special-function rate (two operations each), multiply-adds over the float32 rate. A backward
pass counts the states run again and four times the arithmetic of the forward pass.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from statetrack import ops
from statetrack.models import Replicas, model
from statetrack.ops.nvrtc import compiled
from statetrack.training.batches import ReplicaRows
from statetrack.training.loop import plain_loss
from statetrack.training.optimizer import AdamW, FlatParameters
from statetrack.training.run import pick_device
from statetrack.training.step import WARM_UPS, Stepper

GIB = 2**30
SHAPE = (256, 1024, 16, 32)  # batch, steps, heads, N = V

CEILINGS = """
extern "C" __global__ void special(float* x, int n) {
  float a = x[threadIdx.x], b = a + 1, c = a + 2, d = a + 3;
#pragma unroll 16
  for (int i = 0; i < n; i++) {
    asm volatile("ex2.approx.ftz.f32 %0, %0; ex2.approx.ftz.f32 %1, %1;" : "+f"(a), "+f"(b));
    asm volatile("ex2.approx.ftz.f32 %0, %0; ex2.approx.ftz.f32 %1, %1;" : "+f"(c), "+f"(d));
  }
  x[threadIdx.x] = a + b + c + d;
}
extern "C" __global__ void multiply_add(float* x, int n) {
  float a[8];
  for (int j = 0; j < 8; j++) a[j] = x[threadIdx.x] + j;
#pragma unroll 16
  for (int i = 0; i < n; i++)
    for (int j = 0; j < 8; j++) asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(a[j]) : "f"(0.5f), "f"(1.0f));
  float sum = 0;
  for (int j = 0; j < 8; j++) sum += a[j];
  x[threadIdx.x] = sum;
}
"""


@dataclass(frozen=True)
class Ceilings:
    """What this card does in a second: bytes copied (read and written), special functions, multiply-adds."""

    bytes: float
    special: float
    multiply_adds: float


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    milliseconds: float
    tokens: int
    gib: float | None
    floor: float | None = None


def milliseconds(work: Callable[[], object], tries: int = 10) -> float:
    """The median over several runs, by the device's clock, after two to warm up.

    Runs are queued one behind the other, so that the time Python takes to launch one passes while the last one works.
    """
    pairs = []
    for _ in range(tries + 2):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        stop.record()
        pairs.append((start, stop))
    torch.cuda.synchronize()
    return median(start.elapsed_time(stop) for start, stop in pairs[2:])


def measured(what: str, tokens: int, work: Callable[[], object], floor: float | None = None, tries: int = 10) -> Row:
    """Time and peak memory of some work."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    time = milliseconds(work, tries)
    return Row(what, time, tokens, torch.cuda.max_memory_allocated() / GIB, floor)


def ceilings() -> Ceilings:
    """Measure the three ceilings."""
    source = Path(tempfile.mkdtemp()) / "ceilings.cu"
    source.write_text(CEILINGS)
    big = torch.randn(2**29, device="cuda")
    target = torch.empty_like(big)
    copy = milliseconds(lambda: target.copy_(big))
    lanes = torch.randn(1024, device="cuda")
    blocks, rounds = 132 * 16, 4096

    def launch(name: str) -> float:
        kernel = compiled((source,), name, ())
        return milliseconds(lambda: kernel(grid=(blocks, 1, 1), block=(256, 1, 1), args=[lanes, rounds]))

    operations = blocks * 256 * rounds * 1e3
    special, fma = 4 * operations / launch("special"), 8 * operations / launch("multiply_add")
    return Ceilings(2 * big.nbytes / copy * 1e3, special, fma)


def e88_inputs(batch: int, steps: int, heads: int, n: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """q and k of unit length, decay in (0.3, 1), beta in (0, 1)."""
    q, k, v = (torch.randn(batch, steps, heads, n, device="cuda") for _ in range(3))
    decay, beta = torch.rand(2, batch, steps, heads, device="cuda")
    sequence = (F.normalize(q, dim=-1).to(dtype), F.normalize(k, dim=-1).to(dtype), v.to(dtype))
    return [tensor.requires_grad_() for tensor in (*sequence, 0.3 + 0.7 * decay, beta.clone())]


def e88_floor(inputs: list[Tensor], top: Ceilings, *, backward: bool) -> float:
    """Milliseconds that no kernel can undercut: q, k, v in and out over once, and the gradients likewise."""
    batch, steps, heads, n = inputs[0].shape
    updates = batch * steps * heads * n * n
    passes = 2 if backward else 1  # the backward pass runs the states again
    moved = sum(tensor.nbytes for tensor in inputs) + inputs[2].nbytes
    arithmetic = updates * 4 * (5 if backward else 1)
    floors = (
        moved * (3 if backward else 1) / top.bytes,
        2 * updates * passes / top.special,
        arithmetic / top.multiply_adds,
    )
    return max(floors) * 1e3


def e88_work(inputs: list[Tensor], backward: bool, scan: Callable[..., Tensor]) -> Callable[[], object]:
    """A forward pass, or a forward and a backward pass with a dense gradient."""
    gradient = torch.randn_like(inputs[2])

    def forward() -> object:
        with torch.no_grad():
            return scan(*inputs)

    return (lambda: torch.autograd.grad(scan(*inputs), inputs, gradient)) if backward else forward


def ours(kernel: str, tanh: str = "accurate") -> Callable[..., Tensor]:
    return lambda *inputs: ops.e88_scan(*inputs, kernel=kernel, tanh=tanh)[0]


def compiled_loop(piece: int = 8) -> Callable[..., Tensor]:
    """torch.compile of the readable loop, `piece` steps per call: all of a long loop would compile for minutes."""
    step = torch.compile(lambda *x: ops.e88_scan(*x[:5], state=x[5], kernel="reference"), dynamic=False)

    def scan(*inputs: Tensor) -> Tensor:
        batch, steps, heads, n = inputs[0].shape
        state = inputs[0].new_zeros(batch, heads, n, n)
        outputs = []
        for start in range(0, steps, piece):
            out, state = step(*(tensor[:, start : start + piece] for tensor in inputs), state)
            outputs.append(out)
        return torch.cat(outputs, dim=1)

    return scan


def lstm_work(batch: int, steps: int, width: int) -> Callable[[], object]:
    """cuDNN's LSTM, forward and backward."""
    lstm = nn.LSTM(width, width, batch_first=True, device="cuda")
    x = torch.randn(batch, steps, width, device="cuda", requires_grad=True)
    return lambda: lstm(x)[0].sum().backward()


def e88_rows(top: Ceilings) -> Iterator[Row]:
    """Our kernel at the sizes of the design."""
    batch, steps, heads, n = SHAPE
    tokens = batch * steps
    inputs = e88_inputs(*SHAPE)
    whole, part = (e88_floor(inputs, top, backward=backward) for backward in (True, False))
    shape = f"B={batch} T={steps} H={heads} N=V={n}"
    yield measured(f"e88 forward+backward, {shape}", tokens, e88_work(inputs, True, ours("cuda")), whole)
    yield measured("  forward", tokens, e88_work(inputs, False, ours("cuda")), part)
    yield measured('  forward, tanh="approx"', tokens, e88_work(inputs, False, ours("cuda", "approx")))
    del inputs
    half = e88_inputs(*SHAPE, torch.bfloat16)
    floor = e88_floor(half, top, backward=True)
    yield measured("  bfloat16 inputs, forward+backward", tokens, e88_work(half, True, ours("cuda")), floor)
    del half
    few = e88_inputs(16, 2048, heads, n)
    floor = e88_floor(few, top, backward=True)
    yield measured("e88 forward+backward, B=16 T=2048", 16 * 2048, e88_work(few, True, ours("cuda")), floor)
    for length in (512, 1024, 2048, 4096):
        inputs = e88_inputs(batch, length, heads, n)
        work = e88_work(inputs, True, ours("cuda"))
        yield measured(f"e88 forward+backward, B={batch} T={length}", batch * length, work)


def other_rows(top: Ceilings, compile_loop: bool) -> Iterator[Row]:
    """What else does the same, or nearly."""
    batch, steps, heads, n = SHAPE
    tokens = batch * steps
    inputs = e88_inputs(*SHAPE)
    floor = e88_floor(inputs, top, backward=True)
    yield measured("  in Triton", tokens, e88_work(inputs, True, ours("triton")), floor, tries=3)
    yield measured("  PyTorch loop", tokens, e88_work(inputs, True, ours("reference")), floor, tries=1)
    if compile_loop:
        work = e88_work(inputs, True, compiled_loop())
        yield measured("  torch.compile of the loop, 8 steps per call", tokens, work, floor, tries=1)
    del inputs
    width = heads * n
    yield measured(f"  cuDNN LSTM of width {width}", tokens, lstm_work(batch, steps, width), tries=3)


def training_step(name: str, batch: int, steps: int, **options: int) -> Callable[[], object]:
    """A whole step as statetrack trains: forward, cross-entropy, backward, AdamW, replayed as a CUDA graph."""
    net = Replicas([model(name, inputs=2, outputs=2, seed=0, **options)], pick_device("cuda"))
    stepper = Stepper(net, AdamW(FlatParameters(net), 0.01, 1.0), "float32", plain_loss)
    if stepper.may_fuse:
        stepper.fuse()  # as a training of many such steps does
    ids = torch.randint(2, (1, batch, steps), device="cuda")
    rows = ReplicaRows(ids, ids, torch.ones_like(ids, dtype=torch.bool))
    rate, count = torch.full((1,), 1e-3, device="cuda"), torch.ones(1, device="cuda")
    for _ in range(WARM_UPS + 1):
        stepper(rows, rate, count)
    return lambda: stepper(rows, rate, count)


def step_rows() -> Iterator[Row]:
    """Whole training steps. Their memory belongs to the recorded graph, where torch's peak does not see it."""
    e88 = training_step("e88-1l", 256, 1024)
    yield Row("e88-1l training step, B=256 T=1024", milliseconds(e88), 256 * 1024, None)
    for batch in (64, 128):
        for head_dim in (64, 16):
            step = training_step("mamba2-32l", batch, 1024, head_dim=head_dim)
            what = f"mamba2-32l training step, head dim {head_dim}, B={batch} T=1024"
            yield Row(what, milliseconds(step), batch * 1024, None)


def main() -> None:
    if not torch.cuda.is_available():
        sys.exit("benchmarks.gpu needs a CUDA device")
    top = ceilings()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    print(
        f"ceilings: copy {top.bytes / 1e12:.2f} TB/s, special functions {top.special / 1e12:.2f} T/s, "
        f"multiply-adds {top.multiply_adds / 1e12:.2f} T/s"
    )
    show("what", "ms", "tokens/s", "GiB", "floor ms", "ratio")
    for row in chain(e88_rows(top), step_rows()):
        show_row(row)
    show("e88 forward+backward, B=256 T=1024, by other means")
    for row in other_rows(top, "--no-compile" not in sys.argv):
        show_row(row)


def show(what: str, *figures: str) -> None:
    print(f"{what:<50}", *(f"{figure:>{width}}" for figure, width in zip(figures, (8, 12, 6, 9, 6))), flush=True)


def show_row(row: Row) -> None:
    memory = "" if row.gib is None else f"{row.gib:.2f}"
    floor = () if row.floor is None else (f"{row.floor:.2f}", f"{row.milliseconds / row.floor:.2f}")
    show(row.what, f"{row.milliseconds:.2f}", f"{row.tokens / row.milliseconds * 1e3:,.0f}", memory, *floor)


if __name__ == "__main__":
    main()
