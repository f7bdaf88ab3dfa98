"""The trained cells of a folder, evaluated further by several processes. A cell is measured by one of them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from statetrack import trust
from statetrack.errors import BadInput
from statetrack.results import Store, TrainingRecord
from statetrack.results.diagnosis import ERROR, left_out
from statetrack.training.folder import FolderTally, Show, chosen, guarded, measure_lacking
from statetrack.training.further import Wanted
from statetrack.training.run import pick_device

MOST = 1024
DIED = "its worker, or one beside it, died (was there enough memory?)"


def evaluate_in_workers(
    folder: Path | str, wanted: Wanted, keys: Sequence[str], device: str, workers: int, show: Show = lambda _: None
) -> FolderTally:
    """What `evaluate_folder` does, by so many processes. If it is interrupted they end, and measured cells stay."""
    if not 1 <= workers <= MOST:
        raise BadInput(f"workers={workers} should lie in 1..{MOST}")
    store = Store.existing(Path(folder))
    trained, tally = chosen(store, keys)
    tally.total, tally.now, tally.part = len(trained), f"with {workers} workers", "measuring"
    show(tally)
    one = partial(_one_cell, store.folder, wanted, device, trust.allowed())
    with _pool(workers) as processes:
        with _ctrl_c_held():  # it is for us, who then end the workers
            under_way = {processes.submit(one, record): record for record in trained}
        for future in as_completed(under_way):
            _take(future, under_way[future], tally)
            show(tally)
    order = {record.cell.key: place for place, record in enumerate(trained)}
    tally.records.sort(key=lambda record: order[record.cell.key])
    return tally


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with this block, or with this process, however it ends."""
    theirs, lifeline = multiprocessing.Pipe(duplex=False)
    processes = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin, (theirs,))
    try:
        yield processes
    except BaseException:
        lifeline.close()
        raise
    finally:
        processes.shutdown(cancel_futures=True)
        lifeline.close()
        theirs.close()


@contextmanager
def _ctrl_c_held() -> Iterator[None]:
    """Ctrl-C waits until the end of this block. Processes that are started in it never hear it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(lifeline: Connection) -> None:
    threading.Thread(target=_die_with, args=(lifeline,), daemon=True).start()
    torch.set_num_threads(1)  # several processes with all threads each get in each other's way


def _die_with(lifeline: Connection) -> None:
    with suppress(EOFError):
        lifeline.recv()
    os._exit(1)


def _one_cell(
    folder: Path, wanted: Wanted, device: str, allowed: trust.Allowed, record: TrainingRecord
) -> FolderTally:  # fmt: skip
    place, tally = pick_device(device), FolderTally()
    with trust.trusting(*allowed.named, everything=allowed.everything):
        guarded(partial(measure_lacking, wanted, place), Store.existing(folder), record, place, tally, lambda _: None)
    return tally


def _take(future: Future[FolderTally], record: TrainingRecord, tally: FolderTally) -> None:
    """Add what a worker found of one cell."""
    try:
        found = future.result()
    except BrokenProcessPool:  # what is measured is kept, and the next run goes on
        found = FolderTally(left_out=[left_out(record.cell, DIED, ERROR)])
    tally.records += found.records
    tally.left_out += found.left_out
    tally.grown += found.grown
    tally.done += 1
    tally.now, tally.part = str(record.cell), "measured"
