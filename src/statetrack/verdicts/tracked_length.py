"""How far models keep track of a task, and whether a task tells models apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import median

from statetrack.models.catalogue import lookup
from statetrack.results import TrainingRecord
from statetrack.results.evaluations import SOLVED, OnRows
from statetrack.results.networks import Tested
from statetrack.verdicts.measurements import grouped, most, tested

APART = 0.1  # between the best and the worst median: below it a task does not tell the models apart


@dataclass(frozen=True)
class TrackedLength:
    """How far one model keeps track: the longest length up to which most seeds have solved every length tested, from
    the one trained on; 0 where not even that one is solved.

    `longest` is the longest that it was tested at, `lost_at` the first beyond the reach; `easy` says that at the length
    reached a guess scores as much.
    """

    reach: int
    longest: int
    trained: int
    lost_at: int | None
    seeds: int
    easy: bool


def reach(records: Iterable[TrainingRecord]) -> TrackedLength:
    """Of trainings of one model, seeds of one length trained on together; of several such lengths the best counts."""
    by_length = grouped(sorted(records, key=lambda record: record.cell.length), lambda record: record.cell.length)
    return max((_reach(same) for same in by_length.values()), key=lambda found: (found.reach, found.longest))


def _reach(records: Sequence[TrainingRecord]) -> TrackedLength:
    ended = (one for record in records for one in tested(record) if one.end is not None)
    by_length = grouped(ended, lambda one: one.length)
    lengths = sorted(by_length)
    trained = records[0].cell.length
    solved = takewhile(lambda n: most([one.solved for one in by_length[n]]), (n for n in lengths if n >= trained))
    best = max(solved, default=0)
    floors = [one.end_floor for one in by_length.get(best, ()) if one.end_floor is not None]
    return TrackedLength(
        reach=best, longest=max(lengths, default=0), trained=trained,
        lost_at=next((n for n in lengths if best and n > best), None),
        seeds=len({record.cell.seed for record in records}), easy=bool(floors) and min(floors) >= SOLVED,
    )  # fmt: skip


def ends(records: Iterable[TrainingRecord]) -> dict[int, float]:
    """By the length of rows: the median over these trainings of the accuracy over the last 32 positions."""
    found: dict[int, list[float]] = {}
    for one in _on_rows(records):
        if one.end is not None:
            found.setdefault(one.length, []).append(one.end)
    return {length: median(same) for length, same in sorted(found.items())}


def _on_rows(records: Iterable[TrainingRecord]) -> list[Tested]:
    return [one for record in records for one in tested(record) if one.of == OnRows.kind]


@dataclass(frozen=True)
class ModelContrast:
    """The medians of the models with a state, at the end of the longest rows that all of them were tested on."""

    trained: int
    tested: int
    best: float
    worst: float
    floor: float | None
    models: int

    @property
    def apart(self) -> bool:
        return self.best - self.worst >= APART

    @property
    def room(self) -> bool:
        """Whether a guess leaves room for a difference that counts."""
        return self.floor is None or self.floor <= 1 - APART


def separation(records: Iterable[TrainingRecord]) -> ModelContrast | None:
    """Of one task, at the length that most were trained on; None where fewer than two models with a state share one."""
    keeping = [record for record in records if not _is_memoryless(record.cell.subject)]
    if not keeping:
        return None
    trained = usual_length([record.cell.length for record in keeping])
    here = grouped((one for one in keeping if one.cell.length == trained), lambda one: one.cell.subject)
    medians = [found for same in here.values() if (found := ends(same))]
    shared = set.intersection(*map(set, medians)) if len(medians) > 1 else None
    if not shared:
        return None
    longest = max(shared)
    floors = [one.end_floor for same in here.values() for one in _on_rows(same)
              if one.length == longest and one.end_floor is not None]  # fmt: skip
    middles, floor = [found[longest] for found in medians], median(floors) if floors else None
    return ModelContrast(trained, longest, max(middles), min(middles), floor, len(medians))


def _is_memoryless(subject: str) -> bool:
    line = lookup(subject)
    return line is not None and line.family == "memoryless"


def usual_length(lengths: Sequence[int]) -> int:
    """That of most, the longer one of equals."""
    return max(set(lengths), key=lambda length: (lengths.count(length), length))
