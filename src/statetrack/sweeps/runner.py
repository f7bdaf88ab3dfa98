"""Run a sweep into a folder: what is missing, in the order of the schedule, on the runner that was asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from statetrack.errors import BadInput
from statetrack.identity import trusted
from statetrack.results import plans
from statetrack.results.leftovers import tidy
from statetrack.results.plans import Sweep
from statetrack.results.store import Store
from statetrack.sweeps import sharing
from statetrack.sweeps.kinds import code_of
from statetrack.sweeps.local import Tick, WorkerDevice, in_process, places, with_workers
from statetrack.sweeps.schedule import Schedule, SweepProgress

DEVICES = ("auto", "cpu", "cuda")
MOST_WORKERS = 1024
MOST_TOGETHER = 8  # seeds side by side on a GPU

Show = Callable[[Schedule, int], None]  # called often with the schedule and the number of workers


@dataclass(frozen=True)
class Options:
    """How a sweep is run. None of it changes a result."""

    workers: int | None = None  # processes; None: one per core or several per GPU; 0: none, in this process
    ray: str | None = None  # the address of a Ray cluster, or "auto"
    device: str = "auto"
    together: int | None = None  # seeds side by side; None: 1 on a CPU, 8 on a GPU
    per_gpu: int | None = None  # workers that share a GPU; None: 8 where they can compute at the same time, else 4
    prune: bool = False
    weights: bool = True
    limit_seconds: float | None = None
    cell_seconds: float | None = None  # a cell that takes longer has failed

    def check(self) -> None:
        if self.workers is not None and not 0 <= self.workers <= MOST_WORKERS:
            raise BadInput(f"workers={self.workers} should lie in 0..{MOST_WORKERS}, where 0 is this process")
        if self.workers is not None and self.ray is not None:
            raise BadInput("a sweep runs on --workers or on --ray, not on both")
        if self.device not in DEVICES:
            raise BadInput(f"device {self.device!r} should be auto, cpu or cuda")
        for key in ("together", "per_gpu", "limit_seconds", "cell_seconds"):
            value = getattr(self, key)
            if value is not None and not value > 0:  # NaN is refused too: it would limit nothing
                raise BadInput(f"{key}={value} should be above 0")
        for key in ("together", "per_gpu"):
            if (getattr(self, key) or 0) > MOST_WORKERS:
                raise BadInput(f"{key}={getattr(self, key)} should be at most {MOST_WORKERS}")


def run(
    sweep: Sweep, folder: Path | str, options: Options | None = None, show: Show = lambda schedule, workers: None
) -> SweepProgress:
    """Do the cells of a sweep that the folder does not hold yet, and say how it went."""
    chosen = options or Options()
    chosen.check()
    began = time.monotonic()
    in_workers = not chosen.ray and chosen.workers != 0
    asked_for = in_workers or (chosen.device == "cuda" and not chosen.ray)  # a GPU that is not there is refused now
    devices = places(chosen.workers or 0, chosen.device, chosen.per_gpu) if asked_for else []
    where = devices if in_workers else []
    for address in code_of(sweep.entries):
        trusted(address)  # else it is refused here: workers, also those on other machines, run what they are sent
    store = Store(Path(folder))
    plans.save(store, sweep)
    on_gpu = any(place.gpu is not None for place in where)
    together = chosen.together or (MOST_TOGETHER if on_gpu else 1)
    schedule = Schedule(sweep, store, together, chosen.prune, chosen.cell_seconds)
    count = max(1, len(where))

    def tick() -> bool:
        show(schedule, count)
        return chosen.limit_seconds is not None and time.monotonic() - began >= chosen.limit_seconds

    try:
        if not schedule.over:
            _go(schedule, chosen, where, tick)
    finally:
        show(schedule, count)
    if schedule.over:
        tidy(store)
    return schedule.tally


def _go(schedule: Schedule, options: Options, where: list[WorkerDevice], tick: Tick) -> None:
    if options.ray is not None:
        from statetrack.sweeps.ray_runner import with_ray

        with_ray(schedule, options.ray, options.per_gpu or sharing.IN_TURNS, options.weights, tick)
    elif where:
        with_workers(schedule, where, options.weights, tick)
    else:
        in_process(schedule, options.device, options.weights, tick)
