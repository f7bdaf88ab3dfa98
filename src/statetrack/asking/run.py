"""From a task and a model to results: samples asked in batches, each kept as a cell of its own.

What is in the folder already is not asked again. An episode that a server or a person cut off, or whose process was
killed, is taken up where it was: each reply is on the disk before the next request, and is given again at no cost. Two
processes on one folder share the samples by claims. A server that fails all of a batch is not asked further.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from statetrack.asking import engines, prompts
from statetrack.asking.dialogue import Dialogue, dialogue, length_of
from statetrack.asking.engines import Engine, unsuited
from statetrack.asking.episode import FAULTS, RUNNING, TIME, Episode, Reply
from statetrack.asking.journal import Journal
from statetrack.asking.rules import FORCED, Rules
from statetrack.asking.solvers import Solver, subject_of
from statetrack.asking.terms import terms
from statetrack.errors import BadInput
from statetrack.files import check_writable
from statetrack.formatting import plural, visible
from statetrack.results import claims, replies
from statetrack.results.cell import ASK, Cell
from statetrack.results.records import DONE, FAILED, AskedRecord
from statetrack.results.records import EpisodeRecord as KeptEpisode
from statetrack.results.store import Store, kept_in
from statetrack.tasks import Task, check_kept

ALL_AT_ONCE = 64  # episodes that a solver without a model takes at a time
UNFINISHED = (RUNNING, *FAULTS)
DEAD = 4  # episodes, in whole batches, that a server fails in a row before it is left alone

LOOK = 1.0  # seconds between looks at what others hold
QUIET = 600.0  # seconds without a trace after which a holder is not waited for

Report = Callable[[int, int], None]
"""Called after every turn with the episodes that ended and the turns that were answered, of all so far."""


def cell(task: Task, rules: Rules, solver: Solver, model: str, sample: int, length: int, forced: bool = False) -> Cell:
    """What one sample's result is filed under."""
    protocol = {"name": ASK, **rules.to_dict(), **({FORCED: True} if forced else {})}
    return Cell(task.name, subject_of(model, solver), length, sample, protocol)


def ask(
    task: Task, rules: Rules, solver: Solver, samples: Iterable[int], *, length: int | None = None, model: str = "",
    engine: Callable[[], Engine] | None = None, out: Path | None = None, store: Store | None = None,
    forced: bool = False, report: Report = lambda ended, turns: None, seconds: float | None = None,
    warn: Callable[[str], None] = lambda line: None,
) -> list[AskedRecord]:  # fmt: skip
    """The records of these samples, in their order. `engine` is called only if there is something to ask.

    They are kept in the folder `out`, or in a store that is open already, whose cells are then claimed by the caller.
    Where a server is dead, the samples that were no longer asked have no record, nor do those that another
    process holds and does not finish. `seconds` is the most that an episode may take in one run.
    """
    if solver.needs_model and engine is None:
        raise BadInput(f"solver {solver.name} needs a model: --model SPEC")
    prompts.check(task, rules)
    if seconds is not None and not seconds > 0:
        raise BadInput(f"an episode of {seconds} seconds should have more than 0")
    if out is not None or store is not None:
        check_kept(task)
    steps = length_of(rules, length)
    cells = {sample: cell(task, rules, solver, model, sample, steps, forced) for sample in samples}
    with kept_in(out) as opened:
        book = _Book(cells, store or opened, report)
        if book.missing:
            if book.store:
                check_writable(book.store.folder)
            with_model = engine() if solver.needs_model and engine is not None else None
            if with_model and (line := unsuited(with_model, rules, forced)):
                warn(line)
            draw = functools.partial(dialogue, task, rules, length=steps)
            run = _Run(book, solver, with_model, draw, forced, seconds, warn, model)
            try:
                run.all(claiming=opened is not None and solver.costs)
            finally:
                if with_model:
                    with_model.close()
        return [book.records[sample] for sample in cells if sample in book.records]


class _Book:
    """The records of the samples so far, in a store if there is one; what is missing, and what an old record began."""

    def __init__(self, cells: dict[int, Cell], store: Store | None, report: Report) -> None:
        self.cells, self.store, self.report, self.turns = cells, store, report, 0
        self.earlier: dict[int, AskedRecord] = {}
        self.journals: dict[int, Journal] = {}
        self.records: dict[int, AskedRecord] = {}
        for sample in cells:
            self.look(sample)
        self.missing = [sample for sample in cells if sample not in self.records]

    def look(self, sample: int) -> bool:
        """Whether a sample has its result in the store by now. One that ended by a fault has none."""
        record = self.store.record(self.cells[sample]) if self.store else None
        if isinstance(record, AskedRecord):
            self.earlier[sample] = record
            if record.status == DONE and record.episode.ended not in UNFINISHED:
                self.records[sample] = record
        return sample in self.records

    def journal(self, sample: int) -> Journal | None:
        if self.store and sample not in self.journals:
            self.journals[sample] = Journal(self.store, self.cells[sample])
        return self.journals.get(sample)

    def keep(self, sample: int, episode: KeptEpisode, began: float) -> None:
        status, reason = (FAILED, episode.detail or episode.ended) if episode.ended in UNFINISHED else (DONE, "")
        seconds = time.monotonic() - began
        record = AskedRecord(cell=self.cells[sample], status=status, reason=reason, seconds=seconds, episode=episode)
        before = self.earlier.get(sample)
        if status == FAILED and before and len(before.episode.replies) > len(episode.replies):
            record = replace(before, status=FAILED, reason=reason)  # a failure takes nothing that was paid for
        self.records[sample] = record
        if self.store:
            self.store.write(record)

    def tell(self, turns: int) -> None:
        """Report progress after this many more turns."""
        self.turns += turns
        self.report(len(self.records), self.turns)


@dataclass
class _Run:
    """The samples of a book asked in batches, each batch claimed while it is asked where others may be at work."""

    book: _Book
    solver: Solver
    engine: Engine | None
    draw: Callable[[int], Dialogue]
    forced: bool
    seconds: float | None
    warn: Callable[[str], None]
    model: str = ""
    in_vain: int = 0  # episodes in a row, in whole batches, that a server failed

    def all(self, claiming: bool) -> None:
        """Batch after batch, until all are asked, the server is dead, or what is left is in hands that do not move."""
        left = self.book.missing
        watch = _Watch(self.book, self.warn)
        while left and self.in_vain < DEAD:
            busy = self._asked(left) if not claiming else self._claimed(left)
            if len(busy) == len(left) and not watch.moves(busy):
                return
            left = busy

    def _claimed(self, samples: list[int]) -> list[int]:
        """Ask those of the samples that nobody else has; gives the others."""
        assert self.book.store is not None
        busy: list[int] = []
        for group in self._batches(samples):
            with ExitStack() as held:
                free = []
                for sample in group:
                    claim = claims.take(self.book.store, self.book.cells[sample])
                    if claim is None:
                        busy.append(sample)
                        continue
                    held.enter_context(claim)
                    if not self.book.look(sample):  # else another finished it before we had the claim
                        free.append(sample)
                self._ask(free)
            if self.in_vain >= DEAD:
                break
        return busy

    def _asked(self, samples: list[int]) -> list[int]:
        for group in self._batches(samples):
            self._ask(group)
            if self.in_vain >= DEAD:
                break
        return []

    def _batches(self, samples: list[int]) -> Iterator[list[int]]:
        width = self.engine.batch if self.engine else ALL_AT_ONCE
        yield from (samples[begin : begin + width] for begin in range(0, len(samples), width))

    def _ask(self, samples: list[int]) -> None:
        if not samples:
            return
        group = [self.draw(sample) for sample in samples]
        if self.forced:
            _score(group, self.engine, self.book, self.solver)
        else:
            self._converse([self._taken_up(game) for game in group])
        failed = all(self.book.records[sample].episode.ended in FAULTS for sample in samples)
        self.in_vain = self.in_vain + len(samples) if failed else 0

    def _taken_up(self, game: Dialogue) -> Episode:
        """A new episode, or the one that was cut off, with what it has cost already."""
        episode = Episode(game, terms(game, self.solver, self.model))
        before = self.book.earlier.get(game.sample)
        if before is not None:
            episode.replay(before.episode)
        journal = self.book.journal(game.sample) if self.solver.costs else None
        if journal and (damaged := journal.mended()):
            self.warn(f"{journal.path.name} is damaged, or of another cell; what it holds is kept as {damaged.name}")
        for reply in journal.replies(len(episode.replies)) if journal else ():
            if episode.request() is None:
                break
            episode.receive(reply)
        return episode

    def _converse(self, group: list[Episode]) -> None:
        """Episodes side by side, turn after turn, until all have ended; each is kept as soon as it has."""
        began = time.monotonic()
        running = self._keep_ended(group, began)
        self.book.tell(turns=0)
        try:
            while running:
                left = None if self.seconds is None else self.seconds - (time.monotonic() - began)
                if left is not None and left <= 0:
                    for episode in running:
                        episode.interrupt(TIME, f"not over within {self.seconds:g} seconds")
                else:
                    for episode, reply in zip(running, self._replies(running, left), strict=True):
                        episode.receive(reply)
                asked, running = len(running), self._keep_ended(running, began)
                self.book.tell(turns=asked)
        except BaseException:
            for episode in running:
                if episode.replies:
                    self._keep(episode, began)
            raise

    def _keep_ended(self, episodes: list[Episode], began: float) -> list[Episode]:
        """Keep the episodes that have ended; give the others."""
        running = []
        for episode in episodes:
            if episode.request() is None:
                self._keep(episode, began)
            else:
                running.append(episode)
        return running

    def _keep(self, episode: Episode, began: float) -> None:
        sample = episode.dialogue.sample
        self.book.keep(sample, episode.record(), began)
        journal = self.book.journal(sample) if self.solver.costs else None
        if journal and not journal.replies(len(self.book.records[sample].episode.replies)):  # the record holds them all
            journal.clear()

    def _replies(self, episodes: list[Episode], seconds: float | None) -> list[Reply]:
        """A reply for each episode; what costs is in its journal before anything else is asked."""
        requests = [request for episode in episodes if (request := episode.request()) is not None]
        journals = [self.book.journal(request.sample) if self.solver.costs else None for request in requests]

        def arrived(place: int, reply: Reply) -> None:
            if (journal := journals[place]) is not None and episodes[place].counts(reply):
                journal.append(len(episodes[place].replies), reply)

        prepared = [self.solver.prepare(request) for request in requests]
        if self.engine is not None:
            return engines.replies(self.engine, prepared, arrived, seconds)
        given = []
        for place, request in enumerate(prepared):
            given.append(Reply(self.solver.reply(request)))
            arrived(place, given[-1])
        return given


class _Watch:
    """Looks on while other processes have samples that we want too, and says who they are."""

    def __init__(self, book: _Book, warn: Callable[[str], None]) -> None:
        self.book, self.warn = book, warn
        self.traces: list[tuple[str, int]] = []
        self.since = time.monotonic()
        self.told = False

    def moves(self, samples: list[int]) -> bool:
        """Wait a little; False once nothing of these samples has changed for long."""
        holders = ", ".join(sorted({_holder(self.book, sample) for sample in samples}))
        if not self.told:
            self.told = True
            self.warn(f"{plural(len(samples), 'sample')} held by {holders}: waiting for what comes of it")
        time.sleep(LOOK)
        traces = [trace for sample in samples for trace in _traces(self.book, sample)]
        if traces != self.traces:
            self.traces, self.since = traces, time.monotonic()
        if time.monotonic() - self.since < QUIET:
            return True
        self.warn(f"{holders} has not moved for {QUIET:g} seconds; {plural(len(samples), 'sample')} left to it")
        return False


def _holder(book: _Book, sample: int) -> str:
    """Who has claimed a sample, as its lock says it."""
    assert book.store is not None
    lock = book.store.hidden / "claims" / f"{book.cells[sample].key}.lock"
    try:
        pid, _, host = lock.read_text(errors="replace")[:300].partition(" ")
    except OSError:  # released meanwhile
        return "another process"
    return f"process {visible(pid)} on {visible(host)}" if host else "another process"


def _traces(book: _Book, sample: int) -> list[tuple[str, int]]:
    """The files that a holder of a sample writes to, with the moment of their last change."""
    assert book.store is not None
    paths = [book.store.path(book.cells[sample], ending) for ending in ("json", replies.ENDING)]
    return [(path.name, path.stat().st_mtime_ns) for path in paths if path.exists()]


def _score(group: list[Dialogue], engine: Engine | None, book: _Book, who: Solver) -> None:
    """Every dialogue in one teacher-forced pass."""
    if engine is None or not engine.name.startswith("hf:"):
        raise BadInput("teacher-forced scoring reads the logits of a local model: --model hf:PATH_OR_NAME")
    from statetrack.asking.engines.forced import score
    from statetrack.asking.engines.hf import HFEngine

    assert isinstance(engine, HFEngine)
    for game in group:
        began = time.monotonic()
        scored = replace(score(engine, game), **terms(game, who, engine.name))
        book.keep(game.sample, scored, began)
        book.tell(turns=len(scored.outcomes))
