"""Cells whose subject is a model that is trained: `run_job` on the seeds of one (task, model, length, protocol).

Settings of a block are numbers of the protocol, and how each cell is evaluated besides: `stream`, on how many steps,
and `words`, on hard words of how many tokens (0: none). Its `match` is the size that its models are to have.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from statetrack import plain_yaml
from statetrack.errors import BadInput
from statetrack.models.matching import Match
from statetrack.own_code import pinned
from statetrack.results import Cell, Record, Store, TrainingRecord
from statetrack.results.cell import MATCH, STREAM, WORDS
from statetrack.results.history import Measured
from statetrack.results.kinds import CellRequest, SeedGroup, checking
from statetrack.tasks import Task, trusted_task
from statetrack.training.costs import cost_of, rules_of, step_of, what_it_took
from statetrack.training.memory import hand_back
from statetrack.training.protocol import Protocol, fuse_from, protocol
from statetrack.training.run import Job, cell_protocol, check_length, check_numbers, pick_device, run_job
from statetrack.training.weights import built, of_size


def describe(task: str, subject: str, length: int, seed: int, protocol: str, settings: dict[str, Any]) -> CellRequest:
    """The cell, in the words that training uses for it."""
    with checking("tasks"):
        the_task = _task(pinned(task))
    with checking(MATCH):
        match = Match.read(settings.pop(MATCH)) if MATCH in settings else None
    with checking("subjects"):
        sized = pinned(subject) if match is None else of_size(subject, the_task, match)
        name, positions, _ = _model(sized, the_task.name)
    with checking("lengths"):
        check_numbers(length, [seed], 0)
        _check_length(the_task.name, name, positions, length)
    with checking("protocol"):
        _rules(protocol, ())
    with checking("settings"):
        stream, words, changes = _split(settings)
        check_numbers(length, [seed], stream, words)
        rules = _rules(protocol, changes)
    fuse_from()  # a wrong one would fail every cell
    cell = Cell(the_task.name, name, length, seed, cell_protocol(rules))
    return CellRequest(cell, (stream,) if stream else (), words)


def cost(wanted: CellRequest) -> float:
    _, _, numbers = _model(wanted.cell.subject, wanted.cell.task)
    return cost_of(wanted.cell, wanted.streams, wanted.words, numbers)


def took(record: Record) -> Measured | None:
    """What a finished cell took; None where its protocol is none of ours."""
    if not isinstance(record, TrainingRecord):
        return None
    try:
        return what_it_took(record)
    except (KeyError, TypeError, ValueError, ArithmeticError):
        return None


def step(cell: Cell) -> int:
    return step_of(cell)


def run(work: SeedGroup, store: Store, scratch: Path) -> Iterator[Record]:
    """Train the cells' seeds side by side, and evaluate each; or only evaluate what was trained before."""
    torch.set_num_threads(1)
    first, place = work.cells[0], pick_device(work.device)
    job = Job(
        _task(first.task), first.subject, work.cells, rules_of(first), place, work.streams, work.words, warn=_warn
    )
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        for result in run_job(job, store, scratch / f"{first.siblings}.checkpoint.safetensors", work.weights):
            yield result.record
    finally:
        hand_back(place)  # to the other workers on this GPU


def _warn(line: str) -> None:
    print(f"statetrack: {line}", file=sys.stderr, flush=True)


def _split(settings: dict[str, Any]) -> tuple[int, int | None, tuple[tuple[str, Any], ...]]:
    """The stream, the hard words, and the changes to the protocol. YAML reads 1e-3 as a text, which is a number to us,
    and a single learning rate is a list of one.
    """
    given = {key: _whole(plain_yaml.numbers_in(value)) for key, value in settings.items()}
    stream, words = given.pop(STREAM, 0), given.pop(WORDS, None)
    if isinstance(given.get("rates"), float | int):
        given["rates"] = [given["rates"]]
    changes = tuple((key, tuple(value) if isinstance(value, list) else value) for key, value in given.items())
    return stream, words, changes


def _whole(value: Any) -> Any:
    """8.0, or "8", is 8; a number of the protocol that need not be whole is made so by its own check."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


@functools.cache
def _rules(name: str, changes: tuple[tuple[str, Any], ...]) -> Protocol:
    return protocol(name).with_changes(**dict(changes))


@functools.cache
def _task(text: str) -> Task:
    return trusted_task(text)


@functools.cache
def _check_length(text: str, subject: str, positions: int | None, length: int) -> None:
    check_length(_task(text), subject, positions, length)


@functools.cache
def _model(subject: str, task_text: str) -> tuple[str, int | None, int]:
    """(name as results write it, positions where they are limited, numbers a token touches); built once to be sure."""
    try:
        model = built(subject, _task(task_text), 0)
    except (TypeError, RuntimeError, ZeroDivisionError) as error:
        raise BadInput(f"{subject} cannot be built: {error}") from error
    assert model.text is not None  # it was built from a text
    return model.text, getattr(model, "positions", None), model.parameter_count + (model.state_size or 0)
