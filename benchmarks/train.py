"""What training costs: ratios measured in one run, on the GPU where there is one.

python -m benchmarks.train            all four tables
python -m benchmarks.train replicas   one of: scan, replicas, memory, lengths
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from statetrack import ops
from statetrack.models import Replicas, model
from statetrack.training.batches import ReplicaRows
from statetrack.training.loop import plain_loss
from statetrack.training.memory import keep_memory
from statetrack.training.optimizer import AdamW, FlatParameters
from statetrack.training.step import Stepper

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
RECURRENT = (
    "e88-gain-1l-small", "e88-published-1l-small", "e88-1l", "linear-rnn", "tanh-rnn", "gru", "lstm", "mamba2-4l",
    "gated-deltanet-neg", "deltaproduct-2", "e88-gain-r2", "m2rnn",
)  # fmt: skip


# One thread's own time on a CPU: what else runs on the machine does not count.
clock = time.perf_counter if DEVICE.type == "cuda" else time.process_time


def seconds(work: Callable[[], object], least: float = 0.5, tries: int = 3) -> float:
    """The best mean time of several tries, each at least `least` seconds long."""
    work()
    best = float("inf")
    for _ in range(tries):
        count, began = 0, clock()
        while count == 0 or clock() - began < least:
            work()
            count += 1
            if DEVICE.type == "cuda":
                torch.cuda.synchronize()
        best = min(best, (clock() - began) / count)
    return best


def scan_arguments(batch: int, steps: int, heads: int, n: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(batch, steps, heads, n, generator=generator) for _ in range(3))
    q, k = (torch.nn.functional.normalize(x, dim=-1) for x in (q, k))
    decay, beta = (torch.rand(batch, steps, heads, generator=generator) for _ in range(2))
    return [x.to(DEVICE).requires_grad_() for x in (q, k, v, decay, beta)]


def scan() -> bool:
    """Forward and backward of e88_scan against the readable loop."""
    arguments = scan_arguments(32, 64, 16, 32)

    def run(kernel: str | None) -> None:
        out, _ = ops.e88_scan(*arguments, kernel=kernel)
        out.sum().backward()

    loop, ours = seconds(lambda: run("reference")), seconds(lambda: run(None))
    print("e88_scan, forward and backward, B=32, T=64, H=16, N=V=32")
    print(f"  loop {1000 * loop:.1f} ms, chosen kernel {1000 * ours:.1f} ms: {loop / ours:.1f} times (asked: 3)")
    return loop / ours >= 3


def stepper(name: str, replicas: int, batch: int, length: int) -> Callable[[], object]:
    """One training step of this many replicas."""
    keep_memory()
    together = Replicas([model(name, inputs=2, outputs=2, seed=seed) for seed in range(replicas)]).to(DEVICE)
    step = Stepper(together, AdamW(FlatParameters(together), 0.01, 1.0), "float32", plain_loss)
    ids = torch.randint(2, (replicas, batch, length), device=DEVICE)
    rows = ReplicaRows(ids, ids, torch.ones_like(ids, dtype=torch.bool))
    rates, steps = torch.full((replicas,), 1e-3, device=DEVICE), torch.ones(replicas, device=DEVICE)
    for _ in range(5):
        step(rows, rates, steps)
    return lambda: step(rows, rates, steps)


def replicas() -> bool:
    """Eight seeds in one go against one, and against eight one after another."""
    one, eight = (seconds(stepper("e88-gain-1l-small", count, 128, 64)) for count in (1, 8))
    print("a training step of e88-gain-1l-small, batch 128, T=64")
    print(f"  one {1000 * one:.2f} ms, eight replicas {1000 * eight:.2f} ms: {eight / one:.2f} times one", end=" ")
    limit = 2.0 if DEVICE.type == "cuda" else 8.0
    print(f"(asked: at most {limit:.0f} on {'a GPU' if DEVICE.type == 'cuda' else 'a CPU'})")
    return eight / one <= limit


def memory() -> bool:
    """What the recurrence of E88-1L keeps for its backward pass, beyond its own inputs."""
    print("kept by e88_scan for its backward pass (H=16, N=V=32, batch 4), beyond its inputs")
    kept = {}
    for length in (256, 512, 1024, 2048):
        arguments = scan_arguments(4, length, 16, 32)
        inputs = {x.untyped_storage().data_ptr() for x in arguments}
        sizes: dict[int, int] = {}

        def pack(x: torch.Tensor, sizes: dict[int, int] = sizes, inputs: set[int] = inputs) -> torch.Tensor:
            place = x.untyped_storage().data_ptr()
            if place not in inputs:
                sizes[place] = x.untyped_storage().nbytes()
            return x

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            out, _ = ops.e88_scan(*arguments)
        every_state = 4 * 4 * 16 * 32 * 32 * length
        kept[length] = sum(sizes.values())
        print(f"  T={length:>5}: {kept[length] / 2**20:8.2f} MiB (every state: {every_state / 2**20:.0f} MiB)")
        del out
    return all(size < 4 * 4 * 16 * 32 * 32 * length / 4 for length, size in kept.items())


def lengths() -> bool:
    """Tokens a second of training steps at one batch, T = 64 to 2048."""
    spans = (64, 256, 1024, 2048)
    batch = 64 if DEVICE.type == "cuda" else 32
    print(f"tokens a second at batch {batch} (thousands)")
    print(f"  {'model':<24}" + "".join(f"{'T=' + str(length):>10}" for length in spans) + f"{'spread':>10}")
    good = True
    for name in RECURRENT:
        rates = [batch * length / seconds(stepper(name, 1, batch, length), 0.3, 2) / 1000 for length in spans]
        ratio = max(rates) / min(rates)
        good &= ratio <= 1.5
        print(f"  {name:<24}" + "".join(f"{rate:>10.1f}" for rate in rates) + f"{ratio:>9.2f}x")
    print("  spread: the fastest length over the slowest (asked: at most 1.5)")
    return good


if __name__ == "__main__":
    tables = {"scan": scan, "replicas": replicas, "memory": memory, "lengths": lengths}
    chosen = sys.argv[1:] or list(tables)
    where = torch.cuda.get_device_name() if DEVICE.type == "cuda" else f"CPU, {torch.get_num_threads()} thread"
    print(f"{where}, torch {torch.__version__}\n")
    sys.exit(0 if all([tables[name]() for name in chosen]) else "not all of what is asked was reached")
