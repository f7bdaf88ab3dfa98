"""How the loss depends on the states before it: the gradient that training would have to use.

Two losses are taken. That of the last answer alone shows how far back one answer reaches: its norm is a curve over the
distance from the end. That of all answers (their mean, as training has it) shows what a state is told in all: near
answers count in it as much as far ones, so that it says little of reach.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from statetrack.diagnosis.trajectories import device_of, grid, reads_state
from statetrack.diagnosis.true_states import asked_everywhere
from statetrack.models import SequenceModel, State
from statetrack.results.sections import NOT_READ
from statetrack.tasks.base import Task
from statetrack.training.evaluate import to_ids

STOPS = 64
TINY = 1e-12  # of the largest norm: below, the numbers are rounding
REACH = 1e-3


def state_gradients(
    model: SequenceModel, ids: Tensor, targets: Tensor, asked: Tensor, stops: list[int]
) -> tuple[Tensor, Tensor] | None:
    """|d loss / d state after t| for each stop t and row, (stops, rows): of the last answer's cross-entropy, and of the
    mean over all answers asked for. None where no logit depends on a state.

    The row is run in pieces from stop to stop, so that the state at each is a tensor that autograd knows.
    """
    state: State = tuple(part.detach().requires_grad_(part.is_floating_point())
                         for part in model.initial_state(len(ids), ids.device))  # fmt: skip
    kept: list[Tensor] = []
    said: list[Tensor] = []
    begin = 0
    for stop in [*stops, ids.shape[1]]:
        logits, state = model.forward_from(ids[:, begin:stop], state)
        said.append(logits)
        if stop < ids.shape[1]:
            # Pieces that autograd may return as they came in are made tensors of their own.
            state = tuple(part.clone() if part.is_floating_point() else part for part in state)
            kept.extend(part for part in state if part.is_floating_point())
        begin = stop
    every = F.cross_entropy(torch.cat(said, dim=1).float().transpose(1, 2), targets, reduction="none")
    if not every.requires_grad:
        return None
    mean = ((every * asked).sum(1) / asked.sum(1).clamp(min=1)).sum()
    last, over_all = (_norms(loss, kept, len(stops)) for loss in (every[:, -1].sum(), mean))
    return last, over_all


def _norms(loss: Tensor, kept: list[Tensor], stops: int) -> Tensor:
    """The norms of the gradient in the parts kept at each stop, (stops, rows)."""
    gradients = torch.autograd.grad(loss, kept, allow_unused=True, retain_graph=True)
    squares = torch.stack([
        g.double().flatten(1).square().sum(1) if g is not None else torch.zeros(len(part), dtype=torch.float64)
        for g, part in zip(gradients, kept)
    ])  # fmt: skip
    return squares.unflatten(0, (stops, len(kept) // stops)).sum(1).sqrt()


def gradient(task: Task, model: SequenceModel, length: int, rows: int, seed: int) -> dict[str, Any]:
    """The norms at positions whose distance from the end grows geometrically, and their trend."""
    if length < 2:
        return {"absent": "a row of one position has no state before its last answer"}
    batch = asked_everywhere(task).sample(length, 4 * rows, seed, "test")
    told = np.flatnonzero(batch.mask[:, -1])[:rows]
    if not len(told):
        return {"absent": f"nothing is asked at position {length}"}
    device = device_of(model)
    ids = to_ids(batch.inputs[told], device)
    if not reads_state(model, ids):
        return {"absent": NOT_READ}
    stops = sorted({length - back for back in grid(1, length - 1, STOPS)})
    targets = torch.from_numpy(batch.targets[told].astype(np.int64)).to(device)
    asked = torch.from_numpy(batch.mask[told].astype(np.float32)).to(device)
    both = state_gradients(model, ids, targets.clamp(min=0), asked, stops)
    if both is None:
        return {"absent": NOT_READ}
    norms, over_all = (each.cpu().numpy() for each in both)
    if not np.isfinite(norms).any():
        return {"absent": "the state grows out of all bounds, and the loss with it"}
    middle = np.median(norms, axis=1)
    return {
        "position": stops, "norm": middle.tolist(), "low": np.quantile(norms, 0.1, axis=1).tolist(),
        "high": np.quantile(norms, 0.9, axis=1).tolist(), "per_step": per_step(np.array(stops), middle),
        "reaches": reaches(np.array(stops), middle, length),
        "loss": f"cross-entropy of the answer at position {length}", "loss_position": length, "rows": len(told),
        "over_all": np.median(over_all, axis=1).tolist(),
    }  # fmt: skip


def per_step(stops: np.ndarray, norms: np.ndarray) -> float | None:
    """The factor by which the norm changes for every step further back: a line through its logarithm.

    >>> round(per_step(np.arange(1, 20), 0.9 ** (20.0 - np.arange(1, 20))), 3)
    0.9
    """
    norms = np.nan_to_num(norms, nan=0.0, posinf=0.0)
    good = norms > TINY * norms.max(initial=0)
    if good.sum() < 3:
        return None
    slope = np.polyfit(stops[good], np.log(norms[good]), 1)[0]
    return float(np.exp(-slope))


def reaches(stops: np.ndarray, norms: np.ndarray, length: int) -> int:
    """How many steps back the norm is still a thousandth of its largest."""
    norms = np.nan_to_num(norms, nan=0.0, posinf=0.0)
    good = stops[norms >= REACH * norms.max(initial=0)] if norms.max(initial=0) > 0 else stops[:0]
    return int(length - good.min()) if len(good) else 0
