"""The classic cells on a GPU: a training step by our scan against one by cuDNN, without noise on the state and with.

python -m benchmarks.cells              all three cells
python -m benchmarks.cells gru lstm     these alone

A step of training is replayed as a graph, as in a sweep. "cuDNN" runs replicas one after another, and with noise step
by step: that is what training did before there was a scan.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

import statetrack as st
from statetrack.models import Replicas
from statetrack.ops import rnn
from statetrack.training.batches import ReplicaRows
from statetrack.training.loop import loss_of
from statetrack.training.optimizer import AdamW, FlatParameters
from statetrack.training.protocol import PROTOCOLS
from statetrack.training.step import WARM_UPS, Stepper
from statetrack.training.weights import built

CELLS = ("tanh-rnn", "gru", "lstm")
BATCH, LENGTH = 128, 64
CASES = ((64, 1), (128, 1), (128, 8))  # hidden, replicas


@contextmanager
def by_cudnn(chosen: bool) -> Iterator[None]:
    """As if no scan of ours were there."""
    ours = rnn.is_fused
    if chosen:
        rnn.is_fused = lambda *_: False
    try:
        yield
    finally:
        rnn.is_fused = ours


def training_step(name: str, hidden: int, count: int, noise: float) -> Callable[[], None]:
    task, device = st.task("s3_composition"), torch.device("cuda")
    replicas = Replicas([built(f"{name}[hidden={hidden}]", task, seed) for seed in range(count)], device)
    loss = loss_of(PROTOCOLS["curriculum"].with_changes(state_noise=noise), list(range(count)), replicas, device)
    step = Stepper(replicas, AdamW(FlatParameters(replicas), 0.01, 1.0), "float32", loss)
    ids = torch.randint(task.inputs, (count, BATCH, LENGTH), device=device)
    rows = ReplicaRows(ids, ids, torch.ones_like(ids, dtype=torch.bool))
    rates, steps = torch.full((count,), 1e-3, device=device), torch.ones(count, dtype=torch.int64, device=device)
    for _ in range(WARM_UPS + 1):
        step(rows, rates, steps)
    return lambda: step(rows, rates, steps)


def milliseconds(work: Callable[[], None], tries: int = 20) -> float:
    """The mean over some steps; the best of three such means."""
    best = float("inf")
    for _ in range(3):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(tries):
            work()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - began) / tries)
    return 1000 * best


def main(names: list[str]) -> None:
    if not torch.cuda.is_available():
        sys.exit("benchmarks.cells needs a CUDA device")
    print(f"{torch.cuda.get_device_name()}, a training step, batch {BATCH}, T={LENGTH}: ms")
    print(f"  {'cell':<10}{'hidden':>7}{'replicas':>9}{'ours':>9}{'noise':>9}{'ratio':>7}{'cuDNN':>9}{'noise':>9}")
    for name in names or CELLS:
        for hidden, count in CASES:
            found = []
            for cudnn in (False, True):
                for noise in (0.0, 0.2):
                    if cudnn and noise and count > 1:
                        continue
                    with by_cudnn(cudnn):
                        found.append(milliseconds(training_step(name, hidden, count, noise)))
            plain, noisy, *others = found
            said = "".join(f"{other:>9.3f}" for other in others)
            print(f"  {name:<10}{hidden:>7}{count:>9}{plain:>9.3f}{noisy:>9.3f}{noisy / plain:>7.2f}{said}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
