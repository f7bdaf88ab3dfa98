"""The record of a cell: what every record says, and what training and asking add. One reader, one writer.

    {"kind": "training", "format": 2, "cell": {...}, "version": "0.3.0", "status": "done", "seconds": 3.1,
     "training": {...}, "evaluations": [{"kind": "rows", "length": 64, ...}, {"kind": "stream", ...}]}

A file of 0.1.0 has no kind and no format; it is read as format 0 (`results/format_0.py`) and written as this one.
Format 1, of 0.2 and 0.3, has no curves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar

from statetrack.errors import BadInput
from statetrack.intervals import wilson
from statetrack.results import schema
from statetrack.results.cell import Cell
from statetrack.results.curve import Curve
from statetrack.results.evaluations import (
    AllStrings,
    BreakingWord,
    Evaluation,
    OffData,
    OnRows,
    OnStream,
    OnWords,
    is_solved,
)
from statetrack.results.schema import BadRecord
from statetrack.version import __version__

FORMAT = 2
DONE, DIVERGED, FAILED, SKIPPED = "done", "diverged", "failed", "skipped"
MOST_TOKENS = 10**15  # of an episode: more than all servers of the world give in a day
FINISHED = (DONE, DIVERGED)
STATUSES = (DONE, DIVERGED, FAILED, SKIPPED)

Floor = Callable[[int], float | None]  # of the last positions of rows of a length
Kind = TypeVar("Kind", bound=Evaluation)


@dataclass(frozen=True, kw_only=True)
class Record:
    """What every record has. `reason` says in one line why a cell has failed or was skipped: it has no result yet."""

    kind: ClassVar[str] = "no result"
    cell: Cell
    version: str = __version__
    status: str = DONE
    reason: str = ""
    seconds: float | None = None

    @property
    def finished(self) -> bool:
        return self.status in FINISHED

    def lacks(self, streams: Iterable[int]) -> list[int]:
        """Those of the streams that are asked for which it does not hold."""
        return []

    def lacks_words(self, budget: int | None) -> bool:
        """Whether hard words are asked for, of a number of tokens, and fewer or none were tried."""
        return False

    def flat(self) -> dict[str, Any]:
        """Its numbers by the names that they had in 0.1.0, for tables and for programs that know those."""
        from statetrack.results.format_0 import flat

        return flat(self)


def no_result(cell: Cell, status: str, reason: str, seconds: float | None = None) -> Record:
    """The record of a cell that failed or was skipped."""
    return Record(cell=cell, status=status, reason=" ".join(reason.split()), seconds=seconds)


@dataclass(frozen=True)
class RateTried:
    """A learning rate, and what it came to on validation data."""

    rate: float
    validation_accuracy: float | None = None
    diverged_at: int | None = None


@dataclass(frozen=True, kw_only=True)
class Training:
    """How the weights came about, and what they took."""

    learning_rate: float
    steps: int
    parameters: int
    diverged_at: int | None = None
    final_train_loss: float | None = None
    epochs_to_converge: int | None = None
    validation_accuracy: float | None = None
    state_size: int | None = None
    tokens_per_second: float | None = None
    train_seconds: float | None = None
    replicas: int = 1
    device: str = ""
    torch: str = ""
    rates_tried: tuple[RateTried, ...] = ()
    curve: Curve | None = None

    @property
    def fingerprint(self) -> list[float | None]:
        """Numbers that tell the weights of one training of a cell from those of another."""
        return [self.learning_rate, self.steps, self.final_train_loss, self.validation_accuracy]


@dataclass(frozen=True)
class Tested:
    """How a trained network did at one length: on rows (`of` "rows"), or at that mark of a stream (`of` "stream").

    `accuracy` is over all positions of rows, `end` over the last 32; along a stream both are over the last positions
    before the mark. `solved` is what `OnRows.solved` says, and along a stream `is_solved` of the last positions; a
    network that has not solved the length that it was trained on has solved nothing beyond it.
    """

    length: int
    of: str
    rows: int
    n: int
    accuracy: float
    interval: tuple[float, float]
    end: float | None
    end_interval: tuple[float, float] | None
    floor: float | None
    end_floor: float | None
    solved: bool


@dataclass(frozen=True, kw_only=True)
class TrainingRecord(Record):
    """A network that was trained: the training, written once, and what was evaluated since."""

    kind: ClassVar[str] = "training"
    training: Training
    evaluations: tuple[Evaluation, ...]
    evaluation_seconds: float | None = None

    def __getitem__(self, name: str) -> Any:
        """A number by the name that it had in 0.1.0."""
        return self.flat()[name]

    def of(self, kind: type[Kind]) -> list[Kind]:
        """Of its own weights."""
        return [each for each in self.evaluations if isinstance(each, kind) and not each.other_weights]

    @cached_property
    def rows(self) -> dict[int, OnRows]:
        """By length, in their order; of several at one length the first that was measured."""
        first: dict[int, OnRows] = {}
        for each in sorted(self.of(OnRows), key=lambda each: bool(each.reason)):
            first.setdefault(each.length, each)
        return dict(sorted(first.items()))

    @property
    def at_length(self) -> OnRows:
        """At the length trained on."""
        return self.rows[self.cell.length]

    @property
    def beyond(self) -> dict[int, OnRows]:
        return {length: each for length, each in self.rows.items() if length != self.cell.length}

    @property
    def streams(self) -> list[OnStream]:
        return self.of(OnStream)

    @property
    def off_data(self) -> OffData | None:
        return next(iter(self.of(OffData)), None)

    @property
    def all_strings(self) -> AllStrings | None:
        return next(iter(self.of(AllStrings)), None)

    @property
    def words(self) -> OnWords | None:
        """On hard words: of several such evaluations the one with the most tokens; None where none was tried."""
        tried = [each for each in self.of(OnWords) if not each.reason]
        return max(tried, key=lambda each: each.tokens, default=None)

    @property
    def broken(self) -> BreakingWord | None:
        """The shortest word after which it is known to answer wrong."""
        known = [each.breaking for each in self.of(OnWords) if each.breaking]
        return min(known, key=lambda word: word.tokens, default=None)

    @property
    def broken_by(self) -> str:
        """That word as a text, - where none was found, nothing where none was looked for."""
        return self.broken.word if self.broken else "-" if self.words else ""

    @property
    def solved(self) -> bool:
        """At the length trained on: the one definition, for tables, reports and verdicts."""
        return self.at_length.solved

    @property
    def above_floor(self) -> bool:
        """Whether the whole interval of the accuracy lies above the floor, at the length trained on."""
        here = self.at_length
        return here.interval is not None and here.floor is not None and here.interval[0] > here.floor

    @property
    def falls_silent(self) -> bool:
        """Whether some position that was tested was left unanswered."""
        along = [share for stream in self.streams for share in (stream.unanswered or {}).values()]
        return any([*(each.unanswered for each in self.rows.values()), *along])

    def lacks(self, streams: Iterable[int]) -> list[int]:
        return [steps for steps in streams if not any(each.covers(steps) for each in self.streams)]

    def lacks_words(self, budget: int | None) -> bool:
        return bool(budget) and not any(each.budget >= (budget or 0) for each in self.of(OnWords))

    def tested(self, end_floor: Floor = lambda length: None) -> list[Tested]:
        """How far it was right: at the length trained on, beyond it, and along streams where no rows were tested.

        `end_floor` is asked for lengths of which the record itself does not know it.
        """
        learned = self.solved
        made = [_on_rows(each, learned or each.length <= self.cell.length, end_floor) for each in self.rows.values()
                if each.accuracy is not None]  # fmt: skip
        lengths = {each.length for each in made}
        for stream in self.streams:
            for mark, accuracy in (stream.accuracy or {}).items():
                if accuracy is not None and int(mark) not in lengths:
                    lengths.add(int(mark))
                    made.append(_on_stream(stream, int(mark), accuracy, learned, end_floor(int(mark))))
        return made

    def with_evaluations(self, more: Iterable[Evaluation], other_weights: bool = False) -> TrainingRecord:
        """The same with those of these evaluations that it lacks, or has from other weights or without numbers only."""
        held = {each.settings: each for each in self.evaluations}
        for each in more:
            comes = replace(each, other_weights=True) if other_weights else each
            there = held.get(each.settings)
            if there is None or (bool(comes.reason), comes.other_weights) < (bool(there.reason), there.other_weights):
                held[each.settings] = comes
        return replace(self, evaluations=tuple(held.values()))


def _on_rows(each: OnRows, can_be_solved: bool, end_floor: Floor) -> Tested:
    assert each.accuracy is not None
    known = each.end_floor
    return Tested(
        each.length, "rows", each.rows, each.n or each.rows, each.accuracy, _pair(each.interval) or (0.0, 1.0),
        each.last_32_accuracy, _pair(each.last_32_interval), each.floor,
        known if known is not None else end_floor(each.length),
        can_be_solved and each.solved,
    )  # fmt: skip


def _on_stream(stream: OnStream, mark: int, accuracy: float, learned: bool, end_floor: float | None) -> Tested:
    """Rows are independent, positions are not: the interval counts rows."""
    interval = wilson(accuracy * stream.rows, stream.rows)
    return Tested(
        mark, "stream", stream.rows, stream.rows, accuracy, interval, accuracy, interval, None, end_floor,
        learned and is_solved(accuracy, end_floor),
    )  # fmt: skip


def _pair(interval: list[float] | None) -> tuple[float, float] | None:
    return (interval[0], interval[1]) if interval else None


@dataclass(frozen=True, kw_only=True)
class EpisodeRecord:
    """One dialogue: how it ended, and a letter for every turn asked: + right, x wrong, f format, r refusal.

    `changes` has for each of them 1 where the answer differs from the one due before it, 0 where not, - for the first.
    """

    ended: str
    detail: str = ""
    max_length: int  # turns answered rightly before the first that was not
    asked: int  # turns that ask, in the whole dialogue
    outcomes: str
    positions: list[int]
    changes: str
    replies: list[str]
    tokens: dict[str, int]
    logprobs: list[float] | None = None  # of each reply, where it was read in one teacher-forced pass

    def problem(self) -> str | None:
        """What its numbers cannot be, beyond their types."""
        wrong = next((name for name, count in self.tokens.items() if not 0 <= count <= MOST_TOKENS), None)
        return f"{self.tokens[wrong]} is no number of tokens ({wrong})" if wrong else None


@dataclass(frozen=True, kw_only=True)
class AskedRecord(Record):
    """A language model, or a baseline, that was asked one sample. What a server or a person cut off is not finished: it
    is taken up where it was.
    """

    kind: ClassVar[str] = "asking"
    episode: EpisodeRecord


KINDS: dict[str, type[Record]] = {kind.kind: kind for kind in (Record, TrainingRecord, AskedRecord)}


def unite(there: Record, comes: Record) -> Record:
    """Of two records of one cell the better: a result before a reason why it was skipped, that before a failure; among
    equals the one that is there, with the evaluations of both. Without a result, the replies of the longer dialogue
    stay, whatever became of the cell since.
    """
    if is_better(comes, there):
        there, comes = comes, there
    if isinstance(there, TrainingRecord) and isinstance(comes, TrainingRecord):
        return there.with_evaluations(comes.evaluations, not same_weights(there, comes))
    return there if there.finished else with_replies(there, comes)


def with_replies(told: Record, other: Record) -> Record:
    """What is told of a cell that has no result, with the replies that were paid for: those of whoever has more."""
    if isinstance(other, AskedRecord) and _replies(other) > _replies(told):
        return replace(other, status=told.status, reason=told.reason, version=told.version)
    return told


def _replies(record: Record) -> int:
    return len(record.episode.replies) if isinstance(record, AskedRecord) else -1


def same_weights(one: object, other: object) -> bool:
    """Whether both are trainings, and ended in the same weights, as far as their numbers tell."""
    if not (isinstance(one, TrainingRecord) and isinstance(other, TrainingRecord)):
        return False
    return one.training.fingerprint == other.training.fingerprint


def is_better(one: Record, other: Record) -> bool:
    rank = {FAILED: 1, SKIPPED: 2, DONE: 3, DIVERGED: 3}
    return rank[one.status] > rank[other.status]


def write(record: Record) -> dict[str, Any]:
    """The record as data for its file; one that the reader would refuse is not written."""
    held = {"kind": record.kind, "format": FORMAT, "version": record.version, "status": record.status}
    held |= schema.plain(record)
    read(held)
    return held


def read(data: Any) -> Record:
    """The record in the data of a file, of this format or of 0.1.0; raises BadRecord."""
    if not isinstance(data, dict) or data.get("status", DONE) not in STATUSES:
        raise BadRecord("not a record of statetrack")
    if "format" not in data:
        from statetrack.results import format_0

        return format_0.read(data)
    if type(data["format"]) is int and data["format"] > FORMAT:
        raise BadInput(f"a record of format {data['format']} needs a newer version of statetrack than {__version__}")
    kind = KINDS.get(str(data.get("kind")))
    if kind is None or data["format"] not in range(1, FORMAT + 1):
        raise BadRecord(f"{data.get('kind')!r} is no kind of record")
    return checked(schema.read(kind, data))


def checked(record: Record) -> Record:
    """What types alone do not tell."""
    if type(record) is Record and record.finished:
        raise BadRecord("a result without a number")
    if isinstance(record, AskedRecord) and (why := record.episode.problem()) is not None:
        raise BadRecord(why)
    if isinstance(record, TrainingRecord):
        if not any(each.length == record.cell.length for each in record.of(OnRows)):
            raise BadRecord("it was not evaluated at the length trained on")
        if (curve := record.training.curve) is not None and (why := curve.problem()) is not None:
            raise BadRecord(why)
        for each in record.evaluations:
            if (why := each.problem()) is not None:
                raise BadRecord(why)
    return record
