"""How the loss at the last position depends on the states before it: the gradient that training would have to use."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from statetrack.diagnosis.trajectories import device_of, grid
from statetrack.diagnosis.true_states import asked_everywhere
from statetrack.models import SequenceModel, State
from statetrack.tasks.base import Task
from statetrack.training.evaluate import to_ids

STOPS = 64
TINY = 1e-12  # of the largest norm: below, the numbers are rounding
REACH = 1e-3


def state_gradients(model: SequenceModel, ids: Tensor, target: Tensor, stops: list[int]) -> Tensor:
    """|d loss / d state after t| for each stop t and row, (stops, rows); the loss is the cross-entropy at the end.

    The row is run in pieces from stop to stop, so that the state at each is a tensor that autograd knows.
    """
    state: State = tuple(part.detach().requires_grad_(part.is_floating_point())
                         for part in model.initial_state(len(ids), ids.device))  # fmt: skip
    kept: list[Tensor] = []
    begin = 0
    for stop in [*stops, ids.shape[1]]:
        logits, state = model.forward_from(ids[:, begin:stop], state)
        if stop < ids.shape[1]:
            # Pieces that autograd may return as they came in are made tensors of their own.
            state = tuple(part.clone() if part.is_floating_point() else part for part in state)
            kept.extend(part for part in state if part.is_floating_point())
        begin = stop
    loss = F.cross_entropy(logits[:, -1].float(), target, reduction="sum")
    gradients = torch.autograd.grad(loss, kept, allow_unused=True)
    parts = len(kept) // len(stops)
    squares = torch.stack([
        g.double().flatten(1).square().sum(1) if g is not None else torch.zeros(len(ids), dtype=torch.float64)
        for g in gradients
    ])  # fmt: skip
    return squares.unflatten(0, (len(stops), parts)).sum(1).sqrt()


def gradient(task: Task, model: SequenceModel, length: int, rows: int, seed: int) -> dict[str, Any]:
    """The norms at positions whose distance from the end grows geometrically, and their trend."""
    if length < 2:
        return {"absent": "a row of one position has no state before its last answer"}
    batch = asked_everywhere(task).sample(length, 4 * rows, seed, "test")
    told = np.flatnonzero(batch.mask[:, -1])[:rows]
    if not len(told):
        return {"absent": f"nothing is asked at position {length}"}
    device = device_of(model)
    stops = sorted({length - back for back in grid(1, length - 1, STOPS)})
    target = torch.from_numpy(batch.targets[told, -1].astype(np.int64)).to(device)
    norms = state_gradients(model, to_ids(batch.inputs[told], device), target, stops).cpu().numpy()
    if not np.isfinite(norms).any():
        return {"absent": "the state grows out of all bounds, and the loss with it"}
    middle = np.median(norms, axis=1)
    return {
        "position": stops, "norm": middle.tolist(), "low": np.quantile(norms, 0.1, axis=1).tolist(),
        "high": np.quantile(norms, 0.9, axis=1).tolist(), "per_step": per_step(np.array(stops), middle),
        "reaches": reaches(np.array(stops), middle, length),
        "loss": f"cross-entropy of the answer at position {length}", "loss_position": length, "rows": len(told),
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
