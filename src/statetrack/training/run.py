"""From a task and a model to a result."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from statetrack import spec
from statetrack.errors import BadInput
from statetrack.models import SequenceModel, check, model
from statetrack.models.custom import as_model, own_name
from statetrack.results import Cell, Store
from statetrack.results.store import Damage, kept_in, read_record
from statetrack.tasks import Task, task
from statetrack.tasks.base import MAX_LENGTH, check_size
from statetrack.theory import Floors, floors
from statetrack.training import checkpoint, metrics
from statetrack.training.evaluate import Evaluator
from statetrack.training.loop import Fit, fit
from statetrack.training.memory import beside_others, hand_back, ran_out_of_memory
from statetrack.training.protocol import Progress, Protocol, fuse_from, plain, protocol
from statetrack.version import __version__

MOST_SEED = 2**63 - 1
CHEAP_FLOOR = 4096  # positions up to which the floor of a longer row is worth its time

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
        return {"cell": self.cell.to_dict(), "version": __version__, **self.record}


def train(
    task_or_name: Task | str, model_or_name: nn.Module | str, *, length: int = 64, seed: int = 0, **options: Any
) -> Result:
    """Train one model on one task at one length; see `train_many` for the options."""
    return train_many(task_or_name, model_or_name, length=length, seeds=[seed], **options)[0]


def train_many(
    task_or_name: Task | str,
    model_or_name: nn.Module | str,
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
    warn: Tick = lambda _: None,
) -> list[Result]:
    """Train a seed after the other as replicas of one batched model, and evaluate each.

    `settings` change numbers of the protocol; with several learning rates in `rates`, validation chooses for each seed.
    `stream` evaluates on so many steps as well. With a folder `out`, results, weights and a checkpoint are kept there:
    what is there already is not done again, and a run that was killed goes on where it was. `warn` is told of a
    damaged result that is made again.
    """
    the_task = task(task_or_name) if isinstance(task_or_name, str) else task_or_name
    rules = protocol(protocol_or_name).with_changes(**(settings or {}))
    place = pick_device(device)
    check_numbers(length, seeds, stream)
    fuse_from()
    subject = subject_of(model_or_name, the_task, kept=out is not None)
    cells = [Cell(the_task.name, subject, length, seed, vars(rules) | {"stream": stream}) for seed in seeds]
    with kept_in(out) as store:
        found = {cell.seed: record for cell in cells if store and (record := store.read(cell))}
        missing = sorted({cell for cell in cells if cell.seed not in found}, key=lambda cell: cell.seed)
        saved = checkpoint_path(store, cells) if store else None
        if store:
            _tell_damage(store, missing, warn)
        made = {}
        if missing:
            made = _train_cells(the_task, model_or_name, missing, rules, stream, store, saved, place, report, tick)
        if saved:
            saved.unlink(missing_ok=True)
    return [made[cell.seed] if cell.seed in made else Result(cell, _inner(found[cell.seed])) for cell in cells]


def check_numbers(length: int, seeds: list[int], stream: int) -> None:
    """Refuse what cannot be run before anything is."""
    for seed in seeds:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MOST_SEED:
            raise BadInput(f"seed {seed} should be a whole number in 0..{MOST_SEED}")
    check_size(length, 1, 0, 0)
    if not 0 <= stream <= MAX_LENGTH:
        raise BadInput(f"stream {stream} should lie in 0..{MAX_LENGTH}")


def checkpoint_path(store: Store, cells: list[Cell]) -> Path:
    """One checkpoint for all that a call asks for, so that it is found again when some of it is done."""
    return store.folder / f"{store.scratch(cells).name}.checkpoint.safetensors"


def _tell_damage(store: Store, cells: list[Cell], warn: Tick) -> None:
    for cell in cells:
        damage = read_record(store.path(cell), cell)
        if isinstance(damage, Damage):
            warn(f"{damage.path} is damaged ({damage.why}); its cell is run again")


def seeds_to_train(missing: list[int], saved: Path | None) -> list[int]:
    """The seeds of the checkpoint, where one is there, so that it can be continued; else those that are missing.

    A checkpoint that lacks a missing seed (a result was removed meanwhile) is of no use.
    """
    if saved is None or not saved.exists():
        return missing
    begun = sorted(set(checkpoint.load(saved)[1]["seeds"]))
    if set(missing) <= set(begun):
        return begun
    saved.unlink()
    return missing


def _train_cells(
    the_task: Task, model_or_name: nn.Module | str, cells: list[Cell], rules: Protocol, stream: int,
    store: Store | None, saved: Path | None, place: torch.device, report: Report, tick: Tick,
) -> dict[int, Result]:  # fmt: skip
    length, subject = cells[0].length, cells[0].subject
    seeds = seeds_to_train([cell.seed for cell in cells], saved)
    runs = [(seed, rate) for seed in seeds for rate in rules.rates]
    with memory_named(f"{len(runs)} x {subject} at length {length}", place):
        models = [built(model_or_name, the_task, seed) for seed, _ in runs]
        check(models[0], the_task.inputs, the_task.outputs)
        limit = getattr(models[0], "positions", None)
        if limit is not None and length > limit:
            raise BadInput(f"{subject} has {limit} positions; length {length} does not fit")
        if not the_task.sample(length, 16, split="validation").mask.any():
            raise BadInput(f"{the_task.name} asks nothing at length {length}; choose another length")
        return _fit_and_measure(the_task, models, cells, runs, rules, stream, store, saved, place, report, tick)


def _fit_and_measure(
    the_task: Task, models: list[SequenceModel], cells: list[Cell], runs: list[tuple[int, float]], rules: Protocol,
    stream: int, store: Store | None, saved: Path | None, place: torch.device, report: Report, tick: Tick,
) -> dict[int, Result]:  # fmt: skip
    length = cells[0].length
    floor = floors_of(the_task, length)["position"].average
    run = fit(
        the_task, models, length, [seed for seed, _ in runs], [rate for _, rate in runs], rules, place,
        saved=saved, floor=floor, report=report,
    )  # fmt: skip
    trained = run.models()
    hand_back(place)  # what the steps took is not needed for the evaluation
    results = {}
    for cell in cells:
        rows = [row for row, (seed, _) in enumerate(runs) if seed == cell.seed]
        row = max(rows, key=lambda row: run.progress[row].best)
        record = measure(the_task, trained[row], cell, run, row, stream, tick)
        record["rates_tried"] = [
            {
                "rate": runs[r][1],
                "validation_accuracy": validated(run.progress[r]),
                "diverged_at": run.progress[r].diverged_at,
            }
            for r in rows
        ]
        results[cell.seed] = Result(cell, record, trained[row])
        if store:
            checkpoint.save_weights(store.path(cell, "safetensors"), trained[row], {"cell": cell.to_dict()})
            store.write(cell, results[cell.seed].to_dict())
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
        "validation_accuracy": validated(progress),
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
    record["floor"] = finite(known["position"].average)
    record["floor_exact"] = known["position"].exact
    record["floors"] = {floor.name: floor.average for floor in known.floors}
    record["floor_by_position"] = by_position
    for beyond, entry in record["length_generalisation"].items():
        cheap = known["position"].exact and int(beyond) <= CHEAP_FLOOR
        entry["floor"] = finite(floors_of(the_task, int(beyond))["position"].average) if cheap else None
    record["skill_by_position"] = metrics.skill(record["accuracy_by_position"], by_position)
    record["evaluation_seconds"] = time.monotonic() - began
    return record


@functools.lru_cache(maxsize=64)
def floors_of(the_task: Task, length: int) -> Floors:
    """What guesses score: for the record those that look at no more than the present input."""
    return floors(the_task, length, window=1)


def validated(progress: Progress) -> float | None:
    """The best accuracy on validation data; None where a run diverged before there was any."""
    return progress.best if progress.best >= 0 else None


def epochs_to_converge(progress: Progress) -> int | None:
    """Which check at the full length, counted from its first, is the first within .001 of the best of them."""
    full = [entry for entry in progress.history if entry["length"] == progress.stages[-1]]
    if not full:
        return None
    best = max(entry["accuracy"] for entry in full)
    return next(count for count, entry in enumerate(full, 1) if entry["accuracy"] >= best - 0.001)


def finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def built(model_or_name: nn.Module | str, the_task: Task, seed: int) -> SequenceModel:
    """The model for this task: a name with options, `e88-gain-r2[learned_start=true]`, or one that is there already."""
    if isinstance(model_or_name, nn.Module):
        return as_model(model_or_name, own_name(model_or_name), the_task.inputs, the_task.outputs)
    if not isinstance(model_or_name, str):
        raise BadInput(f"a model is a name or a torch.nn.Module, not a {type(model_or_name).__name__}")
    name, given = spec.parse(model_or_name)
    options = {key: value if key == "sha256" else plain(value, f"{name}: option {key}") for key, value in given.items()}
    return model(name, inputs=the_task.inputs, outputs=the_task.outputs, seed=seed, **options)


def subject_of(model_or_name: nn.Module | str, the_task: Task, kept: bool) -> str:
    """What a cell calls the model: its text. One that was not built by name has none, and cannot be kept."""
    made = built(model_or_name, the_task, seed=0)
    text: str | None = getattr(made, "text", None)
    if text is None and kept:
        raise BadInput(
            f"a {own_name(made)} that is there already does not say what it is, so its results cannot be kept; give "
            "its name, such as file.py:Class, or leave out `out`"
        )
    return text or own_name(made).lower()


@contextmanager
def memory_named(what: str, place: torch.device) -> Iterator[None]:
    """Memory that runs out is said in one line."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not ran_out_of_memory(error):
            raise
        others = beside_others(place)
        raise BadInput(
            f"out of memory: {what} does not fit{others}; choose a smaller model, or fewer seeds at a time"
        ) from error


def pick_device(device: str) -> torch.device:
    """'auto' is the GPU where there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError:
        raise BadInput(f"device {device!r} should be auto, cpu or cuda") from None
    if chosen.type not in ("cpu", "cuda"):
        raise BadInput(f"device {device!r} should be auto, cpu or cuda")
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        raise BadInput(f"device {device!r} is asked for, but torch sees {torch.cuda.device_count() or 'no'} GPU here")
    return chosen


def _inner(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in ("cell", "version")}
