"""What noise on the state costs in training: a step with it against a step without, measured in turns in one run.

python -m benchmarks.noise                      where the noise is put on inside the scan, and where step by step
python -m benchmarks.noise e88-gain-1l-small    these models alone
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

import statetrack as st
from benchmarks.train import DEVICE, clock
from statetrack.models import Replicas
from statetrack.training.batches import ReplicaRows
from statetrack.training.loop import loss_of
from statetrack.training.memory import keep_memory
from statetrack.training.optimizer import AdamW, FlatParameters
from statetrack.training.protocol import PROTOCOLS
from statetrack.training.step import Stepper
from statetrack.training.weights import built

LIMIT = 1.3
INSIDE = (
    "e88-gain-1l-small", "e88-gain-1l-small[heads=1,n_state=4]", "e88-gain-1l", "e88-gain-r2",
    "e88-gain-r4[heads=1,n_state=8,learned_start=true]", "deltanet-neg", "tanh-rnn", "gru", "lstm", "m2rnn",
)  # fmt: skip
LINEAR = "linear-rnn"  # on a GPU inside its scan, on a CPU step by step
BATCH, LENGTH = 128, 64


def training_step(name: str, noise: float) -> Callable[[], None]:
    """A step of training this model on any rows of S3's elements."""
    task = st.task("s3_composition")
    replicas = Replicas([built(name, task, 0)]).to(DEVICE)
    loss = loss_of(PROTOCOLS["curriculum"].with_changes(state_noise=noise), [0], replicas, DEVICE)
    step = Stepper(replicas, AdamW(FlatParameters(replicas), 0.01, 1.0), "float32", loss)
    ids = torch.randint(task.inputs, (1, BATCH, LENGTH), device=DEVICE)
    rows = ReplicaRows(ids, ids, torch.ones_like(ids, dtype=torch.bool))
    rates, steps = torch.full((1,), 1e-3, device=DEVICE), torch.ones(1, dtype=torch.int64, device=DEVICE)

    def run() -> None:
        step(rows, rates, steps)
        if DEVICE.type == "cuda":
            torch.cuda.synchronize()

    for _ in range(5):
        run()
    return run


def in_turns(one: Callable[[], None], other: Callable[[], None], rounds: int = 12) -> tuple[float, float]:
    """The fastest of each, so that what else the machine does weighs on both."""
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        for at, work in enumerate((one, other)):
            began = clock()
            work()
            best[at] = min(best[at], clock() - began)
    return best[0], best[1]


def main(names: list[str]) -> bool:
    keep_memory()
    print(f"a training step, batch {BATCH}, T={LENGTH}, without noise and with")
    good = True
    for name in names or (*INSIDE, LINEAR):
        plain, noisy = in_turns(training_step(name, 0.0), training_step(name, 0.2))
        asked = name != LINEAR or DEVICE.type == "cuda"
        good &= not asked or noisy <= LIMIT * plain
        said = f"(asked: at most {LIMIT})" if asked else "(step by step)"
        print(
            f"  {name:<52}{1000 * plain:>8.1f} ms{1000 * noisy:>8.1f} ms{noisy / plain:>7.2f} times {said}", flush=True
        )
    return good


if __name__ == "__main__":
    where = torch.cuda.get_device_name() if DEVICE.type == "cuda" else f"CPU, {torch.get_num_threads()} thread"
    print(f"{where}, torch {torch.__version__}\n")
    sys.exit(0 if main(sys.argv[1:]) else "not all of what is asked was reached")
