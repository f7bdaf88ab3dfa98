"""A kind of cell for tests: it waits a little and writes a line when it begins and when it ends.

The subject is `counted:WHAT`; the protocol says where the log is and how long a cell takes. WHAT may be `fails`,
`dies` (takes its process with it), `full` (as if the disk were), `memory`, `nan`, `diverges`, `faults` (the GPU does,
and with it every later cell of the process; a second try is well), `stays` (does not end when asked to) or `deaf`
(hears no alarm).
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from statetrack.errors import OutOfMemory
from statetrack.results import Cell, Record, Store, TrainingRecord
from statetrack.results.evaluations import OnRows
from statetrack.results.kinds import CellRequest, SeedGroup
from statetrack.results.plans import Sweep
from statetrack.results.records import Training
from statetrack.sweeps import sweep_of

ROOT = Path(__file__).parents[2]  # of the repository: what other processes need on their path to import this
KINDS = {"train": "statetrack.training.cells", "ask": "statetrack.asking.cells", "counted": __name__}


def describe(task: str, subject: str, length: int, seed: int, protocol: str, settings: dict[str, Any]) -> CellRequest:
    return CellRequest(Cell(task, subject, length, seed, {"name": protocol, **settings}))


def cost(wanted: CellRequest) -> float:
    return float(wanted.cell.length)


faulty = False  # the GPU, for the rest of this process


class Slow:
    """Something that takes a while to be deleted."""

    def __del__(self) -> None:
        time.sleep(0.6)


def run(work: SeedGroup, store: Store, scratch: Path) -> Iterator[Record]:
    for cell in work.cells:
        began = time.monotonic()
        if cell.subject.endswith("stays"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if cell.subject.endswith("deaf"):
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
        if cell.subject.endswith("deletes"):
            Slow()  # deleted at once: the alarm rings meanwhile, and what it raises there goes no further
        try:
            _note(cell, "begin")
            time.sleep(cell.protocol.get("seconds", 0))
        finally:
            if cell.protocol.get("notes_end"):
                _note(cell, "end")
        _fault(cell, scratch)
        _misbehave(cell.subject.partition(":")[2], work.cells)
        if cell.protocol.get("weights") and work.weights:
            store.put(f"{cell.key}.safetensors", b"weights of " + cell.key.encode())
        record = made(cell, time.monotonic() - began)
        store.write(record)
        yield record


def made(cell: Cell, seconds: float = 0.0) -> TrainingRecord:
    """The record of such a cell: half of the answers are right."""
    accuracy = float("nan") if cell.subject.endswith("nan") else 0.5
    rows = OnRows(length=cell.length, seed=cell.seed, accuracy=accuracy, interval=[0.4, 0.6], floor=0.5)
    return TrainingRecord(
        cell=cell, version="test", status="diverged" if cell.subject.endswith("diverges") else "done", seconds=seconds,
        training=Training(learning_rate=1.0, steps=1, parameters=0, device="x" * cell.protocol.get("padding", 0)),
        evaluations=(rows,),
    )  # fmt: skip


def _fault(cell: Cell, scratch: Path) -> None:
    global faulty
    if cell.subject.endswith("faults") and not Path(cell.protocol["log"]).with_suffix(".faulted").exists():
        Path(cell.protocol["log"]).with_suffix(".faulted").touch()
        faulty = True
        scratch.mkdir(parents=True)
        (scratch / "checkpoint").touch()
    if faulty:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")


def _misbehave(what: str, cells: tuple[Cell, ...]) -> None:
    if what == "fails":
        raise ValueError("this cell\nfails")
    if what == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "full":
        raise OSError(errno.ENOSPC, "No space left on device")
    if what == "memory" and len(cells) > 1:
        raise OutOfMemory("out of memory at a batch of 8")


def _note(cell: Cell, what: str) -> None:
    log = cell.protocol.get("log")
    if log:
        with open(log, "a") as file:
            file.write(f"{what} {cell.key}\n")


def with_root() -> str:
    """The PYTHONPATH of a process that imports this module."""
    return os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))


def sweep(count: int, subject: str = "counted:well", **protocol: Any) -> Sweep:
    """So many cells that differ in their length."""
    return sweep_of("counted", [Cell("none", subject, n + 1, 0, protocol) for n in range(count)], KINDS)


def begun(log: Path) -> list[str]:
    """The keys of the cells begun, in order."""
    return _noted(log, "begin")


def ended(log: Path) -> list[str]:
    """The same for those ended, also in their midst, if the process was not killed."""
    return _noted(log, "end")


def _noted(log: Path, what: str) -> list[str]:
    lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    return [key for word, key in lines if word == what]
