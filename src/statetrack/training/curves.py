"""What is told of a training while it runs, to a function of the user's own, and what the record keeps of it.

>>> import statetrack as st
>>> seen = []
>>> short = {"check_every": 10, "most_checks": 1, "polish": 0, "batch": 8}
>>> result = st.train("txc", "mlp", length=8, settings=short, callback=seen.append)
>>> [(check.update, check.length, check.done) for check in seen]
[(10, 4, False), (20, 8, True)]
>>> result.record.training.curve.updates
[10, 20]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType
from typing import Any

from statetrack.errors import BadInput, one_line
from statetrack.formatting import short
from statetrack.results.curve import Curve, kept
from statetrack.training.protocol import Progress


@dataclass(frozen=True)
class TrainingCheck:
    """Where the training of one seed at one learning rate stands, at a check on validation data. All plain numbers.

    `loss` and `gradient_norm` (before clipping) are means over the updates since the check before; both, and the
    accuracy, are NaN where the run diverged. `accuracy` is on validation rows of `length`, the length of this stage,
    which is number `stage` of `stages`; `floor` is what a guess scores at the full length.
    """

    seed: int
    rate: float
    update: int
    loss: float
    accuracy: float
    gradient_norm: float
    length: int
    stage: int
    stages: int
    best: bool  # whether these weights are the best so far, and kept
    floor: float | None
    seconds: float  # of training so far, of all seeds and rates that run side by side
    done: bool  # whether this was its last check
    diverged_at: int | None  # the update whose loss was not a number


Callback = Callable[[TrainingCheck], object]


def last_check(progress: Progress, seed: int, floor: float | None, seconds: float) -> TrainingCheck:
    """The check that a run has just made."""
    entry = progress.history[-1] if progress.history and progress.diverged_at is None else {}
    norm = entry.get("gradient_norm")
    length = int(entry.get("length", progress.length))
    return TrainingCheck(
        seed=seed, rate=progress.rate, update=progress.step, loss=entry.get("loss", math.nan),
        accuracy=entry.get("accuracy", math.nan), gradient_norm=math.nan if norm is None else norm, length=length,
        stage=progress.stages.index(length) + 1, stages=len(progress.stages),
        best=bool(entry) and progress.best_check == progress.checks, floor=floor, seconds=seconds, done=progress.done,
        diverged_at=progress.diverged_at,
    )  # fmt: skip


def is_check(entry: Any) -> bool:
    """Whether an entry of a run's history is one; before 0.4.0 it had no norm."""
    told = {key: type(value) for key, value in entry.items()} if isinstance(entry, dict) else {}
    norm = told.pop("gradient_norm", float)
    return told == {"step": int, "length": int, "loss": float, "accuracy": float} and norm in (float, NoneType)


def tell(callback: Callback, check: TrainingCheck, save: Callable[[], str]) -> None:
    """Call the user's function. What it raises is said as its own, in one line, after the run was saved."""
    try:
        callback(check)
    except Exception as error:  # somebody's own function may raise anything
        name = getattr(callback, "__qualname__", type(callback).__name__)
        where = f"at update {check.update} of seed {check.seed}"
        raise BadInput(f"your callback {name} failed {where}: {one_line(error)}; {save()}") from error


def curve_of(progress: Progress) -> Curve | None:
    """The curve of a run for its record, with the digits that a figure shows; None where it made no check."""
    history = progress.history
    if not history:
        return None
    places = kept([int(entry["length"]) for entry in history], [entry["accuracy"] for entry in history])
    points = [history[place] for place in places]
    return Curve(
        updates=[int(point["step"]) for point in points],
        lengths=[int(point["length"]) for point in points],
        loss=[short(point["loss"]) for point in points],
        accuracy=[short(point["accuracy"]) for point in points],
        gradient_norm=[short(point.get("gradient_norm")) for point in points],
    )
