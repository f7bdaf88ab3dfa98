"""Who works on which cell: one lock file per cell, held by the kernel's flock for as long as the process lives.

A process that is killed loses its locks at that moment, so there is nothing to expire and nothing to clean up; the
file it leaves behind means nothing. So no clock decides who has a cell: one that jumps, or that of another machine, can
only make `still` name somebody who works, or not name yet somebody who does not. Whoever takes a claim looks again
whether the cell is finished, so that two runners on one folder never do a finished cell again.
"""

from __future__ import annotations

import errno
import fcntl
import functools
import os
import socket
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from statetrack.errors import BadInput
from statetrack.files import read_start
from statetrack.results import replies
from statetrack.results.cell import Cell
from statetrack.results.store import Store, open_lock

STILL = 1800.0  # seconds without a trace of work after which a holder is named


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
    path = store.hidden / "claims" / f"{cell.key}.lock"
    while True:
        try:
            handle = open_lock(path)
        except FileNotFoundError:
            store.make("claims")
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
        found = os.fstat(handle)
        if found.st_uid != os.geteuid():  # left by another user who was killed: ours takes its place
            path.unlink(missing_ok=True)
            os.close(handle)
            continue
        if found.st_size:  # of somebody who was killed
            os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()} {_host()}".encode())
        moment = since or time.time_ns()
        os.utime(handle, ns=(moment, moment))
        return Claim(path, handle)


@functools.cache
def _host() -> str:
    return socket.gethostname()


def running(store: Store) -> Iterator[tuple[str, int]]:
    """(key, since) of every cell that somebody holds now; cells that are run together have the same `since`."""
    for path in sorted((store.hidden / "claims").glob("*.lock")):
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:  # released meanwhile, or no lock of ours
            continue
        try:
            if not _lock(handle, fcntl.LOCK_SH, path):
                yield path.stem, os.fstat(handle).st_mtime_ns
        finally:
            os.close(handle)


@dataclass(frozen=True)
class Holder:
    """Who has claimed a cell and shows no sign of work: is stopped, or has written nothing for long."""

    what: str
    who: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: claimed by {self.who}, {self.why}"


def still(store: Store, cells: Iterable[Cell], now: float | None = None) -> Iterator[Holder]:
    """Those of the holders of these cells that do not move."""
    moment = time.time() if now is None else now
    for cell in cells:
        path = store.hidden / "claims" / f"{cell.key}.lock"
        try:
            pid, _, host = read_start(path, 300).decode(errors="replace").partition(" ")
        except OSError:  # released meanwhile
            continue
        checkpoints = store.hidden.glob(f"work/*/{cell.siblings}.*")
        written = (path, store.path(cell), store.path(cell, replies.ENDING), *checkpoints)
        traces = [moved for each in written if (moved := _moved(each))]
        past = [each for each in traces if each <= moment + STILL]  # others are of a clock that was set back
        quiet = moment - max(past, default=moment)
        who = f"process {pid} on {host}" if host else "an earlier version"
        if host == _host() and _is_stopped(pid):
            yield Holder(str(cell), who, "which is stopped")
        elif quiet >= STILL:
            yield Holder(str(cell), who, f"which has written nothing for {quiet / 3600:.1f} h")
        elif traces and not past:
            ahead = (min(traces) - moment) / 3600
            yield Holder(str(cell), who, f"whose last trace lies {ahead:.1f} h ahead: was a clock set?")


def _moved(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None


def _is_stopped(pid: str) -> bool:
    """By a signal or a debugger; only Linux tells."""
    try:
        told = Path(f"/proc/{int(pid)}/stat").read_text()
    except (OSError, ValueError):
        return False
    return told.rpartition(")")[2].split()[0] in ("T", "t")


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
