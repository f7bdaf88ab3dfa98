"""The record of a cell: what every record says, and what training, evaluating and asking add. One reader, one writer.

    {"kind": "training", "format": 2, "cell": {...}, "version": "0.4.0", "status": "done", "seconds": 3.1,
     "training": {...}, "evaluations": [{"kind": "rows", "length": 64, ...}, {"kind": "stream", ...}]}

A file of 0.1.0 has no kind and no format; it is read as format 0 (`results/format_0.py`) and written as this one.
Format 1, of 0.2 and 0.3, has no curves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from statetrack.errors import BadInput
from statetrack.formatting import fixed, plural
from statetrack.results import schema
from statetrack.results.cell import EVALUATE, WEIGHTS, Cell
from statetrack.results.curve import Curve
from statetrack.results.evaluations import Evaluation, OnRows
from statetrack.results.networks import HasEvaluations
from statetrack.results.schema import BadRecord
from statetrack.version import __version__

FORMAT = 2
DONE, DIVERGED, FAILED, SKIPPED = "done", "diverged", "failed", "skipped"
MOST_TOKENS = 10**15  # of an episode: more than all servers of the world give in a day
FINISHED = (DONE, DIVERGED)
STATUSES = (DONE, DIVERGED, FAILED, SKIPPED)


@dataclass(frozen=True, kw_only=True, repr=False)
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

    @property
    def headline(self) -> str:
        """What came of it, in a few words."""
        return self.reason

    def __repr__(self) -> str:
        """One line: a record holds hundreds of numbers, and `flat()` has them all."""
        return f"<{type(self).__name__} {self.cell}: {', '.join(filter(None, [self.status, self.headline]))}>"


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
    processor: str = ""  # the name of the CPU
    peak_memory: int | None = None  # bytes, of all replicas together, in training and tests
    peak_memory_of: str = ""  # what was measured: `training/memory.py` says how
    trained_on_words: tuple[tuple[int, ...], ...] = ()  # that broke the network while it was trained with hard rows

    @property
    def state_said(self) -> str:
        if not self.state_size:
            return "it shows no state of constant size"
        return f"state of {plural(self.state_size, 'number')}"

    @property
    def fingerprint(self) -> list[float | None]:
        """Numbers that tell the weights of one training of a cell from those of another."""
        return [self.learning_rate, self.steps, self.final_train_loss, self.validation_accuracy]


@dataclass(frozen=True, kw_only=True, repr=False)
class TrainingRecord(HasEvaluations, Record):
    """A network that was trained: the training, written once, and what was evaluated since."""

    kind: ClassVar[str] = "training"
    training: Training
    evaluations: tuple[Evaluation, ...]
    evaluation_seconds: float | None = None

    def __getitem__(self, name: str) -> Any:
        """A number by the name that it had in 0.1.0."""
        return self.flat()[name]

    @property
    def at_length(self) -> OnRows:
        """At the length trained on."""
        return self.rows[self.cell.length]

    @property
    def beyond(self) -> dict[int, OnRows]:
        return {length: each for length, each in self.rows.items() if length != self.cell.length}

    @property
    def solved(self) -> bool:
        """At the length trained on: the one definition, for tables, reports and verdicts."""
        return self.at_length.solved

    @property
    def headline(self) -> str:
        here = self.at_length
        told = [f"{name} {fixed(value, 4)}" for name, value in (("accuracy", here.accuracy), ("floor", here.floor))
                if value is not None]  # fmt: skip
        return ", ".join([*told, "solved" if self.solved else "not solved"])

    @property
    def above_floor(self) -> bool:
        """Whether the whole interval of the accuracy lies above the floor, at the length trained on."""
        here = self.at_length
        return here.interval is not None and here.floor is not None and here.interval[0] > here.floor

    def may_be_solved(self, length: int) -> bool:
        """A network that has not solved the length that it was trained on has solved nothing beyond it."""
        return self.solved or length <= self.cell.length


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Weights that were brought here: what they are. How they came about is not known."""

    sha256: str  # of the tensors by their names, whatever file they came in
    parameters: int
    state_size: int | None = None
    file: str = ""  # its name; empty where a module was handed over
    trained_as: str = ""  # the cell that the file itself names, if it does
    device: str = ""  # that they were evaluated on
    torch: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class EvaluatedRecord(HasEvaluations, Record):
    """A network that was evaluated and not trained here. Its cell's length is the one that it was trained on, as far as
    somebody says so, else 0; its seed is that of the test rows.
    """

    kind: ClassVar[str] = "evaluation"
    weights: Weights
    evaluations: tuple[Evaluation, ...]
    evaluation_seconds: float | None = None

    @property
    def headline(self) -> str:
        tested = list(self.rows)
        return f"weights {self.weights.sha256[:8]}" + (f", tested at {tested[0]:,} to {tested[-1]:,}" if tested else "")


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
    system: str = ""  # what was said first
    prompts: list[str] | None = None  # what was new before each reply, one message a line
    shown: str = ""  # the message with the state before the first reply; the later ones are made alike
    prompt_sha256: str = ""  # of the words around the inputs: the same for all samples that were asked alike
    budget: int | None = None  # tokens that a reply could have; None for no bound, or where none are counted
    effort: str = ""  # of reasoning, as the model was told
    reasoning_budget: int | None = None  # tokens for reasoning, as the model was told
    reasoned: str = ""  # for each reply 1 where it came with reasoning, else 0; empty where none did
    truncated: int = 0  # replies that ended where their room did
    failed_calls: int = 0  # requests that brought nothing that could be used

    def problem(self) -> str | None:
        """What its numbers cannot be, beyond their types."""
        counts = self.tokens | {"truncated": self.truncated, "failed_calls": self.failed_calls}
        wrong = next((name for name, count in counts.items() if not 0 <= count <= MOST_TOKENS), None)
        return f"{counts[wrong]} is no number of tokens or calls ({wrong})" if wrong else None


@dataclass(frozen=True, kw_only=True, repr=False)
class AskedRecord(Record):
    """A language model, or a baseline, that was asked one sample. What a server or a person cut off is not finished: it
    is taken up where it was.
    """

    kind: ClassVar[str] = "asking"
    episode: EpisodeRecord

    @property
    def headline(self) -> str:
        return f"{self.episode.max_length} right before the first error, ended: {self.episode.ended}"


KINDS: dict[str, type[Record]] = {kind.kind: kind for kind in (Record, TrainingRecord, EvaluatedRecord, AskedRecord)}


def unite(there: Record, comes: Record) -> Record:
    """Of two records of one cell the better: a result before a reason why it was skipped, that before a failure; among
    equals the one that is there, with the evaluations of both. Without a result, the replies of the longer dialogue
    stay, whatever became of the cell since.
    """
    if is_better(comes, there):
        there, comes = comes, there
    if isinstance(there, HasEvaluations) and isinstance(comes, HasEvaluations):
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
    """Whether both are of the same weights: of trainings as far as their numbers tell."""
    if isinstance(one, EvaluatedRecord) and isinstance(other, EvaluatedRecord):
        return one.weights.sha256 == other.weights.sha256
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
        if record.cell.kind == EVALUATE:
            raise BadRecord("weights that were brought here have no training")
        if not any(each.length == record.cell.length for each in record.of(OnRows)):
            raise BadRecord("it was not evaluated at the length trained on")
        if (curve := record.training.curve) is not None and (why := curve.problem()) is not None:
            raise BadRecord(why)
    if isinstance(record, EvaluatedRecord):
        if record.cell.kind != EVALUATE or record.cell.protocol.get(WEIGHTS) != record.weights.sha256:
            raise BadRecord("its cell names other weights")
        if not record.evaluations:
            raise BadRecord("a result without a number")
    for each in record.evaluations if isinstance(record, HasEvaluations) else ():
        if (why := each.problem()) is not None:
            raise BadRecord(why)
    return record
