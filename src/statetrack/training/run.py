"""From cells to their results: what is there, what lacks an evaluation, what has to be trained."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from statetrack.errors import BadInput
from statetrack.models import SequenceModel, check
from statetrack.results import Cell, Damage, Store, TrainingRecord, diagnosis, history, proofs
from statetrack.results.cell import STREAM
from statetrack.results.evaluations import OnWords
from statetrack.results.records import DIVERGED, DONE, RateTried, Training
from statetrack.results.store import add, read_record
from statetrack.tasks import Task
from statetrack.tasks.base import MAX_LENGTH, MAX_VALUES, check_size, check_whole
from statetrack.training import checkpoint
from statetrack.training.breaking import on_words
from statetrack.training.costs import what_it_took
from statetrack.training.curves import Callback, curve_of
from statetrack.training.evaluate import Evaluator
from statetrack.training.floors import floors_of, with_floors
from statetrack.training.further import Wanted, grown, measured
from statetrack.training.loop import Fit, Report, fit
from statetrack.training.memory import PeakMemory, hand_back, memory_named
from statetrack.training.own_models import blaming_own, check_trained, check_untrained
from statetrack.training.protocol import Progress, Protocol
from statetrack.training.result import Result
from statetrack.training.threads import threads_for
from statetrack.training.weights import built, load

MOST_SEED = 2**63 - 1

Tick = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """Seeds of one model on one task at one length, and what is to be known of them."""

    task: Task
    model: nn.Module | str
    cells: tuple[Cell, ...]
    rules: Protocol
    place: torch.device
    streams: tuple[int, ...] = ()
    words: int | None = None  # tokens of hard words; None: as is usual, of what is trained here
    report: Report = lambda _: None
    tick: Tick = lambda _: None
    warn: Tick = lambda _: None
    callback: Callback | None = None


def cell_protocol(rules: Protocol) -> dict[str, Any]:
    """The part of a cell that says how it is trained. 0.1.0 counted the stream to it, so that its key has one of 0."""
    return rules.described() | {STREAM: 0}


def run_job(job: Job, store: Store | None, saved: Path | None, weights: bool = True) -> Iterator[Result]:
    """Every cell of a job once: what is there and whole, what lacks an evaluation, what has to be trained. Each is kept
    in the store before it is given.
    """
    lacking: dict[Cell, TrainingRecord] = {}
    missing: dict[int, Cell] = {}
    for cell in dict.fromkeys(job.cells):
        found = store.read(cell) if store else None
        if not isinstance(found, TrainingRecord):
            missing[cell.seed] = cell
        elif found.lacks(job.streams) or found.lacks_words(job.words):
            lacking[cell] = found
        else:
            yield Result(found, store=store, found=True)
    for cell, found in lacking.items():
        assert store is not None  # it was found there
        try:
            trained = load(store, cell)
        except BadInput as error:
            if found.lacks(job.streams):
                job.warn(f"{cell}: {error}; so it is trained again for its stream")
                missing[cell.seed] = cell
            else:
                job.warn(f"{cell}: {error}; so hard words are not tried on it")
                yield Result(found, store=store, found=True)
        else:
            yield _evaluate_further(job, store, found, trained.to(job.place))
    damaged = _tell_damage(store, missing.values(), job) if store else []
    if missing:
        again = {each.steps for cell in missing.values() if cell in lacking for each in lacking[cell].streams}
        wanted = replace(job, cells=tuple(missing[seed] for seed in sorted(missing)),
                         streams=tuple(sorted({*job.streams, *again})))  # fmt: skip
        yield from _train_cells(wanted, store, saved, weights)
    for path in damaged:  # what has another name than the record that is there now
        path.unlink(missing_ok=True)


def _evaluate_further(job: Job, store: Store, found: TrainingRecord, trained: SequenceModel) -> Result:
    """Measure what a record lacks, on the weights that were kept. Nothing else of it changes."""
    began, words = time.monotonic(), job.words if found.lacks_words(job.words) else 0
    wanted = Wanted(streams=tuple(found.lacks(job.streams)), words=words)
    with threads_for(trained):
        more = measured(job.task, trained, found.cell, wanted, job.tick)
    return Result(add(store, grown(found, more, began)), trained, store, found=True)


def _on_words(job: Job, cell: Cell, trained: SequenceModel) -> OnWords:
    return on_words(job.task, trained, cell.length, cell.seed, job.words, job.tick)


def check_numbers(length: int, seeds: Sequence[int], stream: int, words: int | None = None) -> None:
    """Refuse what cannot be run before anything is."""
    for seed in seeds:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MOST_SEED:
            raise BadInput(f"seed {seed} should be a whole number in 0..{MOST_SEED}")
    check_size(length, 1, 0, 0)
    check_whole(stream=stream)
    if isinstance(stream, bool) or not 0 <= stream <= MAX_LENGTH:
        raise BadInput(f"stream {stream} should lie in 0..{MAX_LENGTH}")
    if words is not None:
        check_whole(words=words)
        if isinstance(words, bool) or (words and not length <= words <= MAX_VALUES):
            raise BadInput(f"words {words} should be 0, or a number of tokens in {length} (the length)..{MAX_VALUES}")


def checkpoint_path(store: Store, cells: Iterable[Cell]) -> Path:
    """One checkpoint for all that a call asks for, so that it is found again when some of it is done."""
    return store.folder / f"{store.scratch(cells).name}.checkpoint.safetensors"


def _tell_damage(store: Store, cells: Iterable[Cell], job: Job) -> list[Path]:
    """Name the damaged files of these cells; give those that 0.1.0 named by the stream that is asked for."""
    old = []
    for cell in cells:
        named = [replace(cell, protocol={**cell.protocol, STREAM: steps}) for steps in job.streams]
        for path in (store.path(each) for each in (cell, *named)):
            damage = read_record(path)
            if isinstance(damage, Damage):
                job.warn(f"{damage.path} is damaged ({damage.why}); its cell is run again")
                old += [path] if path != store.path(cell) else []
    return old


def seeds_to_train(missing: list[int], saved: Path | None) -> list[int]:
    """The seeds of the checkpoint, where one is there, so that it can be continued; else those that are missing.

    A checkpoint that lacks a missing seed (a result was removed meanwhile) is of no use.
    """
    if saved is None or not saved.exists():
        return missing
    begun = checkpoint.load(saved)[1].get("seeds")
    if not isinstance(begun, list) or not all(type(seed) is int for seed in begun):
        raise checkpoint.Damaged(saved, "it names no seeds")
    if set(missing) <= set(begun):
        return sorted(set(begun))
    saved.unlink()
    return missing


def _train_cells(job: Job, store: Store | None, saved: Path | None, weights: bool) -> Iterator[Result]:
    try:
        yield from _go_on(job, store, saved, weights)
    except checkpoint.Damaged as error:  # found before the first step
        assert saved is not None
        job.warn(f"the checkpoint {saved.name} is damaged ({error.why}); its cells start anew")
        saved.unlink(missing_ok=True)
        yield from _go_on(job, store, saved, weights)


def _go_on(job: Job, store: Store | None, saved: Path | None, weights: bool) -> Iterator[Result]:
    length, subject = job.cells[0].length, job.cells[0].subject
    seeds = seeds_to_train([cell.seed for cell in job.cells], saved)
    runs = [(seed, rate) for seed in seeds for rate in job.rules.rates]
    with memory_named(f"{len(runs)} x {subject} at length {length}", job.place):
        models = [built(job.model, job.task, seed) for seed, _ in runs]
        check(models[0], job.task.inputs, job.task.outputs)
        check_length(job.task, subject, getattr(models[0], "positions", None), length)
        with threads_for(models[0], job.place):
            check_untrained(models[0], job.task.inputs, length, job.streams, job.rules.batch_at(length))
            yield from _fit_and_measure(job, models, runs, store, saved, weights)


def check_length(the_task: Task, subject: str, positions: int | None, length: int) -> None:
    """Refuse a length that a model has no positions for, or at which nothing is asked."""
    if positions is not None and length > positions:
        raise BadInput(f"{subject} has {positions} positions; length {length} does not fit")
    if not the_task.sample(length, 16, split="validation").mask.any():
        raise BadInput(f"{the_task.name} asks nothing at length {length}; choose another length")


def _fit_and_measure(
    job: Job, models: list[SequenceModel], runs: list[tuple[int, float]], store: Store | None, saved: Path | None,
    weights: bool,
) -> Iterator[Result]:  # fmt: skip
    length, began = job.cells[0].length, time.monotonic()
    memory = PeakMemory(job.place)
    floor = floors_of(job.task, length)["position"].average
    with blaming_own(models[0], job.cells[0].subject, "in training"):
        run = fit(
            job.task, models, length, [seed for seed, _ in runs], [rate for _, rate in runs], job.rules, job.place,
            saved=saved, floor=floor, report=job.report, callback=job.callback,
        )  # fmt: skip
    trained = run.models()
    hand_back(job.place)  # what the steps took is not needed for the evaluation
    share = (time.monotonic() - began) / len(job.cells)
    for cell in job.cells:
        rows = [row for row, (seed, _) in enumerate(runs) if seed == cell.seed]
        row = max(rows, key=lambda row: run.progress[row].best)
        tried = [_tried(run.progress[row]) for row in rows]
        with blaming_own(trained[row], cell.subject, "when it is tested"):
            check_trained(trained[row], job.task.inputs, length, job.streams)
            record = measure(job, cell, trained[row], _training(run, row, trained[row], tried), share)
        record = replace(
            record, training=replace(record.training, peak_memory=memory.read(), peak_memory_of=memory.kind)
        )
        if store:
            path = store.path(cell, "safetensors")
            path.unlink(missing_ok=True)  # of another training, as is what was found out about it
            diagnosis.forget(store, cell)
            proofs.forget(store.path(cell))
            if weights:
                note = {"cell": cell.to_dict(), "training": record.training.fingerprint}
                checkpoint.save_weights(path, trained[row], note)
            store.write(record)
        history.note(what_it_took(record))
        yield Result(record, trained[row], store if weights else None)


def _tried(progress: Progress) -> RateTried:
    return RateTried(progress.rate, validated(progress), progress.diverged_at)


def _training(run: Fit, row: int, trained: SequenceModel, tried: list[RateTried]) -> Training:
    progress = run.progress[row]
    return Training(
        diverged_at=progress.diverged_at, learning_rate=progress.rate, steps=progress.step,
        final_train_loss=finite(progress.history[-1]["loss"]) if progress.history else None,
        epochs_to_converge=epochs_to_converge(progress), validation_accuracy=validated(progress),
        parameters=trained.parameter_count, state_size=trained.state_size,
        tokens_per_second=run.tokens / run.seconds if run.seconds else None, train_seconds=run.seconds,
        replicas=len(run.seeds), device=torch.cuda.get_device_name() if run.device.type == "cuda" else "cpu",
        processor=history.processor(), torch=str(torch.__version__), rates_tried=tuple(tried), curve=curve_of(progress),
        trained_on_words=run.broken[row].known,
    )  # fmt: skip


def measure(job: Job, cell: Cell, trained: SequenceModel, training: Training, seconds: float) -> TrainingRecord:
    """The record of one cell: everything is evaluated here, with the floors beside it."""
    began = time.monotonic()
    found = Evaluator(job.task, trained, cell.length, cell.seed).everything(job.streams, job.tick)
    if job.words != 0:
        found.append(_on_words(job, cell, trained))
    evaluations = tuple(with_floors(job.task, each, cell.length) for each in found)
    took = time.monotonic() - began
    status = DONE if training.diverged_at is None else DIVERGED
    return TrainingRecord(
        cell=cell, status=status, seconds=seconds + took, training=training, evaluations=evaluations,
        evaluation_seconds=took,
    )  # fmt: skip


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


def pick_device(device: str) -> torch.device:
    """'auto' is the GPU where there is one. There cuDNN is told to compute in float32, as all other products do: by
    itself it rounds the inputs of a cell's products to 10 bits (TF32), in every step.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        chosen = torch.device(device)
    except RuntimeError:
        raise BadInput(f"device {device!r} should be auto, cpu or cuda") from None
    if chosen.type not in ("cpu", "cuda"):
        raise BadInput(f"device {device!r} should be auto, cpu or cuda")
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        raise BadInput(f"device {device!r} is asked for, but torch sees {torch.cuda.device_count() or 'no'} GPU here")
    if chosen.type == "cuda":
        torch.backends.cudnn.allow_tf32 = False
    return chosen
