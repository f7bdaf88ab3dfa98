"""Results as the verdict reads them, and how the record of a training becomes such results."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np

from statetrack.errors import BadInput
from statetrack.intervals import wilson
from statetrack.tasks import task
from statetrack.verdicts.documents import DESIGN_TRAINING

SURE_LOW = 0.98
"""A run is surely solved when its interval lies above this: 256 rows without an error have the Wilson bound .985."""
SOLVED = 0.99
SEEDS = 3
FAR = 8
WITNESS_STEPS = 10_000
END = 32  # positions at the end of a row, by which lengths beyond count as solved
CHEAP = 2048  # steps up to which the floor of the last positions is worked out


@dataclass(frozen=True)
class Measured:
    """One measured accuracy with its 95 % interval [low, high], its n, and the floor of its task at this length.

    `trained` is the length that the network was trained on; if it is not given, the seed's shortest length stands in.
    `witness` marks weights that were set by hand. `metric` is accuracy, or full_sequence_accuracy: the share of rows
    without an error. `protocol` tells one way of training from another; `design` is that of the design document.
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

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Measured:
        """From a plain record; what it holds besides is left aside."""
        known = {field.name for field in fields(cls)}
        required = [field.name for field in fields(cls) if field.default is MISSING]
        for name in required:
            if name not in record:
                raise BadInput(f"a result has no {name!r}; it should have {', '.join(required)}")
        result = cls(**{name: value for name, value in record.items() if name in known})
        if not 0 <= result.low <= result.high <= 1:
            raise BadInput(
                f"the interval [{result.low}, {result.high}] of a result should lie in 0..1, low before high"
            )
        return result

    @property
    def trained_on(self) -> int:
        return self.trained if self.trained is not None else self.length

    @property
    def surely_solved(self) -> bool:
        """A floor that is nearly 1 makes nearly everybody look good: the interval must lie above it, unless it is 1.
        Where a guess is right at the end, being right there says nothing.
        """
        above = self.low > self.floor or self.floor >= 1
        return self.solved and self.low >= SURE_LOW and above and self.end_floor < SOLVED

    @property
    def surely_not_solved(self) -> bool:
        return not self.solved and self.high < SOLVED

    @property
    def state(self) -> str:
        return "solved" if self.surely_solved else "not solved" if self.surely_not_solved else "unclear"


def from_record(record: Mapping[str, Any]) -> list[Measured]:
    """What one training measured, length by length: at the length trained on (there whole rows as well), beyond it, and
    along a stream.

    Lengths beyond count as solved by their last 32 positions, a stream by the last positions before its mark. A length
    that was not measured (the model has too few positions) is left out. Where a length has no n of its own, it is rows;
    where its floor was too dear to sum over (null), the floor of the next shorter length stands in.
    """
    try:
        cell = record["cell"]
        shared = {
            "model": cell["subject"], "task": cell["task"], "seed": cell["seed"], "trained": cell["length"],
            "protocol": way_of_training(cell.get("protocol", {})),
        }  # fmt: skip
        whole = {cell["length"]: record, **_by_length(record.get("length_generalisation"))}
        measured: list[Measured] = []
        for length, entry in sorted(whole.items()):
            if entry.get("accuracy") is not None:
                measured.append(_whole(entry, length, shared, measured, recorded_end_floor(record, length)))
        if not measured:
            return []
        return [*measured, *_streamed(record.get("stream") or {}, measured, shared), *_whole_rows(record, shared)]
    except KeyError as error:
        raise BadInput(f"a training record has no {error.args[0]!r}") from None


def way_of_training(protocol: Mapping[str, Any]) -> str:
    """The name of a protocol that holds no more, or that is the design document's; else all that decided the weights.

    >>> way_of_training({"name": "design", "batch": 256}), way_of_training({"name": "design", "batch": 64})
    ('design', '{"batch": 64, "name": "design"}')
    """
    decided = json.loads(json.dumps({key: value for key, value in protocol.items() if key != "stream"}))
    name = str(protocol.get("name", ""))
    if name == "design" and {**DESIGN_TRAINING, **decided} == {**decided, **DESIGN_TRAINING}:
        return name
    return json.dumps(decided, sort_keys=True) if len(decided) > 1 else name


def _by_length(entries: Mapping[str, Any] | None) -> dict[int, Any]:
    return {int(length): entry for length, entry in (entries or {}).items()}


def _whole(
    entry: Mapping[str, Any], length: int, shared: dict[str, Any], shorter: list[Measured], at_end: float | None
) -> Measured:
    """All positions of rows of one length, with the floor of the last ones, or if unknown that of a shorter length."""
    low, high = entry["interval"]
    last = entry.get("last_32_accuracy")
    if "floor" not in entry:
        floor = position_floor(shared["task"], length)
    else:
        floor = shorter[-1].floor if entry["floor"] is None and shorter else entry["floor"]
    if at_end is None:
        at_end = shorter[-1].end_floor if shorter else 0.0
    return Measured.read({
        **shared, "length": length, "accuracy": entry["accuracy"], "low": low, "high": high, "floor": floor,
        "end_floor": at_end,
        "n": entry.get("n") or entry["rows"], "solved": entry.get("solved", last is not None and last >= SOLVED),
    })  # fmt: skip


def _whole_rows(record: Mapping[str, Any], shared: dict[str, Any]) -> Iterator[Measured]:
    """The share of rows without an error, at the length trained on."""
    accuracy = record.get("full_sequence_accuracy")
    if accuracy is not None:
        low, high = record["full_sequence_interval"]
        yield Measured.read({
            **shared, "length": shared["trained"], "metric": "full_sequence_accuracy", "accuracy": accuracy,
            "low": low, "high": high, "n": record["rows"], "floor": 0.0, "solved": accuracy >= SOLVED,
        })  # fmt: skip


def _streamed(stream: Mapping[str, Any], whole: list[Measured], shared: dict[str, Any]) -> Iterator[Measured]:
    """The last positions before each mark. Rows are independent, positions are not: the interval counts rows."""
    for length, accuracy in _by_length(stream.get("accuracy")).items():
        if accuracy is not None and length not in [one.length for one in whole]:
            low, high = wilson(accuracy * stream["rows"], stream["rows"])
            yield Measured.read({
                **shared, "length": length, "accuracy": accuracy, "low": low, "high": high, "n": stream["rows"],
                "floor": whole[-1].floor, "end_floor": whole[-1].end_floor, "solved": accuracy >= SOLVED,
            })  # fmt: skip


@functools.cache
def position_floor(text: str, length: int) -> float:
    """What the best answer for each position scores."""
    from statetrack.theory.floors import FloorMaker

    made = FloorMaker(task(text), length, window=1).gather()
    return next(floor.average for floor in made if floor.name == "position")


def recorded_end_floor(record: Mapping[str, Any], length: int) -> float | None:
    """What the best answer for each position scores over the last 32, where a training's record knows it exactly.

    Far out it is dear to work out and hardly changes: there the longest that is cheap, or the one trained on, counts.
    """
    trained = record["cell"]["length"]
    if length > CHEAP:
        length = max(CHEAP, trained)
    if length == trained and record.get("floor_by_position"):
        known = [value for value in record["floor_by_position"][-END:] if value is not None and np.isfinite(value)]
        return float(np.mean(known)) if known else None
    entry = record if length == trained else _by_length(record.get("length_generalisation")).get(length, {})
    if not record.get("floor_exact") or length > CHEAP or ("floor" in entry and entry["floor"] is None):
        return None
    return end_floor(record["cell"]["task"], length)


@functools.lru_cache(maxsize=1024)
def end_floor(text: str, length: int) -> float | None:
    """What the best answer for each position scores over the last 32; None where nothing is asked there, or the task is
    one of somebody's own that is not at hand.

    >>> round(end_floor("txc", 64), 3), round(end_floor("fsm", 64), 3)
    (0.5, 1.0)
    """
    from statetrack.theory.floors import FloorMaker

    try:
        made = FloorMaker(task(text), length, window=1).gather()
    except BadInput:
        return None
    by_position = next(floor.by_position for floor in made if floor.name == "position")[-END:]
    known = by_position[np.isfinite(by_position)]
    return float(known.mean()) if len(known) else None


def by_seed(records: Iterable[Measured]) -> dict[int, list[Measured]]:
    """The records of each seed."""
    seeds: dict[int, list[Measured]] = {}
    for record in records:
        seeds.setdefault(record.seed, []).append(record)
    return seeds


def most(flags: list[bool]) -> bool:
    """Whether more than half are true."""
    return 2 * sum(flags) > len(flags)
