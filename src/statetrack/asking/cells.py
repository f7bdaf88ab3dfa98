"""Cells of a sweep whose subject is asked: `ask:MODEL WORDS`. A cell is one sample; its number is the cell's seed.

    ask:hf:PATH_OR_NAME implicit          the words are a solver (implicit where none is named), a style, a regime
    ask:openai/gpt-4o table thinking
    ask:none random                       a solver that needs no model

Every other rule is one of the block's settings, such as {way: whole, history: corrected}; `teacher_forced: true` is for
local models. The cells are those that `statetrack ask` and `statetrack play` write: all can share a folder.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from statetrack.asking import prompts
from statetrack.asking.dialogue import dialogue
from statetrack.asking.engines import Engine, check, check_trusted, engine, subject
from statetrack.asking.episode import FAULTS
from statetrack.asking.rules import FORCED, REGIMES, STYLES, Rules
from statetrack.asking.run import ask, cell
from statetrack.asking.solvers import Explicit, Human, Solver, solver, split_subject
from statetrack.asking.tokens import THOUGHTS
from statetrack.asking.wording import wording
from statetrack.errors import BadInput, unknown
from statetrack.own_code import pinned
from statetrack.results.cell import ASK, MATCH, Cell
from statetrack.results.history import Measured
from statetrack.results.kinds import CellRequest, SeedGroup, WrongPart, checking
from statetrack.results.records import FAILED, SKIPPED, AskedRecord, Record, no_result
from statetrack.results.store import Store
from statetrack.tasks import Task, trusted_task

PREFIX, NO_MODEL = "ask:", "none"
REACHED = "STATETRACK_MODELS"  # a cell does not hold how its model is reached; workers read that from here

_failing: set[str] = set()  # models whose server gave nothing at all the last time: they get one try


def describe(task: str, subject: str, length: int, seed: int, protocol: str, settings: dict[str, Any]) -> CellRequest:
    """The cell, in the words that `ask` uses for it."""
    with checking("tasks"):
        the_task = _task(pinned(task))
    with checking("subjects"):
        model, who, words = _read(subject)
    with checking("protocol"):
        if protocol != ASK:
            raise BadInput(f"{subject} is asked: protocol {protocol!r} should be {ASK!r}")
    if MATCH in settings:
        raise WrongPart(MATCH, "match is for models that are trained")
    with checking("settings"):
        forced = settings.pop(FORCED, False)
        rules = _rules(settings | words)
        if forced and (forced is not True or not model.startswith("hf:") or rules.way == "whole"):
            raise BadInput(f"{FORCED}={forced!r} should be true or false, and is for hf: models turn by turn")
    with checking("subjects"):
        wording(the_task, rules)
    with checking("settings"):
        prompts.check(the_task, rules)
    with checking("lengths"):
        _asks(the_task, rules, length)
    return CellRequest(cell(the_task, rules, who, model, seed, length, forced))


def cost(wanted: CellRequest) -> float:
    """About the tokens that go through the model, with those that it writes counted ten times."""
    cell, who = wanted.cell, solver(split_subject(wanted.cell.subject)[1])
    answers = 1 if cell.protocol["way"] == "whole" else cell.length
    written = answers * (10 + THOUGHTS * (cell.protocol["regime"] == "thinking"))
    state = cell.length**2 if who.shows_state else 0
    return (20.0 * cell.length + state + 10 * written) * (1 if who.needs_model else 1e-3)


def took(record: Record) -> Measured | None:
    """What a sample took; a server's pace is that of its model, wherever this runs."""
    if not isinstance(record, AskedRecord) or not record.seconds:
        return None
    cell = record.cell
    try:
        weight = cost(CellRequest(cell))
    except (BadInput, KeyError, TypeError, ValueError):
        return None
    return Measured(device="", task=cell.task, subject=cell.subject, length=cell.length, siblings=cell.siblings,
                    cost=weight, seconds=record.seconds)  # fmt: skip


def step(cell: Cell) -> int:
    return 0


def run(work: SeedGroup, store: Store, scratch: Path) -> Iterator[Record]:
    """Ask the samples side by side. One that a server cut off before is taken up where it was."""
    first, count = work.cells[0], len(work.cells)
    name, who = split_subject(first.subject)
    if _is_person(solver(who)):
        reason = f"a person has to answer: statetrack play {first.task} --out DIR, into the same folder"
        yield from (_left(sample, SKIPPED, reason, store) for sample in work.cells)
        return
    records = ask(
        _task(first.task), Rules.of_protocol(first.protocol), solver(who), [sample.seed for sample in work.cells],
        length=first.length, model=name, engine=lambda: _engine(name, work.device, count), store=store,
        forced=FORCED in first.protocol,
    )  # fmt: skip
    failed = [record.episode.detail for record in records if record.episode.ended in FAULTS]
    (_failing.add if len(failed) == len(records) else _failing.discard)(name)
    asked = {record.cell.seed: record for record in records}
    for sample in work.cells:
        yield asked.get(sample.seed) or _left(sample, FAILED, f"not asked: {failed[0]}", store)


def _is_person(who: Solver) -> bool:
    return _is_person(who.inner) if isinstance(who, Explicit) else isinstance(who, Human)


def _left(cell: Cell, status: str, reason: str, store: Store) -> Record:
    """Keep why a cell has no result. What was answered before it was cut off stays in its record."""
    there, record = store.record(cell), no_result(cell, status, reason)
    if there is not None and there.finished:  # by a person or another process, meanwhile
        return there
    if isinstance(there, AskedRecord):
        record = replace(there, status=status, reason=record.reason)
    store.write(record)
    return record


def _read(text: str) -> tuple[str, Solver, dict[str, str]]:
    """The model, the solver, and the rules that stand among the words of a subject."""
    model, *words = text.removeprefix(PREFIX).split()
    who, rules = None, {}
    for word in words:
        kind = "style" if word in STYLES else "regime" if word in REGIMES else "solver"
        if kind in rules or (kind == "solver" and who is not None):
            raise BadInput(f"{text!r} names two of a kind: {word} is a {kind}, and so is a word before it")
        if kind == "solver":
            who = solver(word)
        else:
            rules[kind] = word
    who = who or solver("implicit")
    if who.needs_model == (model == NO_MODEL):
        needs = "needs a model" if who.needs_model else f"needs no model: write {PREFIX}{NO_MODEL} {who.name}"
        raise BadInput(f"{text!r}: solver {who.name} {needs}")
    if who.needs_model:
        check(model)
        check_trusted(model)
        _remember(model)
    return model, who, rules


def _remember(model: str) -> None:
    """Leave the way to a model's server to the workers that this process will start."""
    name = subject(model)
    if name != model:
        os.environ[REACHED] = json.dumps(json.loads(os.environ.get(REACHED, "{}")) | {name: model})


def _rules(given: dict[str, Any]) -> Rules:
    names = [rule.name for rule in fields(Rules)]
    for key in given:
        if key not in names:
            raise unknown("setting", key, [*names, FORCED])
    return Rules(**given)


@functools.cache
def _task(text: str) -> Task:
    return trusted_task(text)


@functools.cache
def _asks(task: Task, rules: Rules, length: int) -> None:
    """Refuse a length at which nothing is asked."""
    dialogue(task, rules, 0, length)


def _engine(name: str, device: str, batch: int) -> Engine:
    if name.startswith("hf:"):
        local_engine = _local(name, device)
        local_engine.batch = batch
        return local_engine
    reached = json.loads(os.environ.get(REACHED, "{}")).get(name, name)
    return engine(reached, batch=batch, **({"max_retries": 0} if name in _failing else {}))


@functools.lru_cache(maxsize=1)
def _local(name: str, device: str) -> Engine:
    """A local model stays loaded for the next cells."""
    import torch

    torch.set_num_threads(1)  # the other cores have workers of their own
    return engine(name, device=device)
