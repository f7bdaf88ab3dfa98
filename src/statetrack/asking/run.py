"""From a task and a model to results: samples asked in batches, each kept as a cell of its own.

What is in the folder already is not asked again. An episode that a server or a person cut off is taken up where it was:
its replies so far are kept, and given again at no cost. A server that fails all of a batch is not asked further.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from statetrack.asking.dialogue import Dialogue, default_length, dialogue
from statetrack.asking.engines import Engine
from statetrack.asking.episode import RUNNING, SERVER, Episode, Reply, Request
from statetrack.asking.rules import FORCED, Rules
from statetrack.asking.solvers import Solver, subject_of
from statetrack.asking.tokens import Tokens
from statetrack.errors import BadInput
from statetrack.results.cell import ASK, Cell
from statetrack.results.records import DONE, FAILED, AskedRecord
from statetrack.results.records import EpisodeRecord as KeptEpisode
from statetrack.results.store import Store, kept_in
from statetrack.tasks import Task

ALL_AT_ONCE = 64  # episodes that a solver without a model takes at a time
UNFINISHED = (RUNNING, SERVER)
DEAD = 4  # episodes, in whole batches, that a server fails in a row before it is left alone

Report = Callable[[int, int], None]
"""Called after every turn with the episodes that ended and the turns that were answered, of all so far."""


def cell(task: Task, rules: Rules, solver: Solver, model: str, sample: int, length: int, forced: bool = False) -> Cell:
    """What one sample's result is filed under."""
    protocol = {"name": ASK, **rules.to_dict(), **({FORCED: True} if forced else {})}
    return Cell(task.name, subject_of(model, solver), length, sample, protocol)


def ask(
    task: Task, rules: Rules, solver: Solver, samples: Iterable[int], *, length: int | None = None, model: str = "",
    engine: Callable[[], Engine] | None = None, out: Path | None = None, store: Store | None = None,
    forced: bool = False, report: Report = lambda ended, turns: None,
) -> list[AskedRecord]:  # fmt: skip
    """The records of these samples, in their order. `engine` is called only if there is something to ask.

    They are kept in the folder `out`, or in a store that is open already. Where a server is dead, the samples that
    were no longer asked have no record.
    """
    if solver.needs_model and engine is None:
        raise BadInput(f"solver {solver.name} needs a model: --model SPEC")
    steps = default_length(rules) if length is None else length
    cells = {sample: cell(task, rules, solver, model, sample, steps, forced) for sample in samples}
    with kept_in(out) as opened:
        book = _Book(cells, store or opened, report)
        if book.missing:
            with_model = engine() if solver.needs_model and engine is not None else None
            try:
                _ask_missing(book, solver, with_model, lambda sample: dialogue(task, rules, sample, steps), forced)
            finally:
                if with_model:
                    with_model.close()
        return [book.records[sample] for sample in cells if sample in book.records]


class _Book:
    """The records of the samples so far, in a store if there is one; what is missing, and what an old record began."""

    def __init__(self, cells: dict[int, Cell], store: Store | None, report: Report) -> None:
        self.cells, self.store, self.report, self.turns = cells, store, report, 0
        there = {sample: store.record(cell) for sample, cell in cells.items()} if store else {}
        self.earlier = {sample: record for sample, record in there.items() if isinstance(record, AskedRecord)}
        self.records = {sample: record for sample, record in self.earlier.items() if record.status == DONE}
        self.missing = [sample for sample in cells if sample not in self.records]

    def keep(self, sample: int, episode: KeptEpisode, began: float) -> None:
        status, reason = (FAILED, episode.detail or episode.ended) if episode.ended in UNFINISHED else (DONE, "")
        seconds = time.monotonic() - began
        record = AskedRecord(cell=self.cells[sample], status=status, reason=reason, seconds=seconds, episode=episode)
        self.records[sample] = record
        if self.store:
            self.store.write(record)

    def tell(self, turns: int) -> None:
        """Report progress after this many more turns."""
        self.turns += turns
        self.report(len(self.records), self.turns)


def _ask_missing(
    book: _Book, solver: Solver, engine: Engine | None, draw: Callable[[int], Dialogue], forced: bool
) -> None:
    """Batch after batch, until all are asked or the server is dead."""
    width = engine.batch if engine else ALL_AT_ONCE
    in_vain = 0
    for begin in range(0, len(book.missing), width):
        group = [draw(sample) for sample in book.missing[begin : begin + width]]
        if forced:
            _score(group, engine, book)
        else:
            _converse([_taken_up(game, book.earlier.get(game.sample)) for game in group], solver, engine, book)
        failed = all(book.records[game.sample].episode.ended == SERVER for game in group)
        in_vain = in_vain + len(group) if failed else 0
        if in_vain >= DEAD:
            break


def _converse(group: list[Episode], solver: Solver, engine: Engine | None, book: _Book) -> None:
    """Episodes side by side, turn after turn, until all have ended; each is kept as soon as it has."""
    began = time.monotonic()
    running = _keep_ended(group, book, began)
    book.tell(turns=0)
    try:
        while running:
            requests = [request for episode in running if (request := episode.request()) is not None]
            for episode, reply in zip(running, _replies(solver, engine, requests), strict=True):
                episode.receive(reply)
            asked, running = len(running), _keep_ended(running, book, began)
            book.tell(turns=asked)
    except BaseException:
        for episode in running:
            if episode.replies:
                book.keep(episode.dialogue.sample, episode.record(), began)
        raise


def _taken_up(game: Dialogue, before: AskedRecord | None) -> Episode:
    """A new episode, or the one that was cut off, with what it has cost already."""
    episode = Episode(game)
    if before is not None:
        episode.replay(before.episode.replies, before.episode.outcomes)
        episode.tokens += Tokens(**before.episode.tokens)
    return episode


def _keep_ended(episodes: list[Episode], book: _Book, began: float) -> list[Episode]:
    """Keep the episodes that have ended; give the others."""
    running = []
    for episode in episodes:
        if episode.request() is None:
            book.keep(episode.dialogue.sample, episode.record(), began)
        else:
            running.append(episode)
    return running


def _replies(solver: Solver, engine: Engine | None, requests: Sequence[Request]) -> list[Reply]:
    if engine is None:
        return [Reply(solver.reply(solver.prepare(request))) for request in requests]
    return engine.replies([solver.prepare(request) for request in requests])


def _score(group: list[Dialogue], engine: Engine | None, book: _Book) -> None:
    """Every dialogue in one teacher-forced pass."""
    if engine is None or not engine.name.startswith("hf:"):
        raise BadInput("teacher-forced scoring reads the logits of a local model: --model hf:PATH_OR_NAME")
    from statetrack.asking.engines.forced import score
    from statetrack.asking.engines.hf import HFEngine

    assert isinstance(engine, HFEngine)
    for game in group:
        began = time.monotonic()
        scored = score(engine, game)
        book.keep(game.sample, scored, began)
        book.tell(turns=len(scored.outcomes))
