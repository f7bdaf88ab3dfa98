"""Who works on which cell: one lock file per cell, held by the kernel's flock for as long as the process lives.

A process that is killed loses its locks at that moment, so there is nothing to expire and nothing to clean up; the
file it leaves behind means nothing. Whoever takes a claim looks again whether the cell is finished, so that two runners
on one folder never do a finished cell again.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from statetrack.errors import BadInput
from statetrack.results.cell import Cell
from statetrack.results.store import Store


class Claim:
    """A cell that is ours until `release`."""

    def __init__(self, path: Path, handle: int) -> None:
        self.path, self.handle = path, handle

    def release(self) -> None:
        self.path.unlink(missing_ok=True)  # while it is still held: nobody can be waiting on a name that is gone
        os.close(self.handle)

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


def take(store: Store, cell: Cell, since: int | None = None) -> Claim | None:
    """Claim a cell, or None where somebody else has it. `since` (ns) is when the work began that it is part of."""
    folder = store.hidden / "claims"
    path = folder / f"{cell.key}.lock"
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            folder.mkdir(parents=True, exist_ok=True)
            continue
        try:
            locked = _lock(handle, fcntl.LOCK_EX, path)
        except BadInput:
            os.close(handle)
            raise
        if not locked:
            os.close(handle)
            return None
        if not _is_at(path, handle):  # the last holder removed the name between our opening and our locking
            os.close(handle)
            continue
        moment = since or time.time_ns()
        os.utime(handle, ns=(moment, moment))
        return Claim(path, handle)


def running(store: Store) -> Iterator[tuple[str, int]]:
    """(key, since) of every cell that somebody holds now; cells that are run together have the same `since`."""
    for path in sorted((store.hidden / "claims").glob("*.lock")):
        try:
            handle = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            if not _lock(handle, fcntl.LOCK_SH, path):
                yield path.stem, os.fstat(handle).st_mtime_ns
        finally:
            os.close(handle)


def _lock(handle: int, kind: int, path: Path) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        raise BadInput(
            f"{path.parent}: this file system has no locks; run each --part into a folder of its own and merge them"
        ) from error
    return True


def _is_at(path: Path, handle: int) -> bool:
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    ours = os.fstat(handle)
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
