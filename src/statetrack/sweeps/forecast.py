"""What a sweep will take, before it runs: from what such cells took on such a device, or plainly not known.

The seconds of a cell are guessed from what was measured of the nearest kind, in this order: cells that differ in their
seed alone; the same model on the same task; the same model; any model. Between cells that are not alike seconds grow as
cost^POWER, from those whose cost is nearest. `python -m benchmarks.forecast DIR` says how good that is on a folder.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean

from statetrack.errors import MissingExtra
from statetrack.results import history
from statetrack.results.cell import ASK, Cell
from statetrack.results.history import CPU, Measured
from statetrack.results.pace import POWER
from statetrack.results.plans import PlannedCell, Sweep
from statetrack.results.records import Record
from statetrack.results.store import Store, is_complete
from statetrack.sweeps import kinds
from statetrack.sweeps.local import WorkerDevice, count_gpus, places
from statetrack.sweeps.runner import MOST_TOGETHER, Options
from statetrack.sweeps.units import units_of

NEAR = 1.05  # costs within this factor are equal for a forecast
LIKE, SAME_TASK, SAME_MODEL, OTHERS = "like it", "of this model on this task", "of this model", "of other models"


@dataclass(frozen=True)
class Where:
    """Where a sweep will run. `workers` is None where nobody knows them yet, as on a cluster."""

    device: str  # the name of the GPU, or of the processor
    gpu: bool = False
    workers: int | None = 1
    sharing: int | None = None  # workers that share the memory of one GPU; None: all
    together: int = 1  # seeds side by side

    def ran(self, took: Measured) -> bool:
        """Whether something was measured on such a device. Old records say of a CPU no more than that."""
        return took.device in ("", self.device) or (took.device == CPU and not self.gpu)


@dataclass(frozen=True)
class Guess:
    """A number, how many measured cells it is from, and what those are."""

    value: float
    source: str
    count: int


@dataclass(frozen=True)
class KindForecast:
    """Cells that differ in their seed alone: one of them, how many are to be done and how many are there. `seconds` are
    of one cell, `memory` (bytes) of all seeds that run side by side; None where nobody knows.
    """

    entry: PlannedCell
    left: int
    there: int
    seconds: Guess | None
    memory: Guess | None


@dataclass(frozen=True)
class Forecast:
    """Of the cells of a sweep that a folder does not hold yet."""

    kinds: list[KindForecast]
    where: Where
    by_key: dict[str, float]  # seconds of every cell that is to be done and known
    clock: float | None  # seconds until all that is known is done; None without workers
    memory: float | None  # bytes at most at one time; None where some of it is not known

    @property
    def left(self) -> int:
        return sum(kind.left for kind in self.kinds)

    @property
    def unknown(self) -> int:
        """Cells that nothing is known of."""
        return self.left - len(self.by_key)

    @property
    def seconds(self) -> float:
        """Of work in all, of the cells that are known."""
        return sum(self.by_key.values())


def where(options: Options) -> Where:
    """Where a sweep with these options will run. Of a cluster's nodes nobody knows more than of this machine."""
    if options.device == "cuda" and not count_gpus():  # planned here for a machine that has one
        return Where("a GPU that is not here", True, options.workers or None, None, options.together or MOST_TOGETHER)
    here = options.ray is None and options.workers != 0
    devices = places(options.workers or 0, options.device, options.per_gpu) if here else [WorkerDevice()]
    gpu = options.device != "cpu" and count_gpus() > 0
    together = options.together or (MOST_TOGETHER if gpu and here else 1)
    gpus = len({place.gpu for place in devices})
    return Where(
        _gpu_name() if gpu else history.processor(), gpu, len(devices) if options.ray is None else None,
        -(-len(devices) // gpus) if gpu else None, together,
    )  # fmt: skip


def _gpu_name() -> str:
    import torch

    return torch.cuda.get_device_name()


def forecast(sweep: Sweep, store: Store | None, where: Where) -> Forecast:
    """From the records of the folder, where it is there, and from the history in the user's settings folder."""
    planned = {entry.cell.key: entry for entry in sweep.entries}
    records = dict(_finished(store)) if store else {}
    known = [took for record in records.values() if (took := took_by(record)) is not None and where.ran(took)]
    evidence = Evidence(dict.fromkeys([*known, *filter(where.ran, history.noted())]))
    done = {
        key for key, entry in planned.items()
        if key in records and store and is_complete(store, records[key], entry.streams, entry.words)
    }  # fmt: skip
    made = [_kind(same, done, where.together, evidence) for same in _alike(sweep.entries)]
    of = {entry.cell.key: kind for kind, same in zip(made, _alike(sweep.entries)) for entry in same}
    by_key = {key: guess.value for key, kind in of.items() if key not in done and (guess := kind.seconds)}
    units = units_of(sweep.entries, where.together, done)
    clock = finish([sum(by_key.get(cell.key, 0.0) for cell in unit.cells) for unit in units], where.workers)
    sizes = [of[unit.cells[0].key].memory for unit in units]
    at_once = where.sharing or where.workers or 1
    largest = sorted((size.value for size in sizes if size), reverse=True)[:at_once]
    return Forecast(made, where, by_key, clock, sum(largest) if sizes and all(sizes) else None)


def _finished(store: Store) -> Iterator[tuple[str, Record]]:
    yield from ((key, entry) for key, entry in store.entries() if isinstance(entry, Record) and entry.finished)


def took_by(record: Record) -> Measured | None:
    """What a finished cell took, as its kind tells it; None where that needs a library that is not here."""
    try:
        return kinds.load(kinds.module_for(record.cell)).took(record)
    except MissingExtra:
        return None


def _alike(entries: Iterable[PlannedCell]) -> list[list[PlannedCell]]:
    groups: dict[object, list[PlannedCell]] = {}
    for entry in entries:
        groups.setdefault((entry.cell.siblings, entry.streams, entry.words), []).append(entry)
    return list(groups.values())


def _kind(same: Sequence[PlannedCell], done: set[str], together: int, known: Evidence) -> KindForecast:
    entry, left = same[0], sum(entry.cell.key not in done for entry in same)
    side_by_side = min(together, max(1, left)) * len(entry.cell.protocol.get("rates", [0]))
    memory = memory_of(entry, side_by_side, known)
    return KindForecast(entry, left, len(same) - left, seconds_of(entry, known), memory)


class Evidence:
    """What was measured, found by what it has in common with a cell."""

    def __init__(self, known: Iterable[Measured]) -> None:
        self._by: dict[tuple[str, ...], list[Measured]] = {}
        for took in known:
            asked = "asked" if not took.device else ""
            names = ("siblings", took.siblings), ("both", took.subject, took.task), ("subject", took.subject)
            for name in (*names, (asked,)):
                self._by.setdefault(name, []).append(took)

    def of(self, cell: Cell) -> Iterator[tuple[str, list[Measured]]]:
        """From cells that differ in their seed alone to those of any model. The pace of one server says nothing of
        another.
        """
        yield LIKE, self._by.get(("siblings", cell.siblings), [])
        yield SAME_TASK, self._by.get(("both", cell.subject, cell.task), [])
        yield SAME_MODEL, self._by.get(("subject", cell.subject), [])
        yield OTHERS, self._by.get(("",), []) if cell.kind != ASK else []


def seconds_of(entry: PlannedCell, known: Evidence) -> Guess | None:
    """The seconds of a cell: the mean of cells like it, else those of the nearest cost, scaled."""
    for source, found in known.of(entry.cell):
        apart, near = _nearest(found, entry.cost, lambda took: took.cost)
        if near and (source != LIKE or apart <= NEAR):  # with another stream it is not like it
            scaled = [took.seconds * (1.0 if source == LIKE else (entry.cost / took.cost) ** POWER) for took in near]
            return Guess(mean(scaled), source, len(near))
    return None


def memory_of(entry: PlannedCell, side_by_side: int, known: Evidence) -> Guess | None:
    """The most that was seen of cells like it; else that of the same model at the nearest size of a step, scaled."""
    for source, found in known.of(entry.cell):
        told = [took for took in found if took.memory and took.step]
        if source == LIKE:
            same = [float(took.memory or 0) for took in told if took.replicas == side_by_side]
            if same:
                return Guess(max(same), LIKE, len(same))
        elif told and source != OTHERS:
            size = max(1, kinds.load(entry.kind).step(entry.cell)) * side_by_side
            _, near = _nearest(told, size, lambda took: took.step * took.replicas)
            scaled = [(took.memory or 0) * size / (took.step * took.replicas) for took in near]
            return Guess(max(scaled), source, len(near))
    return None


def _nearest(
    found: Sequence[Measured], size: float, sized: Callable[[Measured], float]
) -> tuple[float, list[Measured]]:
    """By which factor the nearest of them differ in size, and which those are."""
    apart = [max(sized(took), size) / max(min(sized(took), size), 1e-9) for took in found]
    least = min(apart, default=0.0)
    return least, [took for took, factor in zip(found, apart) if factor <= least * NEAR]


def finish(units: Sequence[float], workers: int | None) -> float | None:
    """When workers that take one unit after the other, in this order, are all done.

    >>> finish([3.0, 2.0, 2.0], 2), finish([3.0], None)
    (4.0, None)
    """
    if workers is None:
        return None
    busy = [0.0] * max(1, workers)
    for seconds in units:
        heapq.heappush(busy, heapq.heappop(busy) + seconds)
    return max(busy)
