"""What probes find at one position, with samples enough for the size of the state, and what they would have found.

Two probes are fitted on validation rows and tested on test rows; what is free in them is chosen on rows held out:

    linear      ridge on all numbers of the state, or on the few that tell most on their own
    nonlinear   ridge on a kernel exp(-|x - y|^2 / 2 w^2), of all numbers or of the directions in which they vary most,
                or on the few products of two numbers that tell most

That a probe does not find the true state says something only if it would have. So the truth is planted in the same
states, and the same probes are fitted again:

    number      as a number of its own, of the size that the state's numbers have
    direction   added to all numbers along a random direction, as long as one number is wide
    product     as two numbers of that size, of which neither alone tells anything: s, and s times the truth, s = +-1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from statetrack.diagnosis.probe import guessed
from statetrack.diagnosis.trajectories import Floats, cost_of, device_of, flat, pieces
from statetrack.diagnosis.true_states import TrueStates, asked_everywhere
from statetrack.models import SequenceModel
from statetrack.training.evaluate import to_ids

Ints = NDArray[np.integer[Any]]
Parts = tuple[Floats, Floats, Floats]

PER_NUMBER, LEAST, MOST = 4, 512, 2048  # samples to fit on: for each number of the state, at least and at most
MOST_NUMBERS = 2**24  # in all samples
HELD_OUT = 0.25
WORK = 4e6  # microseconds, about
ROWS = (36, 1024)
SCREENED, LEADING = 64, 8  # numbers that tell most on their own; directions in which states vary most
ITERATIONS = 8
PAIRS_WORK = 4e10  # multiplications to look at all pairs of numbers
MOST_KINDS = 4  # true states that pairs are chosen by
STRENGTHS = (1e-6, 1e-3, 1e-1, 10.0)  # in units of the kernel's mean diagonal
WIDTHS_ALL, WIDTHS_LEADING = (0.3, 1.0), (0.03, 0.15, 0.6)  # of a kernel, in median distances
KERNEL_STRENGTHS = (1e-5, 1e-1)


@dataclass(frozen=True)
class Samples:
    """States, each number in units of its own spread, and true states: to fit on, to choose by, to test on."""

    x: Parts
    y: tuple[Ints, Ints, Ints]

    def with_numbers(self, more: Callable[[Ints], Floats]) -> Samples:
        """The same with further numbers, made of the true states."""
        x = tuple(np.column_stack([x, more(y)]) for x, y in zip(self.x, self.y))
        return Samples((x[0], x[1], x[2]), self.y)

    def along(self, direction: Floats, code: Callable[[Ints], Floats]) -> Samples:
        """The same with the code of the true state added along directions (numbers of the code, numbers)."""
        x = tuple(x + code(y) @ direction for x, y in zip(self.x, self.y))
        return Samples((x[0], x[1], x[2]), self.y)


@torch.no_grad()
def states_near(
    truth_of: TrueStates, model: SequenceModel, position: int, samples: int, seed: int, split: str
) -> tuple[Floats, Ints]:
    """States after some positions up to the one given, of as many rows as can be run in little time."""
    rows = int(np.clip(WORK / (2 * position * cost_of(model)), *ROWS))
    rows = min(rows, samples)
    window = min(-(-samples // rows), max(1, position // 2))
    batch = asked_everywhere(truth_of.task).sample(position, rows, seed, split)
    truth = truth_of.states(batch.inputs, batch.targets)
    stops = list(range(position - window + 1, position + 1))
    ids = to_ids(batch.inputs, device_of(model))
    walked = pieces(model, ids, model.initial_state(rows, ids.device), stops)
    kept = {end: flat(state).cpu().numpy() for _, end, _, state in walked if end in stops}
    x = np.stack([kept[stop] for stop in stops], axis=1).reshape(rows * window, -1)  # row after row
    return x[:samples], truth[:, stops[0] - 1 : position].reshape(-1)[:samples]


def gathered(truth_of: TrueStates, model: SequenceModel, position: int, numbers: int, seed: int) -> Samples:
    """Samples to fit on and to choose by (validation rows), and to test on (test rows)."""
    count = int(min(np.clip(PER_NUMBER * numbers, LEAST, MOST), max(128, MOST_NUMBERS // numbers)))
    x, y = states_near(truth_of, model, position, count, seed, "validation")
    x_test, y_test = states_near(truth_of, model, position, count, seed, "test")
    x = x.astype(np.float64)
    centre, spread = x.mean(0), x.std(0)
    varies = spread > 0
    x, x_test = (((part - centre) / np.where(varies, spread, 1))[:, varies] for part in (x, x_test))
    cut = int(len(x) * HELD_OUT)  # of other rows than the rest
    return Samples((x[cut:], x[:cut], x_test), (y[cut:], y[:cut], y_test))


def accuracy(scores: Floats, kinds: Ints, wanted: Ints) -> float:
    return float((kinds[scores.argmax(1)] == wanted).mean())


@dataclass(frozen=True)
class Kernel:
    """Products of those to fit on among themselves, and of the held-out and of the test samples with them."""

    among: Floats
    held: Floats
    test: Floats

    def each(self, change: Callable[[Floats], Floats]) -> Kernel:
        return Kernel(change(self.among), change(self.held), change(self.test))


def by_kernel(samples: Samples, kernels: Iterator[Kernel], strengths: tuple[float, ...]) -> float:
    """The test accuracy of kernel ridge on indicators, with the kernel and strength that are best on held-out samples:
    (K + strength I) weights = indicators.
    """
    y, y_held, y_test = samples.y
    kinds, which = np.unique(y, return_inverse=True)
    if len(kinds) == 1:
        return float((y_test == kinds[0]).mean())
    indicator = np.eye(len(kinds))[which]
    offset = indicator.mean(0)
    best, found = -1.0, 0.0
    for kernel in kernels:
        among = torch.from_numpy(kernel.among.astype(np.float64))
        size = max(float(among.diagonal().mean()), 1e-30)
        for strength in strengths:
            factor = torch.linalg.cholesky(among + strength * size * torch.eye(len(among), dtype=torch.float64))
            weights = torch.cholesky_solve(torch.from_numpy(indicator - offset), factor).numpy()
            here = accuracy(kernel.held @ weights + offset, kinds, y_held)
            if here > best:
                best, found = here, accuracy(kernel.test @ weights + offset, kinds, y_test)
    return found


def products(x: Parts) -> Kernel:
    return Kernel(x[0] @ x[0].T, x[1] @ x[0].T, x[2] @ x[0].T)


def telling(samples: Samples) -> Ints:
    """The numbers whose means over true states differ most, against their spread."""
    x, y = samples.x[0], samples.y[0]
    kinds, which = np.unique(y, return_inverse=True)
    between = np.zeros(x.shape[1])
    for i in range(len(kinds)):
        own = x[which == i]
        between += len(own) * own.mean(0).astype(np.float64) ** 2
    return np.argsort(-between)[:SCREENED]


def telling_pairs(samples: Samples) -> tuple[Ints, Ints]:
    """The pairs of numbers whose products tell true states most: sums over samples of x_i x_j (indicator - share)."""
    x, y = samples.x[0].astype(np.float32), samples.y[0]
    told = np.zeros((x.shape[1], x.shape[1]), np.float32)
    kinds, counts = np.unique(y, return_counts=True)
    for kind in kinds[np.argsort(-counts)][: min(MOST_KINDS, len(kinds) - 1)]:  # the last is told by the others
        indicator = (y == kind).astype(np.float32)
        told += (x.T @ (x * (indicator - indicator.mean())[:, None])) ** 2
    once = np.triu(told).ravel()
    best = np.argpartition(-once, min(SCREENED, len(once) - 1))[:SCREENED]
    return best // x.shape[1], best % x.shape[1]


def linear(samples: Samples) -> float:
    """The test accuracy of the linear probe."""

    def kernels() -> Iterator[Kernel]:
        few = telling(samples)
        yield products(samples.x)
        yield products(_each(samples.x, lambda part: part[:, few]))

    return by_kernel(samples, kernels(), STRENGTHS)


def nonlinear(samples: Samples) -> float:
    """The test accuracy of the nonlinear probe."""

    def kernels() -> Iterator[Kernel]:
        axes = leading(samples.x[0])
        for x, widths in ((samples.x, WIDTHS_ALL), (_each(samples.x, lambda part: part @ axes), WIDTHS_LEADING)):
            squares = distances(x)
            middle = max(float(np.median(squares.among)), 1e-12)
            for width in widths:
                close = [
                    np.exp(-part / (2 * width**2 * middle)) for part in (squares.among, squares.held, squares.test)
                ]
                yield Kernel(*close)
        if len(samples.y[0]) * samples.x[0].shape[1] ** 2 <= PAIRS_WORK:
            one, two = telling_pairs(samples)
            yield products(_each(samples.x, lambda part: part[:, one] * part[:, two]))

    return by_kernel(samples, kernels(), KERNEL_STRENGTHS)


def leading(x: Floats) -> Floats:
    """The directions in which the rows of x vary most, each scaled to a spread of 1; by iterating on a subspace."""
    start = np.random.default_rng(0).normal(size=(x.shape[1], min(LEADING, x.shape[1])))
    for _ in range(ITERATIONS):
        start, _ = np.linalg.qr(x.T @ (x @ start))
    return start / np.maximum((x @ start).std(0), 1e-12)


def distances(x: Parts) -> Kernel:
    """Squared distances of each part from the first."""
    own = [(part.astype(np.float64) ** 2).sum(1) for part in x]
    product = products(x)
    made = [np.maximum(size[:, None] + own[0] - 2.0 * each, 0.0)
            for size, each in zip(own, (product.among, product.held, product.test))]  # fmt: skip
    return Kernel(*made)


def _each(x: Parts, change: Callable[[Floats], Floats]) -> Parts:
    return change(x[0]), change(x[1]), change(x[2])


def planted(samples: Samples, seed: int) -> dict[str, Samples]:
    """The same samples with the truth planted in each of three ways."""
    draws = np.random.default_rng(seed)
    kinds = np.unique(np.concatenate(samples.y))
    kinds = kinds[: max(1, len(kinds) - 1)]  # the last is told by the others

    def code(y: Ints) -> Floats:
        """A number for each true state but one, in units of its spread."""
        shares = [max(float((samples.y[0] == kind).mean()), 1e-3) for kind in kinds]
        return np.column_stack([
            ((y == kind) - share) / np.sqrt(share * max(1 - share, 1e-3)) for kind, share in zip(kinds, shares)
        ])  # fmt: skip

    def twice(y: Ints) -> Floats:
        sign = draws.choice([-1.0, 1.0], (len(y), 1))
        return np.column_stack([sign, sign * code(y)])

    direction = draws.normal(size=(len(kinds), samples.x[0].shape[1]))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return {
        "number": samples.with_numbers(code), "direction": samples.along(direction, code),
        "product": samples.with_numbers(twice),
    }  # fmt: skip


def decode(truth_of: TrueStates, model: SequenceModel, position: int, numbers: int, seed: int) -> dict[str, Any]:
    """What both probes find at a position, and what they would have found: `Decoding` in results/sections.py."""
    samples = gathered(truth_of, model, position, numbers, seed)
    chance = guessed(samples.y[0], samples.y[2])
    if not samples.x[0].shape[1]:  # the state is the same in all rows
        return {"position": position, "samples": len(samples.y[0]), "numbers": numbers, "chance": chance,
                "linear": chance, "nonlinear": chance, "planted": {}}  # fmt: skip
    probes = {"number": linear, "direction": linear, "product": nonlinear}
    return {
        "position": position, "samples": len(samples.y[0]), "numbers": numbers, "chance": chance,
        "linear": linear(samples), "nonlinear": nonlinear(samples),
        "planted": {name: probes[name](each) for name, each in planted(samples, seed).items()},
    }  # fmt: skip
