"""From a task and a model to results: samples asked in batches, each kept as a cell of its own.

What is in the folder already is not asked again. An episode that a server or a person cut off is taken up where it was:
its replies so far are kept, and given again at no cost. A server that fails all of a batch is not asked further.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from statetrack.asking.dialogue import Dialogue, default_length, dialogue
from statetrack.asking.engines import Engine, subject
from statetrack.asking.episode import RUNNING, SERVER, Episode, Reply, Request
from statetrack.asking.rules import Rules
from statetrack.asking.solvers import Solver
from statetrack.asking.tokens import Tokens
from statetrack.errors import BadInput
from statetrack.results import Cell, Store
from statetrack.results.store import DONE, FAILED, kept_in
from statetrack.tasks import Task
from statetrack.version import __version__

ALL_AT_ONCE = 64  # episodes that a solver without a model takes at a time
UNFINISHED = (RUNNING, SERVER)
DEAD = 4  # episodes, in whole batches, that a server fails in a row before it is left alone

Report = Callable[[int, int], None]
"""Called after every turn with the episodes that ended and the turns that were answered, of all so far."""


def cell(task: Task, rules: Rules, solver: Solver, model: str, sample: int, length: int, forced: bool = False) -> Cell:
    """What one sample's result is filed under."""
    who = f"{subject(model)} {solver.name}" if solver.needs_model else solver.name
    protocol = {"name": "ask", **rules.to_dict(), **({"teacher_forced": True} if forced else {})}
    return Cell(task.name, who, length, sample, protocol)


def ask(
    task: Task,
    rules: Rules,
    solver: Solver,
    samples: Iterable[int],
    *,
    length: int | None = None,
    model: str = "",
    engine: Callable[[], Engine] | None = None,
    out: Path | None = None,
    forced: bool = False,
    report: Report = lambda ended, turns: None,
) -> list[dict[str, Any]]:
    """The records of these samples, in their order. `engine` is called only if there is something to ask.

    Where a server is dead, the samples that it was not asked for any more have no record.
    """
    if solver.needs_model and engine is None:
        raise BadInput(f"solver {solver.name} needs a model: --model SPEC")
    steps = default_length(rules) if length is None else length
    cells = {sample: cell(task, rules, solver, model, sample, steps, forced) for sample in samples}
    with kept_in(out) as store:
        return _ask(task, rules, solver, cells, steps, engine, store, forced, report)


def _ask(
    task: Task, rules: Rules, solver: Solver, cells: dict[int, Cell], steps: int, engine: Callable[[], Engine] | None,
    store: Store | None, forced: bool, report: Report,
) -> list[dict[str, Any]]:  # fmt: skip
    found = {sample: record for sample, each in cells.items() if store and (record := store.record(each))}
    missing = [sample for sample in cells if sample not in found or found[sample]["status"] != DONE]
    done = {sample: record for sample, record in found.items() if sample not in missing}
    if not missing:
        return [done[sample] for sample in cells]
    with_model = engine() if solver.needs_model and engine is not None else None

    def keep(sample: int, record: dict[str, Any]) -> None:
        failed = {"status": FAILED, "reason": record["detail"] or record["ended"]}
        status = failed if record["ended"] in UNFINISHED else {"status": DONE}
        done[sample] = {"cell": cells[sample].to_dict(), "version": __version__, **status, **record}
        if store:
            store.write(cells[sample], done[sample])

    progress = _Progress(report, len(done))
    width = with_model.batch if with_model else ALL_AT_ONCE
    in_vain = 0
    try:
        for begin in range(0, len(missing), width):
            group = [dialogue(task, rules, sample, steps) for sample in missing[begin : begin + width]]
            if forced:
                _score(group, with_model, keep, progress)
            else:
                _converse(group, solver, with_model, found, keep, progress)
            failed = all(done[each.sample]["ended"] == SERVER for each in group)
            in_vain = in_vain + len(group) if failed else 0
            if in_vain >= DEAD:
                break
    finally:
        if with_model:
            with_model.close()
    return [done[sample] for sample in cells if sample in done]


class _Progress:
    def __init__(self, report: Report, ended: int) -> None:
        self.report, self.ended, self.turns = report, ended, 0

    def add(self, ended: int, turns: int) -> None:
        self.ended += ended
        self.turns += turns
        self.report(self.ended, self.turns)


Keep = Callable[[int, dict[str, Any]], None]


def _converse(
    group: list[Dialogue], solver: Solver, engine: Engine | None, found: dict[int, Any], keep: Keep, progress: _Progress
) -> None:
    """Episodes side by side, turn after turn, until all have ended; each is kept as soon as it has."""
    began = time.monotonic()
    running = _keep_ended([_taken_up(each, found.get(each.sample)) for each in group], keep, began)
    progress.add(len(group) - len(running), 0)
    try:
        while running:
            requests = [request for episode in running if (request := episode.request()) is not None]
            for episode, reply in zip(running, _replies(solver, engine, requests), strict=True):
                episode.receive(reply)
            asked, running = len(running), _keep_ended(running, keep, began)
            progress.add(asked - len(running), asked)
    except BaseException:
        for episode in running:
            if episode.replies:
                keep(episode.dialogue.sample, episode.record() | {"seconds": time.monotonic() - began})
        raise


def _taken_up(each: Dialogue, before: dict[str, Any] | None) -> Episode:
    """A new episode, or the one that was cut off, with what it has cost already."""
    episode = Episode(each)
    if before is not None and "replies" in before:
        episode.replay(before["replies"], before["outcomes"])
        episode.tokens += Tokens(**before["tokens"])
    return episode


def _keep_ended(episodes: list[Episode], keep: Keep, began: float) -> list[Episode]:
    """Keep the episodes that have ended; give the others."""
    running = []
    for episode in episodes:
        if episode.request() is None:
            keep(episode.dialogue.sample, episode.record() | {"seconds": time.monotonic() - began})
        else:
            running.append(episode)
    return running


def _replies(solver: Solver, engine: Engine | None, requests: Sequence[Request]) -> list[Reply]:
    if engine is None:
        return [Reply(solver.reply(solver.prepare(request))) for request in requests]
    return engine.replies([solver.prepare(request) for request in requests])


def _score(group: list[Dialogue], engine: Engine | None, keep: Keep, progress: _Progress) -> None:
    """Every dialogue in one teacher-forced pass."""
    if engine is None or not engine.name.startswith("hf:"):
        raise BadInput("teacher-forced scoring reads the logits of a local model: --model hf:PATH_OR_NAME")
    from statetrack.asking.engines.forced import score
    from statetrack.asking.engines.hf import HFEngine

    assert isinstance(engine, HFEngine)
    for each in group:
        began = time.monotonic()
        record = score(engine, each)
        keep(each.sample, record | {"seconds": time.monotonic() - began})
        progress.add(1, len(record["outcomes"]))
