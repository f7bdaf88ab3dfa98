"""Do one unit: claim its cells and run those that nobody has finished. Their kind keeps the records."""

from __future__ import annotations

import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from statetrack.errors import BadInput, OutOfMemory, one_line, show_cause
from statetrack.results import claims
from statetrack.results.cell import Cell
from statetrack.results.kinds import SeedGroup
from statetrack.results.records import FAILED, no_result
from statetrack.results.store import Store, is_complete, no_room
from statetrack.sweeps import kinds
from statetrack.sweeps.units import BUSY, LOST, MEMORY, Outcome, Unit

# As torch, its driver checks, Triton and cuDNN say it.
GPU_FAULT = re.compile(r"CUDA (driver )?error|Triton Error \[CUDA\]|cuDNN error", re.IGNORECASE)
GPU_FULL = re.compile(r"CUDA out of memory")
AGAIN = 1.0  # seconds from one alarm to the next


def do(unit: Unit, store: Store, device: str = "auto", weights: bool = True) -> dict[str, Outcome]:
    """Run a unit in this process. A full disk is an error (BadInput); what goes wrong in a cell is its outcome."""
    with claimed(unit, store) as (mine, outcomes):
        if mine:
            shared = any(outcome.status == BUSY for outcome in outcomes.values())
            scratch = store.scratch(mine if shared else unit.block or unit.cells)
            outcomes |= perform(unit.of(mine), store, scratch, device, weights)
            if not any(outcomes[cell.key].status in (LOST, FAILED) for cell in mine):  # else the next try goes on there
                shutil.rmtree(scratch, ignore_errors=True)
        return outcomes


@contextmanager
def claimed(unit: Unit, store: Store) -> Iterator[tuple[list[Cell], dict[str, Outcome]]]:
    """The cells of a unit that are now ours to do, and what became of the others."""
    mine: list[Cell] = []
    outcomes: dict[str, Outcome] = {}
    now = time.time_ns()
    with ExitStack() as held_claims:
        for cell in unit.cells:
            claim = claims.take(store, cell, now)
            if claim is None:
                outcomes[cell.key] = Outcome(BUSY)
                continue
            record = store.read(cell)
            if record is not None and is_complete(store, record, unit.streams, unit.words):  # another was faster
                claim.release()
                outcomes[cell.key] = Outcome(record.status)
            else:
                held_claims.enter_context(claim)
                mine.append(cell)
        yield mine, outcomes


def perform(unit: Unit, store: Store, scratch: Path, device: str, weights: bool) -> dict[str, Outcome]:
    """What became of each cell, its record being kept. An error becomes the record of every cell not yet done."""
    left = {cell.key: cell for cell in unit.cells}
    outcomes = {}
    began = time.monotonic()
    try:
        work = SeedGroup(unit.cells, unit.streams, device, weights, unit.words)
        with _time_limit(unit.seconds):
            for record in kinds.load(unit.kind).run(work, store, scratch):
                del left[record.cell.key]
                outcomes[record.cell.key] = Outcome(record.status, record.seconds or 0.0, record.reason)
                began = time.monotonic()
        reason, failed = "the run ended without a result", FAILED
    except OverTime:
        reason, failed = late(unit), FAILED
    except Exception as error:
        if no_room(error):
            raise error if isinstance(error, BadInput) else BadInput(f"{scratch.parent}: {error}") from error
        show_cause(error)
        reason, failed = one_line(error), meaning(error)
    return outcomes | give_up(unit.of(left.values()), store, reason, failed, time.monotonic() - began)


def give_up(unit: Unit, store: Store, reason: str, status: str = FAILED, seconds: float = 0.0) -> dict[str, Outcome]:
    """Cells without a result, and what became of them. A failure is written down."""
    for cell in unit.cells:
        there = store.record(cell)
        if status == FAILED and not (there and there.finished):  # what lacks an evaluation still has a result
            store.write(no_result(cell, FAILED, reason, seconds))  # a dialogue that was cut off keeps its replies
    return {cell.key: Outcome(status, seconds, reason) for cell in unit.cells}


class OverTime(BaseException):
    """The time of a unit is over. Not an Exception: nothing in the cell may take it for a fault of its own."""


@contextmanager
def _time_limit(seconds: float | None) -> Iterator[None]:
    """Raise OverTime inside after so long. The alarm is heard between two steps of Python, and in its main thread. It
    rings again until it is: what is raised while an object is deleted goes no further, and Python prints it.
    """
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    before, told = signal.signal(signal.SIGALRM, _ring), sys.unraisablehook
    sys.unraisablehook = lambda lost: None if isinstance(lost.exc_value, OverTime) else told(lost)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = told


def _ring(number: int, frame: object) -> None:
    raise OverTime


def late(unit: Unit) -> str:
    """Why a unit that took too long has failed."""
    return f"it took longer than the {unit.cell_seconds:g} s that a cell may take (--cell-seconds)"


def meaning(error: Exception) -> str:
    """What an error means for its cells. After an error of the GPU itself nothing more works in this process, and the
    cell need not be its cause: another process on the same card may be. So it is as if the worker had died.
    """
    if isinstance(error, OutOfMemory) or GPU_FULL.search(str(error)):
        return MEMORY
    return LOST if GPU_FAULT.search(str(error)) else FAILED
