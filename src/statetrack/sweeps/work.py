"""Do one unit: claim its cells, run those that nobody has finished, keep their records."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from statetrack.errors import BadInput
from statetrack.results import claims
from statetrack.results.cell import Cell
from statetrack.results.store import FAILED, QUICK, Store, no_result, no_room
from statetrack.sweeps import kinds
from statetrack.sweeps.units import BUSY, LOST, MEMORY, Outcome, Unit

# As torch, its driver checks, Triton and cuDNN say it.
GPU_FAULT = re.compile(r"CUDA (driver )?error|Triton Error \[CUDA\]|cuDNN error", re.IGNORECASE)


def do(unit: Unit, store: Store, device: str = "auto", weights: bool = True) -> dict[str, Outcome]:
    """Run a unit in this process. A full disk is an error (BadInput); what goes wrong in a cell is its outcome."""
    with claimed(unit, store) as (mine, outcomes):
        if mine:
            scratch = store.scratch(mine)
            produced = produce(unit.of(mine), scratch, device)
            for cell, record, files in produced:
                outcomes[cell.key] = keep(store, cell, record, files if weights else [])
            if not any(outcome.status == LOST for outcome in outcomes.values()):  # else the next try goes on from there
                shutil.rmtree(scratch, ignore_errors=True)
        return outcomes


@contextmanager
def claimed(unit: Unit, store: Store) -> Iterator[tuple[list[Cell], dict[str, Outcome]]]:
    """The cells of a unit that are now ours to do, and what became of the others."""
    mine: list[Cell] = []
    outcomes: dict[str, Outcome] = {}
    now = time.time_ns()
    with ExitStack() as held:
        for cell in unit.cells:
            claim = claims.take(store, cell, now)
            if claim is None:
                outcomes[cell.key] = Outcome(BUSY)
                continue
            record = store.read(cell)
            if record is not None:  # another runner finished it before we had the claim
                claim.release()
                outcomes[cell.key] = Outcome(record.get("status", "done"))
            else:
                held.enter_context(claim)
                mine.append(cell)
        yield mine, outcomes


def produce(unit: Unit, scratch: Path, device: str) -> Iterator[tuple[Cell, dict[str, Any], list[Path]]]:
    """The record of each cell, and the files beside it. An error becomes the record of every cell not yet done."""
    left = {cell.key: cell for cell in unit.cells}
    began = time.monotonic()
    try:
        for cell, record in kinds.load(unit.kind).run(list(unit.cells), scratch, device):
            now = time.monotonic()
            record.setdefault("seconds", now - began)
            began = now
            json.dumps(record, allow_nan=False)  # one that cannot be written is a failure of its cell, not of the run
            del left[cell.key]
            yield cell, record, files_of(cell, scratch)
        reason, failed = "the run ended without a result", FAILED
    except Exception as error:
        if no_room(error):
            raise error if isinstance(error, BadInput) else BadInput(f"{scratch.parent}: {error}") from error
        reason, failed = one_line(error), meaning(error)
    for cell in left.values():
        yield cell, no_result(cell, failed, reason) | {"seconds": time.monotonic() - began}, []


def meaning(error: Exception) -> str:
    """What an error means for its cells. After an error of the GPU itself nothing more works in this process, and the
    cell need not be its cause: another process on the same card may be. So it is as if the worker had died.
    """
    if "out of memory" in str(error):
        return MEMORY
    return LOST if GPU_FAULT.search(str(error)) else FAILED


def files_of(cell: Cell, scratch: Path) -> list[Path]:
    """What a run left beside the record, but for checkpoints."""
    return [path for path in scratch.glob(f"{cell.key}.*") if "checkpoint" not in path.name and path.suffix != ".json"]


def keep(store: Store, cell: Cell, record: dict[str, Any], files: list[Path]) -> Outcome:
    """Move the files to the folder, then write the record: where there is a record, there are its files."""
    if record["status"] in (MEMORY, LOST):
        return Outcome(record["status"], 0.0, record["reason"])
    for path in files:
        os.replace(path, store.folder / path.name)
    store.write(cell, record, settle=record["seconds"] >= QUICK)
    return Outcome(record["status"], record["seconds"], record.get("reason", ""))


def one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, BadInput) and text else f"{type(error).__name__}: {text}"
