"""The classic cells on a GPU: a training step by our scan, by cuDNN in branches, and by cuDNN one after another.

python -m benchmarks.cells              all three cells
python -m benchmarks.cells gru lstm     these alone

A step of training is replayed as a graph, as in a sweep. "scan" takes all networks at once, "branches" runs each on a
stream of its own, "in turn" one after another; a star is what training chooses. With noise on the state each of them is
our scan, of all networks or of one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partialmethod
from unittest import mock

import torch

import statetrack as st
from statetrack.models import Replicas, replicas
from statetrack.models.rnn import ClassicRNN
from statetrack.ops import rnn
from statetrack.training.batches import ReplicaRows
from statetrack.training.loop import loss_of
from statetrack.training.optimizer import AdamW, FlatParameters
from statetrack.training.protocol import PROTOCOLS
from statetrack.training.run import pick_device
from statetrack.training.step import WARM_UPS, Stepper
from statetrack.training.weights import built

CELLS = ("tanh-rnn", "gru", "lstm")
BATCH, LENGTH = 128, 64
CASES = ((64, 1), (128, 1), (64, 8), (128, 8))  # hidden, replicas
WAYS = ("scan", "branches", "in turn")
NOISE = (0.0, 0.2)


@contextmanager
def forced(way: str) -> Iterator[None]:
    """Run networks this way, whatever training would choose."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(ClassicRNN, "folds", return_value=way == "scan"))
        if way == "scan":  # one network as well
            by_scan = partialmethod(ClassicRNN.by_scan, noise=None)
            stack.enter_context(mock.patch.object(ClassicRNN, "by_torch", by_scan))
        if way == "in turn":
            stack.enter_context(mock.patch.object(replicas, "side_by_side", in_turn))
        yield


def in_turn(work: Callable[..., object], *given: Iterable[object], device: torch.device) -> list[object]:
    return list(map(work, *given))


def chosen(name: str, hidden: int, count: int, noise: float) -> str:
    """What training chooses."""
    if count == 1:
        return "scan" if noise else "branches"
    return "scan" if count > 2 or rnn.is_held({"tanh-rnn": "tanh"}.get(name, name), hidden) else "branches"


def training_step(name: str, hidden: int, count: int, noise: float) -> Callable[[], None]:
    task, device = st.task("s3_composition"), pick_device("cuda")
    networks = Replicas([built(f"{name}[hidden={hidden}]", task, seed) for seed in range(count)], device)
    loss = loss_of(PROTOCOLS["curriculum"].with_changes(state_noise=noise), list(range(count)), networks, device)
    step = Stepper(networks, AdamW(FlatParameters(networks), 0.01, 1.0), "float32", loss)
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


def cell_of(name: str, hidden: int, count: int, way: str, noise: float) -> str:
    """A cell of the table; of one network there are no branches, and it takes no turns."""
    if count == 1 and (way == "in turn" or (noise and way == "branches")):
        return f"{'':>10}"
    with forced(way):
        took = milliseconds(training_step(name, hidden, count, noise))
    return f"{took:>9.3f}{'*' if way == chosen(name, hidden, count, noise) else ' '}"


def main(names: list[str]) -> None:
    if not torch.cuda.is_available():
        sys.exit("benchmarks.cells needs a CUDA device")
    print(f"{torch.cuda.get_device_name()}, a training step, batch {BATCH}, T={LENGTH}: ms")
    print(f"  {'':<10}{'':>7}{'':>9}{'without noise':>22}{'with noise':>30}")
    heads = "".join(f"{way:>9} " for way in WAYS * len(NOISE))
    print(f"  {'cell':<10}{'hidden':>7}{'networks':>9}{heads}")
    for name in names or CELLS:
        for hidden, count in CASES:
            said = "".join(cell_of(name, hidden, count, way, noise) for noise in NOISE for way in WAYS)
            print(f"  {name:<10}{hidden:>7}{count:>9}{said}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
