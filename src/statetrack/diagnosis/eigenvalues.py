"""The eigenvalues of one step, d state' / d state, along real inputs: what a step keeps, shrinks, turns or flips.

A layer's state does not act on that of layers below it, so the matrix is block triangular, and its eigenvalues are
those of the blocks on its diagonal. They are taken block by block: over all of it the many zeros of a convolution's
window, each feeding the next layer, would look like eigenvalues that are not there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from statetrack.diagnosis.trajectories import BOUND, device_of, flat, pieces
from statetrack.formatting import brief
from statetrack.models import SequenceModel, State
from statetrack.tasks.base import Task
from statetrack.training.evaluate import to_ids

Complex = NDArray[np.complex128]

ALL = slice(None)
DENSE = 512  # numbers in a block up to which its Jacobian is written out
STEPS = 40  # of Arnoldi's iteration for larger ones
MOST_SYMBOLS = 8
SAMPLES = {"dense": 8, "Arnoldi": 3}  # steps looked at, for each symbol
LEADING = 12
NEGATIVE = -0.05


def floating(state: State) -> list[Tensor]:
    return [part for part in state if part.is_floating_point()]


def blocks(model: SequenceModel, symbol: int, state: State) -> list[slice]:
    """The parts of the state, in runs such that none acts on one before it."""
    before = tuple(part.clone().requires_grad_(part.is_floating_point()) for part in state)
    _, after = model.forward_from(torch.full((1, 1), symbol, device=before[0].device), before)
    ends: list[int] = []
    for number, part in enumerate(floating(after)):
        gradients = torch.autograd.grad(
            part, floating(before), torch.randn_like(part), retain_graph=True, allow_unused=True
        )
        acting = [other for other, each in enumerate(gradients) if each is not None and bool(each.any())]
        ends.append(max([number, *acting]) + 1)
    found, begin = [], 0
    for end in range(1, len(ends) + 1):
        if max(ends[begin:end]) == end:
            found.append(slice(begin, end))
            begin = end
    return found


def step_jacobian(model: SequenceModel, symbol: int, state: State, block: slice = ALL) -> NDArray[np.float64]:
    """d state' / d state for one row, dense: row i is the gradient of number i of the state after.

    The row is laid out once for each number of the block, and each copy is asked for another gradient.
    """
    size = sum(part[0].numel() for part in floating(state)[block])
    before = tuple(part.repeat(size, *[1] * (part.dim() - 1)).requires_grad_(part.is_floating_point())
                   for part in state)  # fmt: skip
    ids = torch.full((size, 1), symbol, device=before[0].device)
    _, after = model.forward_from(ids, before)
    flat = torch.cat([part.flatten(1) for part in floating(after)[block]], dim=1)
    inside = floating(before)[block]
    gradients = torch.autograd.grad(flat.diagonal().sum(), inside, allow_unused=True)
    filled = [g if g is not None else torch.zeros_like(part) for g, part in zip(gradients, inside)]
    return torch.cat([g.flatten(1) for g in filled], dim=1).double().cpu().numpy()


def arnoldi(model: SequenceModel, symbol: int, state: State, block: slice = ALL, steps: int = STEPS) -> Complex:
    """Leading eigenvalues of the same matrix, which is never written out: only its transpose times vectors is needed.

    Q_m spans v, J^T v, ..., and H = Q^T J^T Q is small; the transpose has the same eigenvalues.
    """
    before = tuple(part.clone().requires_grad_(part.is_floating_point()) for part in state)
    _, after = model.forward_from(torch.full((1, 1), symbol, device=before[0].device), before)
    inside, outside = floating(before)[block], floating(after)[block]
    shapes = [part.shape for part in outside]
    sizes = [part.numel() for part in outside]
    steps = min(steps, sum(sizes))
    basis = [np.random.default_rng(0).normal(size=sum(sizes))]
    basis[0] /= np.linalg.norm(basis[0])
    small = np.zeros((steps + 1, steps))
    for j in range(steps):
        v = [torch.from_numpy(part).to(before[0]).reshape(shape)
             for part, shape in zip(np.split(basis[j], np.cumsum(sizes)[:-1]), shapes)]  # fmt: skip
        found = torch.autograd.grad(outside, inside, v, retain_graph=True, allow_unused=True)
        filled = [g if g is not None else torch.zeros_like(part) for g, part in zip(found, inside)]
        w = torch.cat([g.flatten() for g in filled]).double().cpu().numpy()
        for _ in range(2):  # once is not enough in floating point
            along = np.array([q @ w for q in basis])
            small[: j + 1, j] += along
            w = w - along @ np.array(basis)
        small[j + 1, j] = np.linalg.norm(w)
        if small[j + 1, j] < 1e-7:
            return np.asarray(np.linalg.eigvals(small[: j + 1, : j + 1]))
        basis.append(w / small[j + 1, j])
    return np.asarray(np.linalg.eigvals(small[:steps, :steps]))


@dataclass(frozen=True)
class Spectrum:
    """The eigenvalues of one step, the largest first."""

    values: Complex

    @classmethod
    def of(cls, values: NDArray[Any]) -> Spectrum:
        return cls(values[np.argsort(-np.abs(values))])

    @property
    def largest(self) -> float:
        return float(np.abs(self.values[0])) if len(self.values) else 0.0

    @property
    def most_negative(self) -> float:
        """The most negative real one; 0 where there is none."""
        real = self.values.real[np.abs(self.values.imag) <= 1e-6 + 1e-3 * np.abs(self.values)]
        return min(0.0, float(real.min(initial=0.0)))


def eigenvalues(task: Task, model: SequenceModel, length: int, seed: int) -> dict[str, Any]:
    """For each input symbol, the spectra of steps with it, taken from rows of the task around the length trained on."""
    size = sum(part[0].numel() for part in floating(model.initial_state(1)))
    method = "dense" if size <= DENSE else "Arnoldi"
    symbols = []
    states = sampled_states(task, model, length, seed, SAMPLES[method] * MOST_SYMBOLS)
    for symbol in drawn_symbols(task, seed):
        here = states.get(symbol, [])[: SAMPLES[method]]
        if here:
            symbols.append(summary(task.symbol_text(symbol), [spectrum(model, symbol, state) for state in here]))
    if not symbols:
        return {"absent": "no step was sampled"}
    shown = method if method == "dense" else f"Arnoldi, {STEPS} steps"
    negative = any((symbol["most_negative"] or 0.0) < NEGATIVE for symbol in symbols)
    return {"symbols": symbols, "method": shown, "negative": negative, "says": says(symbols)}


def spectrum(model: SequenceModel, symbol: int, state: State) -> Spectrum:
    """The eigenvalues of one step, block by block."""
    found = []
    for block in blocks(model, symbol, state):
        if sum(part.numel() for part in floating(state)[block]) <= DENSE:
            found.append(np.linalg.eigvals(step_jacobian(model, symbol, state, block)))
        else:
            found.append(arnoldi(model, symbol, state, block))
    return Spectrum.of(np.concatenate(found))


def drawn_symbols(task: Task, seed: int) -> list[int]:
    """The first few symbols that the task's data hold."""
    return [int(x) for x in np.unique(task.sample(64, 64, seed, "test").inputs)][:MOST_SYMBOLS]


@torch.no_grad()
def sampled_states(task: Task, model: SequenceModel, length: int, seed: int, rows: int) -> dict[int, list[State]]:
    """States before a step, by the symbol that comes next: one a row, in the second half of the length."""
    batch = task.sample(length + 1, rows, seed, "test")
    device = device_of(model)
    stops = sorted({max(1, length // 2), max(1, 3 * length // 4), length})
    found: dict[int, list[State]] = {}
    start = model.initial_state(rows, device)
    for _, end, _, state in pieces(model, to_ids(batch.inputs[:, :length], device), start, stops):
        if end in stops:
            for row in range(stops.index(end), rows, len(stops)):
                one = tuple(part[row : row + 1].clone() for part in state)
                if float(flat(one).abs().max()) >= BOUND:
                    continue
                found.setdefault(int(batch.inputs[row, end]), []).append(one)
    return found


def summary(symbol: str, spectra: list[Spectrum]) -> dict[str, Any]:
    """Medians and extremes over the steps with one symbol, and the leading eigenvalues of a typical one."""
    largest = [spectrum.largest for spectrum in spectra]
    lowest = [spectrum.most_negative for spectrum in spectra]
    typical = spectra[int(np.argsort(largest)[len(largest) // 2])]
    has = float(np.median(lowest)) < 0
    return {
        "symbol": symbol,
        "samples": len(spectra),
        "largest": float(np.median(largest)),
        "largest_range": [min(largest), max(largest)],
        "most_negative": float(np.median(lowest)) if has else None,
        "most_negative_range": [min(lowest), max(lowest)] if has else None,
        "leading": [[value.real, value.imag] for value in typical.values[:LEADING].tolist()],
    }


def says(symbols: list[dict[str, Any]]) -> str:
    """What a person should know of them."""
    lowest = min(symbols, key=lambda symbol: symbol["most_negative"] or 0.0)
    value = lowest["most_negative"] or 0.0
    largest = max(symbol["largest"] for symbol in symbols)
    if value < NEGATIVE:
        flips = f"a step with {lowest['symbol']} has a real eigenvalue of {brief(value)}: it can flip a sign"
    else:
        flips = "no step has a real eigenvalue below -0.05: no step flips a sign"
    return f"{flips}; the largest magnitude is {brief(largest)}"
