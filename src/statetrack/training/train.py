"""From a task and a model to a result."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

import statetrack
from statetrack.errors import BadInput
from statetrack.models import SequenceModel, check, model
from statetrack.sweep import Cell, Store
from statetrack.tasks import Task, spec, task
from statetrack.tasks.base import check_size
from statetrack.theory import Floors, floors
from statetrack.training import checkpoint, metrics
from statetrack.training.evaluate import Evaluator
from statetrack.training.loop import Fit, fit
from statetrack.training.protocol import Progress, Protocol, protocol

Report = Callable[[Fit], None]
Tick = Callable[[str], None]


@dataclass(frozen=True)
class Result:
    """One cell: what it is, the numbers measured, and the trained model where it is still at hand."""

    cell: Cell
    record: dict[str, Any]
    model: SequenceModel | None = None

    @property
    def accuracy(self) -> float | None:
        """Over all positions asked for, at the length trained on."""
        return self.record["accuracy"]

    @property
    def solved(self) -> bool:
        """At least .99 over the last quarter of the positions."""
        return bool(self.record["solved"])

    def to_dict(self) -> dict[str, Any]:
        return {"cell": self.cell.to_dict(), "version": statetrack.__version__, **self.record}


def train(
    task_or_name: Task | str, model_or_name: SequenceModel | str, *, length: int = 64, seed: int = 0, **options: Any
) -> Result:
    """Train one model on one task at one length; see `train_many` for the options."""
    return train_many(task_or_name, model_or_name, length=length, seeds=[seed], **options)[0]


def train_many(
    task_or_name: Task | str,
    model_or_name: SequenceModel | str,
    *,
    length: int = 64,
    seeds: list[int],
    protocol_or_name: Protocol | str = "curriculum",
    settings: dict[str, Any] | None = None,
    stream: int = 0,
    out: Path | str | None = None,
    device: str = "auto",
    report: Report = lambda _: None,
    tick: Tick = lambda _: None,
) -> list[Result]:
    """Train a seed after the other as replicas of one batched model, and evaluate each.

    `settings` change numbers of the protocol; with several learning rates in `rates`, validation chooses for each seed.
    `stream` evaluates on so many steps as well. With a folder `out`, results, weights and a checkpoint are kept there:
    what is there already is not done again, and a run that was killed goes on where it was.
    """
    the_task = task(task_or_name) if isinstance(task_or_name, str) else task_or_name
    rules = protocol(protocol_or_name).with_changes(**(settings or {}))
    place = pick_device(device)
    subject = model_or_name if isinstance(model_or_name, str) else type(model_or_name).__name__.lower()
    cells = [Cell(the_task.name, subject, length, seed, vars(rules) | {"stream": stream}) for seed in seeds]
    store = Store(Path(out)) if out is not None else None
    found = {cell.seed: record for cell in cells if store and (record := store.read(cell))}
    missing = [cell for cell in cells if cell.seed not in found]
    made = _train_cells(the_task, model_or_name, missing, rules, stream, store, place, report, tick) if missing else {}
    return [made[cell.seed] if cell.seed in made else Result(cell, _inner(found[cell.seed])) for cell in cells]


def _train_cells(
    the_task: Task, model_or_name: SequenceModel | str, cells: list[Cell], rules: Protocol, stream: int,
    store: Store | None, place: torch.device, report: Report, tick: Tick,
) -> dict[int, Result]:  # fmt: skip
    length, seeds = cells[0].length, [cell.seed for cell in cells]
    check_size(length, 1, min(seeds), 0)
    runs = [(seed, rate) for seed in seeds for rate in rules.rates]
    models = [built(model_or_name, the_task, seed) for seed, _ in runs]
    check(models[0], the_task.inputs, the_task.outputs)
    limit = getattr(models[0], "positions", None)
    if limit is not None and length > limit:
        raise BadInput(f"{cells[0].subject} has {limit} positions; length {length} does not fit")
    saved = store.path(cells[0], "checkpoint.safetensors") if store else None
    if not the_task.sample(length, 16, split="validation").mask.any():
        raise BadInput(f"{the_task.name} asks nothing at length {length}; choose another length")
    floor = floors_of(the_task, length)["position"].average
    run = fit(
        the_task, models, length, [seed for seed, _ in runs], [rate for _, rate in runs], rules, place,
        saved=saved, floor=floor, report=report,
    )  # fmt: skip
    trained = run.models()
    results = {}
    for cell in cells:
        rows = [row for row, (seed, _) in enumerate(runs) if seed == cell.seed]
        row = max(rows, key=lambda row: run.progress[row].best)
        record = measure(the_task, trained[row], cell, run, row, stream, tick)
        record["rates_tried"] = [
            {
                "rate": runs[r][1],
                "validation_accuracy": run.progress[r].best,
                "diverged_at": run.progress[r].diverged_at,
            }
            for r in rows
        ]
        results[cell.seed] = Result(cell, record, trained[row])
        if store:
            checkpoint.save_weights(store.path(cell, "safetensors"), trained[row], {"cell": cell.to_dict()})
            store.write(cell, results[cell.seed].to_dict())
    if saved:
        saved.unlink(missing_ok=True)
    return results


def measure(
    the_task: Task, trained: SequenceModel, cell: Cell, run: Fit, row: int, stream: int, tick: Tick
) -> dict[str, Any]:
    """All numbers of one cell."""
    progress, began = run.progress[row], time.monotonic()
    record: dict[str, Any] = {
        "status": "done" if progress.diverged_at is None else "diverged",
        "diverged_at": progress.diverged_at,
        "learning_rate": progress.rate,
        "steps": progress.step,
        "final_train_loss": finite(progress.history[-1]["loss"]) if progress.history else None,
        "epochs_to_converge": epochs_to_converge(progress),
        "validation_accuracy": max(progress.best, 0.0),
        "parameters": trained.parameter_count,
        "state_size": trained.state_size,
        "tokens_per_second": run.tokens / run.seconds if run.seconds else None,
        "train_seconds": run.seconds,
        "replicas": len(run.seeds),
        "device": torch.cuda.get_device_name() if run.device.type == "cuda" else "cpu",
        "torch": torch.__version__,
    }
    record |= Evaluator(the_task, trained, cell.length, cell.seed).everything(stream, tick)
    known = floors_of(the_task, cell.length)
    by_position = [None if math.isnan(value) else value for value in known["position"].by_position.tolist()]
    record["floor"] = known["position"].average
    record["floors"] = {floor.name: floor.average for floor in known.floors}
    record["floor_by_position"] = by_position
    record["skill_by_position"] = metrics.skill(record["accuracy_by_position"], by_position)
    record["evaluation_seconds"] = time.monotonic() - began
    return record


@functools.lru_cache(maxsize=64)
def floors_of(the_task: Task, length: int) -> Floors:
    """What guesses score: for the record those that look at no more than the present input."""
    return floors(the_task, length, window=1)


def epochs_to_converge(progress: Progress) -> int | None:
    """The first check, at the full length, whose accuracy is within .001 of the best."""
    full = [entry for entry in progress.history if entry["length"] == progress.stages[-1]]
    if not full:
        return None
    best = max(entry["accuracy"] for entry in full)
    first = next(entry for entry in full if entry["accuracy"] >= best - 0.001)
    return progress.history.index(first) + 1


def finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def built(model_or_name: SequenceModel | str, the_task: Task, seed: int) -> SequenceModel:
    """The model for this task: a name with options, `e88-gain-r2[learned_start=true]`, or one that is there already."""
    if not isinstance(model_or_name, str):
        return model_or_name
    name, given = spec.parse(model_or_name)
    options = {key: yaml.safe_load(value) for key, value in given.items()}
    return model(name, inputs=the_task.inputs, outputs=the_task.outputs, seed=seed, **options)


def pick_device(device: str) -> torch.device:
    """'auto' is the GPU where there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError:
        raise BadInput(f"device {device!r} should be auto, cpu or cuda") from None
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise BadInput("device 'cuda' is asked for, but torch sees no GPU here")
    return chosen


def _inner(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in ("cell", "version")}
