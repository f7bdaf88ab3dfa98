"""Run a sweep here: in this process, or on worker processes with one thread each, several to a GPU."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import wait
from typing import Any

from statetrack.errors import BadInput
from statetrack.results.store import Store
from statetrack.sweeps import sharing
from statetrack.sweeps.schedule import Schedule
from statetrack.sweeps.units import LOST, Outcome, Unit
from statetrack.sweeps.work import do, late

TICK = 0.2  # seconds between looks at the clock
GRACE = 5.0  # seconds that workers have to end by themselves
STDERR = 2
SOON, AHEAD = 0.02, 16  # a worker whose last unit took less than SOON seconds gets AHEAD units at once

Tick = Callable[[], bool]  # shows how far it is; True when it is time to stop


@dataclass(frozen=True)
class WorkerDevice:
    """Where a worker runs: the CPU, or one GPU by number."""

    device: str = "auto"
    gpu: int | None = None


def in_process(schedule: Schedule, device: str, weights: bool, tick: Tick) -> None:
    """One unit after the other. The time limit is looked at between units."""
    while not schedule.over and not tick():
        unit = schedule.next()
        if unit is None:
            time.sleep(TICK)
            continue
        outcomes = do(unit, schedule.store, device, weights)
        lost = [outcome.reason for outcome in outcomes.values() if outcome.status == LOST]
        if lost:
            raise BadInput(f"the GPU failed, and nothing more runs on it in this process: {lost[0]}")
        schedule.settle(unit, outcomes)


def with_workers(schedule: Schedule, places: list[WorkerDevice], weights: bool, tick: Tick) -> None:
    """Hand units to workers until all are settled or it is time to stop. What is running then is killed: its
    checkpoint and the cells that are finished stay.
    """
    with sharing.shared([place.gpu for place in places]) as added:
        workers = [Worker(place, schedule.store, weights, added) for place in places]
        _work(schedule, workers, tick)


def _work(schedule: Schedule, workers: list[Worker], tick: Tick) -> None:
    try:
        while not schedule.over and not tick():
            _hand_out(schedule, workers)
            busy = {worker.pipe: worker for worker in workers if worker.units}
            if not busy:
                time.sleep(TICK)
                continue
            for pipe in wait(list(busy), TICK):
                busy[pipe].collect(schedule)  # type: ignore[index]
            for worker in busy.values():
                worker.end_late(schedule)
    finally:
        end(workers)
        for worker in workers:
            for unit in worker.units:
                schedule.look_for(unit)


def end(workers: list[Worker]) -> None:
    """Ask the workers to end, and kill those that do not.

    One that is killed in the middle of its work on a GPU makes the others that share it fault, also those of another
    runner. So they are asked first; and what is left is halted before one is killed, lest it record that as a failure.
    """
    for worker in workers:
        worker.signal(signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while time.monotonic() < deadline and any(worker.runs for worker in workers):
        time.sleep(TICK / 10)
    for worker in workers:
        worker.signal(signal.SIGSTOP)
    for worker in workers:
        worker.kill()


def _hand_out(schedule: Schedule, workers: list[Worker]) -> None:
    for worker in workers:
        at_work = [unit for other in workers for unit in other.units]
        if any(unit.alone for unit in at_work):
            return
        while len(worker.units) < worker.ahead:
            unit = schedule.next()
            if unit is None:
                return
            if unit.alone and at_work:
                schedule.put_back(unit)
                return
            worker.give(unit)
            at_work.append(unit)


class Worker:
    """A process that is started with the first unit, and again when it died. It does its units in their order."""

    def __init__(self, place: WorkerDevice, store: Store, weights: bool, added: Mapping[str, str]) -> None:
        self.place, self.store, self.weights, self.added = place, store, weights, added
        self.units: deque[Unit] = deque()
        self.began = 0.0  # the first of them
        self.ahead = 1  # units in its hands: more than one only when they are over so soon that it would wait for us
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.pipe, theirs = Pipe()
        lifeline, self.lifeline = os.pipe()
        keep_weights = "weights" if self.weights else "none"
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "statetrack.sweeps.worker", str(theirs.fileno()), str(lifeline),
             str(self.store.folder), self.place.device, keep_weights],
            pass_fds=[theirs.fileno(), lifeline], env={**_environment(self.place), **self.added}, stdout=STDERR,
            start_new_session=True,  # Ctrl-C is for the starter, which then ends its workers
        )  # fmt: skip
        theirs.close()
        os.close(lifeline)

    def give(self, unit: Unit) -> None:
        if self.process is None:
            self.start()
        if not self.units:
            self.began = time.monotonic()
        self.units.append(unit)
        with suppress(BrokenPipeError):  # it died before it was given this: collect finds that out
            self.pipe.send(unit)

    def collect(self, schedule: Schedule) -> None:
        """Settle what it has finished. A worker that died takes the unit it was at with it, and no other."""
        assert self.process is not None
        try:
            while self.units and self.pipe.poll():
                answer: Any = self.pipe.recv()
                if isinstance(answer, str):
                    raise BadInput(answer)
                seconds, outcomes = answer
                self.ahead = AHEAD if seconds < SOON else 1
                self.began = time.monotonic()
                schedule.settle(self.units.popleft(), outcomes)
                if any(outcome.status == LOST for outcome in outcomes.values()):
                    self.start_anew(schedule)
        except (EOFError, ConnectionResetError):
            code = self.process.wait()
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            unit = self.units.popleft()
            schedule.settle(unit, {cell.key: Outcome(LOST, 0.0, f"its worker died ({how})") for cell in unit.cells})
            self.start_anew(schedule)

    def end_late(self, schedule: Schedule) -> None:
        """End a worker whose unit is beyond its time and does not notice, as in a loop outside Python."""
        limit = self.units[0].seconds if self.units else None
        if limit is not None and time.monotonic() - self.began > limit + GRACE:
            unit = self.units.popleft()
            self.start_anew(schedule)
            schedule.fail(unit, late(unit))

    def start_anew(self, schedule: Schedule) -> None:
        """End it and put back what it had not begun; the next unit starts another process."""
        self.kill()
        while self.units:
            schedule.put_back(self.units.pop())

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(number)

    def kill(self) -> None:
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        self.pipe.close()
        os.close(self.lifeline)
        self.process = None


def _environment(place: WorkerDevice) -> dict[str, str]:
    # What is importable here is importable there; and torch's threads get in each other's way.
    path = os.pathsep.join(part or os.getcwd() for part in sys.path)
    added = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": path}
    if place.gpu is not None:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        added["CUDA_VISIBLE_DEVICES"] = visible.split(",")[place.gpu] if visible else str(place.gpu)
    return {**os.environ, **added}


def places(workers: int, device: str, per_gpu: int | None) -> list[WorkerDevice]:
    """Where `workers` run; 0 stands for one per core, or `per_gpu` per GPU if there are any; None: as many as suit."""
    gpus = 0 if device == "cpu" else count_gpus()
    if device == "cuda" and not gpus:
        raise BadInput("device 'cuda' is asked for, but torch sees no GPU here")
    if gpus:
        count = workers or gpus * (per_gpu or sharing.workers_per_gpu())
        return [WorkerDevice("cuda", number % gpus) for number in range(count)]
    return [WorkerDevice("cpu") for _ in range(workers or len(os.sched_getaffinity(0)))]


def count_gpus() -> int:
    try:
        import torch
    except ImportError:
        return 0
    return torch.cuda.device_count()
