"""Which measure, taken up to the length trained on, foretells best where a network fails: candidates side by side.

python -m benchmarks.forecasts DIR    a folder of trained cells of binary tasks; prints predicted / measured for each
python -m benchmarks.forecasts        the same for networks that are made, not trained: contracting rotations with
                                      random factors, noise and directions; their names end with the true length

    probe      separation of true states along the direction of a ridge probe, extrapolated to 1.28 (90 %)
    means      separation along the line between the means of true states, extrapolated to 1.28
    margin     mean over deviation of the network's own margin between right and wrong logit, extrapolated to 1.28
    tampered   the chosen one: the rate of fading, and how much of it the network bears (diagnosis/forecast.py)

The first three take the logarithm to be a straight line in t over the second half of the length trained on. The last
line has the median factor by which each is off, either way. `tampered` was chosen on nine networks (seeds 0 to 2 of
three models): a score on those says little, one on other seeds or on networks that are made says more.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import statetrack as st
from statetrack.diagnosis.examine import Examined
from statetrack.diagnosis.probe import Ridge
from statetrack.diagnosis.state_distances import Apart
from statetrack.diagnosis.trajectories import Plan, Trajectories
from statetrack.models import SequenceModel
from statetrack.models.sequence import Shape, State
from statetrack.results import Store
from statetrack.training.evaluate import to_ids
from statetrack.training.weights import load
from tests.diagnosis.fading import Fading

NINETY = 1.2816  # deviations between the mean and the border at which 90 % lie on the right side


def extrapolated(stops: NDArray[np.int64], values: NDArray[np.floating], last: int) -> float:
    """Where the straight line through the logarithms over last/2..last comes down to NINETY."""
    chosen = (stops >= last // 2) & (stops <= last) & (values > 0) & np.isfinite(values)
    slope, height = np.polyfit(stops[chosen], np.log(values[chosen]), 1)
    return float((np.log(NINETY) - height) / slope) if slope < 0 else float("inf")


def probed(walk: Trajectories) -> NDArray[np.floating]:
    """The separation along the probe's direction, on test rows."""
    assert walk.states is not None
    separations = []
    for stop, states in zip(walk.plan.stops, walk.states[:, :, -1]):
        truth = walk.truth[:, stop - 1]
        fit, test = slice(0, walk.plan.rows), walk.test
        score = Ridge(states[fit]).fit(2.0 * truth[fit, None] - 1)(states[test])[:, 0]
        one, two = (score[truth[test] == k] for k in (0, 1))
        separations.append(abs(two.mean() - one.mean()) / 2 / np.sqrt((one.var() + two.var()) / 2))
    return np.array(separations)


def margins(walk: Trajectories, model: SequenceModel, last: int) -> NDArray[np.floating]:
    """Mean over deviation of the right logit less the wrong one, at the stops up to `last`."""
    with torch.no_grad():
        logits = model(to_ids(walk.inputs[:, :last], torch.device("cpu"))).numpy()
    margin = (logits[..., 1] - logits[..., 0]) * (2 * walk.targets[:, :last] - 1)
    early = [margin[:, t - 1] for t in walk.plan.stops if t <= last]
    ratios = [each.mean() / each.std() for each in early]
    return np.array(ratios + [np.nan] * (len(walk.plan.stops) - len(early)))


class Rotation(Fading):
    """A sign that a step turns and shrinks, and a short memory, in random directions of eight numbers."""

    def __init__(self, gain: float, noise: float, seed: int) -> None:
        super().__init__(gain, noise)
        basis = torch.linalg.qr(torch.randn(8, 8, generator=torch.Generator().manual_seed(seed)))[0]
        self.register_buffer("basis", basis)

    def state_shapes(self) -> list[Shape]:
        return [(8,)]

    def initial_state(self, batch: int, device: torch.device | str | None = None) -> State:
        return (super().initial_state(batch, device)[0] @ self.basis[:2],)

    def forward_from(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        logits, (after,) = super().forward_from(ids, (state[0] @ self.basis[:2].T,))
        return logits, (after @ self.basis[:2],)


Network = tuple[str, int, SequenceModel, int, str]


def made(count: int = 12) -> Iterator[Network]:
    """(name, seed, model, length trained on, task) of rotations that fail at 90 to 900 steps."""
    draws = np.random.default_rng(0)
    for seed in range(count):
        true, noise = float(np.exp(draws.uniform(np.log(90), np.log(900)))), draws.uniform(0.02, 0.4)
        gain = float(np.exp(np.log(0.8 * noise) / true))
        yield f"rotation, {gain:.4f}, {noise:.2f}, {true:.0f}", seed, Rotation(gain, noise, seed), 64, "txc"


def trained(folder: Path) -> Iterator[Network]:
    store = Store.existing(folder)
    for record in store.records():
        cell = record.cell
        yield cell.subject, cell.seed, load(store, cell), cell.length, cell.task


def main() -> int:
    torch.set_num_threads(1)
    networks = trained(Path(sys.argv[1])) if len(sys.argv) > 1 else made()
    print(f"{'model':32}{'seed':>5}{'measured':>10}{'probe':>8}{'means':>8}{'margin':>8}{'tampered':>10}")
    found = []
    for name, seed, model, length, task in networks:
        examined = Examined(st.task(task), model, length, Plan.of(model, length, None, 2048), seed, lambda _: None)
        fails = examined.measured["at_90"]["length"]
        if fails is None or not examined.learned or examined.walk.exploded_at is not None:
            continue
        last, stops = examined.fitted_to, np.array(examined.plan.stops)
        curves = [probed(examined.walk), Apart.of(examined.walk).separation, margins(examined.walk, model, last)]
        lengths = [extrapolated(stops, values, last) for values in curves]
        chosen = examined.separated["predicted"]["at_90"]["length"]
        found.append([*(length / fails for length in lengths), chosen / fails if chosen else float("inf")])
        print(f"{name:32}{seed:>5}{fails:>10.0f}{columns(found[-1])}", flush=True)
    off = np.exp(np.median(np.abs(np.log(np.array(found))), axis=0))
    print(f"{f'{len(found)} networks, off by a factor of':47}{columns(off)}")
    return 0


def columns(numbers: Iterable[float]) -> str:
    return "".join(f"{number:>{width}.2f}" for number, width in zip(numbers, (8, 8, 8, 10)))


if __name__ == "__main__":
    sys.exit(main())
