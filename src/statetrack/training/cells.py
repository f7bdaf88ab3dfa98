"""Cells whose subject is a model that is trained: `train_many` on the seeds of one (task, model, length, protocol)."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from statetrack.errors import BadInput, need, unknown
from statetrack.results.cell import Cell
from statetrack.sweeps.kinds import checking
from statetrack.tasks import Task, task
from statetrack.tasks.base import check_size

STREAM = "stream"  # a setting of the evaluation, beside those of the protocol
MOST_STREAM = 2**24


def describe(task: str, subject: str, length: int, seed: int, protocol: str, settings: dict[str, Any]) -> Cell:
    """The cell, in the words that `train_many` uses for it."""
    with checking("tasks"):
        the_task = _task(task)
    with checking("subjects"):
        name, positions, _ = _model(subject, task)
    with checking("lengths"):
        check_size(length, 1, seed, 0)
        if positions is not None and length > positions:
            raise BadInput(f"{name} has {positions} positions; length {length} does not fit")
        if not _asks(task, length):
            raise BadInput(f"{the_task.name} asks nothing at length {length}; choose another length")
    with checking("protocol"):
        _protocol(protocol, ())
    with checking("settings"):
        rules = _protocol(protocol, _frozen(settings))
    from statetrack.training.protocol import fuse_from

    fuse_from()  # a wrong one would fail every cell
    return Cell(the_task.name, name, length, seed, rules)


def cost(cell: Cell) -> float:
    """Tokens at most trained on, times the numbers (weights and state) that one of them touches."""
    rules = _rules(cell)
    steps = rules.check_every * rules.most_checks
    tokens = rules.batch_at(cell.length) * steps * sum(rules.stages(cell.length)) * len(rules.rates)
    _, _, numbers = _model(cell.subject, cell.task)
    return float(tokens + 64 * cell.protocol[STREAM]) * numbers


def run(cells: list[Cell], scratch: Path, device: str) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Train the cells' seeds side by side, and evaluate each."""
    import torch

    from statetrack.training import train_many
    from statetrack.training.memory import hand_back
    from statetrack.training.run import pick_device

    torch.set_num_threads(1)
    began, first = time.monotonic(), cells[0]
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        results = train_many(
            first.task, first.subject, length=first.length, seeds=[cell.seed for cell in cells],
            protocol_or_name=_rules(first), stream=first.protocol[STREAM], out=scratch, device=device,
        )  # fmt: skip
    finally:
        hand_back(pick_device(device))  # to the other workers on this GPU
    seconds = (time.monotonic() - began) / len(cells)
    for cell, result in zip(cells, results):
        if result.cell != cell:
            raise BadInput(f"{cell} came back as {result.cell}")
        yield cell, result.to_dict() | {"seconds": seconds}


def _rules(cell: Cell) -> Any:
    from statetrack.training import Protocol

    held = {key: value for key, value in cell.protocol.items() if key != STREAM}
    return Protocol(**held | {"rates": tuple(held["rates"])})


@functools.cache
def _task(text: str) -> Task:
    return task(text)


@functools.cache
def _asks(text: str, length: int) -> bool:
    return bool(_task(text).sample(length, 16, split="validation").mask.any())


@functools.cache
def _model(subject: str, task_text: str) -> tuple[str, int | None, int]:
    """(name as results write it, positions where they are limited, numbers a token touches); built once to be sure."""
    need("torch", "train", "training")
    from statetrack.training.run import built

    try:
        model = built(subject, _task(task_text), 0)
    except (TypeError, RuntimeError, ZeroDivisionError) as error:
        raise BadInput(f"{subject} cannot be built: {error}") from error
    assert model.text is not None  # it was built from a text
    return model.text, getattr(model, "positions", None), model.parameter_count + (model.state_size or 0)


@functools.cache
def _protocol(name: str, settings: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    """The protocol's numbers with the settings in their place."""
    need("torch", "train", "training")
    from statetrack.training import protocol

    rules = protocol(name)
    given = dict(settings)
    stream = _number(STREAM, given.pop(STREAM, 0), 0)
    if stream > MOST_STREAM:
        raise BadInput(f"stream={stream} should lie in 0..{MOST_STREAM}")
    defaults = vars(rules)
    for key in given:
        if key not in defaults or key == "name":
            raise unknown("setting", key, [*(known for known in defaults if known != "name"), STREAM])
    changed = rules.with_changes(**{key: _number(key, value, defaults[key]) for key, value in given.items()})
    return vars(changed) | {STREAM: stream}


def _number(key: str, value: Any, like: Any) -> Any:
    """A setting as the type of its default. YAML reads 1e-3 as a text, which is a number to us."""
    if isinstance(like, tuple):
        return tuple(_number(key, each, 0.0) for each in (value if isinstance(value, tuple) else (value,)))
    if isinstance(like, str):
        if isinstance(value, str):
            return value
        raise BadInput(f"{key}={value} should be a text")
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise BadInput(f"{key}={value} should be a number, not negative")
    if isinstance(like, float):
        return number
    if number != int(number):
        raise BadInput(f"{key}={value} should be a whole number")
    return int(number)


def _frozen(settings: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((key, tuple(value) if isinstance(value, list) else value) for key, value in sorted(settings.items()))
