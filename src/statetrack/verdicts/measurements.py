"""Results as the verdict reads them, and how the record of a training becomes such results."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeVar

from statetrack.errors import BadInput
from statetrack.formatting import fixed
from statetrack.results import EvaluatedRecord, Record, TrainingRecord, records
from statetrack.results.cell import STREAM
from statetrack.results.evaluations import END, SOLVED, OnRows, is_solved
from statetrack.results.networks import HasEvaluations, Tested
from statetrack.results.records import DIVERGED
from statetrack.results.schema import BadRecord
from statetrack.tasks import trusted_task
from statetrack.theory.floors import strategies
from statetrack.verdicts.documents import DESIGN_TRAINING

SURE_LOW = 0.98
"""A run is surely solved when its interval lies above this: 256 rows without an error have the Wilson bound .985."""
SEEDS = 3
FAR = 8
WITNESS_STEPS = 10_000
CHEAP = 2048  # steps up to which the floor of the last positions is worked out

Item = TypeVar("Item")
Key = TypeVar("Key")


@dataclass(frozen=True)
class Measurement:
    """One measured accuracy with its 95 % interval [low, high], its n, and the floor of its task at this length.

    `trained` is the length that the network was trained on; if it is not given, the seed's shortest length stands in.
    `witness` marks weights that were set by hand. `metric` is accuracy, or full_sequence_accuracy: the share of rows
    without an error. `protocol` tells one way of training from another; `design` is that of the design document. From
    `excuse` on: of the network, the same in all of its measurements.
    """

    model: str
    task: str
    length: int
    seed: int
    accuracy: float
    n: int
    low: float
    high: float
    floor: float
    solved: bool
    witness: bool = False
    trained: int | None = None
    metric: str = "accuracy"
    protocol: str = ""
    end_floor: float = 0.0  # over the last positions, by which the length counts as solved
    end_high: float | None = None  # the upper end of the interval over those positions
    rows: int = 0
    excuse: str = ""  # why its failure is none of the model: it took no step, or diverged
    stopped: str = ""  # that patience ended its training before the protocol's updates were done
    words: int | None = None  # hard words that the network was tried on; None: not tried
    broken: str = ""  # by this word
    proved: str = ""  # to be right at every length, in float32: what the proof allows for
    elsewhere: str = ""  # rows of another kind, of the length trained on, that it does not solve
    mechanism: str = ""  # of its failure, as a diagnosis names it

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Measurement:
        """From a plain record; what it holds besides is left aside."""
        known = {field.name for field in fields(cls)}
        required = [field.name for field in fields(cls) if field.default is MISSING]
        for name in required:
            if name not in record:
                raise BadInput(f"a result has no {name!r}; it should have {', '.join(required)}")
        result = cls(**{name: value for name, value in record.items() if name in known})
        if not (0 <= result.accuracy <= 1 and 0 <= result.floor <= 1):
            raise BadInput(f"accuracy {result.accuracy} and floor {result.floor} of a result should lie in 0..1")
        if not 0 <= result.low <= result.high <= 1:
            interval = f"[{result.low}, {result.high}]"
            raise BadInput(f"the interval {interval} of a result should lie in 0..1, low before high")
        return result

    @property
    def trained_on(self) -> int:
        return self.trained if self.trained is not None else self.length

    @property
    def surely_solved(self) -> bool:
        """A floor that is nearly 1 makes nearly everybody look good: the interval must lie above it. Where a guess is
        right at the end, being right there says nothing.
        """
        return self.solved and self.low >= SURE_LOW and self.low > self.floor and self.end_floor < SOLVED

    @property
    def surely_not_solved(self) -> bool:
        return not self.solved and self.high < SOLVED

    @property
    def failed(self) -> bool:
        """Surely not solved, by all positions or by those that decide it."""
        lost_at_the_end = self.end_high is not None and self.end_high < SOLVED
        return self.surely_not_solved or (not self.solved and lost_at_the_end)

    @property
    def state(self) -> str:
        return "solved" if self.surely_solved else "not solved" if self.surely_not_solved else "unclear"


def from_record(record: Record | Mapping[str, Any], mechanism: str = "") -> list[Measurement]:
    """What one training measured, length by length: at the length trained on (there whole rows as well), beyond it, and
    along streams; nothing of a cell that was not trained. `mechanism` is what a diagnosis of it names.

    Where the floor of a length is not known, because it is costly to work out, that of the next shorter one stands in;
    along a stream those of the longest rows do.
    """
    held = record if isinstance(record, Record) else _read(record)
    if not isinstance(held, TrainingRecord):
        return []
    cell = held.cell
    shared = {
        "model": cell.subject, "task": cell.task, "seed": cell.seed, "trained": cell.length,
        "protocol": way_of_training(cell.protocol), "excuse": _excuse(held), "stopped": _stopped(held),
        "words": held.words.words if held.words else None, "broken": held.broken.word if held.broken else "",
        "proved": _proved(held),
        "elsewhere": _elsewhere(held), "mechanism": mechanism,
    }  # fmt: skip
    made, floor, end_floor = [], 0.0, 0.0
    for one in tested(held):
        if one.of == OnRows.kind:
            floor = floor if one.floor is None else one.floor
            end_floor = end_floor if one.end_floor is None else one.end_floor
        low, high = one.interval
        made.append(Measurement.read({
            **shared, "length": one.length, "accuracy": one.accuracy, "low": low, "high": high, "n": one.n,
            "floor": floor, "end_floor": end_floor, "solved": one.solved, "rows": one.rows,
            "end_high": _end_high(held, one),
        }))  # fmt: skip
    return [*made, *_whole_rows(held.at_length, shared)]


def _read(record: Mapping[str, Any]) -> Record:
    try:
        return records.read(dict(record))
    except BadRecord as error:
        raise BadInput(f"a training record cannot be read: {error}") from None


def _whole_rows(here: OnRows, shared: dict[str, Any]) -> Iterator[Measurement]:
    """The share of rows without an error, at the length trained on."""
    accuracy = here.full_sequence_accuracy
    if accuracy is not None:
        low, high = here.full_sequence_interval or (0.0, 1.0)
        yield Measurement.read({
            **shared, "length": here.length, "metric": "full_sequence_accuracy", "accuracy": accuracy,
            "low": low, "high": high, "n": here.rows, "rows": here.rows, "floor": 0.0, "solved": is_solved(accuracy),
        })  # fmt: skip


def _end_high(record: TrainingRecord, one: Tested) -> float | None:
    """Over the positions by which a length counts as solved: at the length trained on the last quarter."""
    here = record.at_length
    interval = here.tail_interval if one.length == here.length and here.tail_interval else one.end_interval
    return interval[1] if interval else None


def _excuse(record: TrainingRecord) -> str:
    """Why the failure of a run says nothing of the model; empty where it does."""
    if not record.training.steps:
        return "it took no step"
    at = record.training.diverged_at
    if record.status == DIVERGED or at is not None:
        return "it diverged" if at is None else f"it diverged at step {at}"
    return ""


def _proved(record: TrainingRecord) -> str:
    """By how much each number of the state may be off; nothing without a proof that is at hand and covers float32."""
    found = record.proved
    covers = found is not None and found.epsilon is not None and (found.float32 or 0.0) <= found.epsilon
    return f"epsilon {found.epsilon:.2g}" if found is not None and covers else ""


def _elsewhere(record: TrainingRecord) -> str:
    """The worst kind of rows that training never shows, where it is below 99 %; empty where it solves them all."""
    shares = (record.off_data.accuracy if record.off_data else {}).items()
    known = [(share, kind) for kind, share in shares if share is not None and share < SOLVED]
    return f"{min(known)[1]}: {fixed(min(known)[0])}" if known else ""


def _stopped(record: TrainingRecord) -> str:
    """That a run under a protocol of one stage ended by patience, before its updates were done."""
    settings, steps = record.cell.protocol, record.training.steps
    whole = settings.get("check_every", 0) * settings.get("most_checks", 0)
    early = settings.get("patience") and not settings.get("first_length") and steps < whole
    return f"it stopped after {steps:,} of {whole:,} updates" if early else ""


def way_of_training(protocol: Mapping[str, Any]) -> str:
    """The name of a protocol that holds no more, or that is the design document's; else all that decided the weights.

    >>> way_of_training({"name": "design", "batch": 256}), way_of_training({"name": "design", "batch": 64})
    ('design', '{"batch": 64, "name": "design"}')
    """
    decided = json.loads(json.dumps({key: value for key, value in protocol.items() if key != STREAM}))
    name = str(protocol.get("name", ""))
    if name == "design" and {**DESIGN_TRAINING, **decided} == {**decided, **DESIGN_TRAINING}:
        return name
    return json.dumps(decided, sort_keys=True) if len(decided) > 1 else name


def tested(record: HasEvaluations) -> list[Tested]:
    """How far a network was right, with floors of the last positions that the record itself does not hold."""
    if isinstance(record, TrainingRecord):
        return record.tested(functools.partial(_end_floor, record))
    if isinstance(record, EvaluatedRecord):
        return record.tested(functools.partial(_end_floor_beside, record))
    return record.tested()


def _end_floor_beside(record: EvaluatedRecord, length: int) -> float | None:
    """The same as `_end_floor` for weights that were brought: it is known exactly where that of some rows is."""
    rows = record.rows.values()
    exact = any(each.floor_exact or (each.floor is not None and each.floors is None) for each in rows)
    return end_floor(record.cell.task, min(length, CHEAP)) if exact else None


def _end_floor(record: TrainingRecord, length: int) -> float | None:
    """What the best answer for each position scores over the last 32, where it is known exactly.

    Far out it is costly to work out and hardly changes: there the longest that is cheap, or the one trained on, counts.
    """
    here = record.at_length
    if length > CHEAP:
        length = max(CHEAP, here.length)
    if length == here.length and here.floor_by_position:
        return here.end_floor
    known = record.rows.get(length)
    if not here.floor_exact or length > CHEAP or (known is not None and known.floor is None):
        return None
    return end_floor(record.cell.task, length)


def end_floor(text: str, length: int) -> float | None:
    """What the best answer for each position scores over the last 32; None where nothing is asked there, or the task is
    one of somebody's own that is not at hand.

    >>> round(end_floor("txc", 64), 3), round(end_floor("fsm", 64), 3)
    (0.5, 1.0)
    """
    try:
        return _known_end_floor(text, length)
    except BadInput:  # which is not remembered: it may be at hand later
        return None


@functools.lru_cache(maxsize=1024)
def _known_end_floor(text: str, length: int) -> float | None:
    return strategies.end_floor(trusted_task(text), length, END)


def as_designed(records: Iterable[Measurement]) -> list[Measurement]:
    """The document trains a network at each length, by a protocol of its own. So what a network does beyond its length
    is not meant, and another protocol stands in only for a model and task on which that one was not run.
    """
    there = [record for record in records if record.trained_on == record.length]
    protocols: dict[tuple[str, str], Counter[str]] = {}
    for record in there:
        protocols.setdefault((record.model, record.task), Counter())[record.protocol] += 1
    chosen = {of: "design" if "design" in held else held.most_common(1)[0][0] for of, held in protocols.items()}
    return [record for record in there if record.protocol == chosen[record.model, record.task]]


def spread(records: Iterable[Measurement]) -> str:
    """The lowest and the highest accuracy."""
    accuracies = [record.accuracy for record in records]
    return f"{fixed(min(accuracies))} to {fixed(max(accuracies))}"


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """The items of each key, in their order."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def by_seed(records: Iterable[Measurement]) -> dict[int, list[Measurement]]:
    return grouped(records, lambda record: record.seed)


def most(flags: list[bool]) -> bool:
    """Whether more than half are true."""
    return 2 * sum(flags) > len(flags)
