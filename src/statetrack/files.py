"""Files that appear whole or not at all: written under a temporary name beside the target, then renamed."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from statetrack.errors import BadInput

ABANDONED = 3600.0  # seconds after which a half-written file that nobody has added to is nobody's
MOST_VALUES = 2**22  # of a JSON file; a value takes up to 70 bytes of memory for each byte of the file


@contextmanager
def together(*targets: Path) -> Iterator[list[Path]]:
    """Temporary paths for files or folders that the caller makes; renamed at the end, removed on any error.

    The last target is renamed last. A refusal of the system (disk full, no permission) names the first target.
    """
    check_parent(targets[0])
    mark = uuid.uuid4().hex[:8]
    parts = [target.with_name(f".{target.name}.{mark}.part") for target in targets]
    try:
        yield parts
        for part, target in zip(parts, targets):
            _settle(part)
            _replace(part, target)
        _sync(targets[0].absolute().parent)
    except OSError as error:
        raise BadInput(f"{targets[0]} cannot be written: {error.strerror or error}") from error
    finally:
        for part in parts:
            _remove(part)


def check_parent(target: Path) -> None:
    """Refuse a target whose folder does not exist."""
    parent = target.absolute().parent
    if not parent.is_dir():
        problem = "is not a folder" if parent.exists() else "does not exist"
        raise BadInput(f"{target} cannot be written: {target.parent} {problem}")


def check_writable(folder: Path) -> None:
    """Refuse a folder that takes no file, before anything is spent on what should go there."""
    probe = folder / f".{uuid.uuid4().hex[:8]}.part"
    try:
        probe.write_bytes(b"\0")
        probe.unlink()
    except OSError as error:
        raise BadInput(f"{folder} cannot be written to: {error.strerror or error}") from error


def _settle(part: Path) -> None:
    """Wait until what was written is on the disk, so that a rename never shows an empty file after a crash."""
    for path in [*part.rglob("*"), part] if part.is_dir() else [part]:
        _sync(path)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _replace(part: Path, target: Path) -> None:
    if part.is_dir() and target.is_dir():  # a folder cannot be renamed onto a full one
        old = part.with_suffix(".old")
        os.rename(target, old)
        os.rename(part, target)
        _remove(old)
    else:
        os.replace(part, target)


def _remove(part: Path) -> None:
    if part.is_dir():
        shutil.rmtree(part)
    else:
        part.unlink(missing_ok=True)


class Hashed:
    """A file that is written from front to back, and the sha256 of what went in."""

    def __init__(self, path: Path) -> None:
        self.file: BinaryIO = path.open("wb")
        self.digest = hashlib.sha256()
        self.closed = False

    def write(self, data: bytes | memoryview) -> int:
        self.digest.update(data)
        return self.file.write(data)

    def flush(self) -> None:
        self.file.flush()

    def close(self) -> None:
        self.file.close()
        self.closed = True

    @property
    def sha256(self) -> str:
        return self.digest.hexdigest()


def too_many_values(data: bytes, most: int = MOST_VALUES) -> bool:
    """Whether JSON text may hold more values than are read: 64 MiB of empty lists take gigabytes and a minute.

    >>> too_many_values(b"[1, 2]"), too_many_values(b"[" + b"{}," * 2**22 + b"{}]")
    (False, True)
    """
    return len(data) > most and sum(map(data.count, (b"[", b"{", b","))) > most


def write_whole(path: Path, data: bytes) -> None:
    """Write one file so that whoever reads sees all of it or nothing."""
    with together(path) as (part,):
        part.write_bytes(data)


def copy_whole(path: Path, target: Path) -> None:
    """Copy one file in the same way."""
    with together(target) as (part,):
        shutil.copyfile(path, part)


def clean(target: Path) -> None:
    """Remove what killed writers of this file, or folder, left beside it."""
    long_ago = time.time() - ABANDONED
    for part in target.absolute().parent.glob(f".{_literal(target.name)}.{'[0-9a-f]' * 8}.part"):
        if max(path.lstat().st_mtime for path in [part, *part.rglob("*")]) < long_ago:
            _remove(part)


def _literal(name: str) -> str:
    """A name as a pattern that matches it alone."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in name)


def read_bounded(path: Path | str, most: int) -> bytes:
    """A plain file of at most so many bytes. All else is an OSError at once: a folder, a pipe, a device without end."""
    with _plain_file(path) as (handle, size):
        if size > most:
            raise OSError(errno.EFBIG, f"it has {size:,} bytes, more than the {most:,} that are read", str(path))
        return _read(handle, size)


def read_start(path: Path | str, count: int) -> bytes:
    """The first bytes of a plain file, as many as `count` or all."""
    with _plain_file(path) as (handle, size):
        return _read(handle, min(size, count))


@contextmanager
def open_plain(path: Path | str) -> Iterator[BinaryIO]:
    """A plain file, to be read piece by piece."""
    with _plain_file(path) as (handle, _), open(handle, "rb", closefd=False) as file:
        yield file


class _plain_file:
    """The handle of a plain file and its size. A class: as a generator it would take longer than the reading."""

    def __init__(self, path: Path | str) -> None:
        self.path = path

    def __enter__(self) -> tuple[int, int]:
        self.handle = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would make us wait
        found = os.fstat(self.handle)
        if not stat.S_ISREG(found.st_mode):
            os.close(self.handle)
            what = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe or a device"
            raise OSError(errno.EINVAL, f"it is {what}, not a plain file", str(self.path))
        return self.handle, found.st_size

    def __exit__(self, *error: object) -> None:
        os.close(self.handle)


def _read(handle: int, count: int) -> bytes:
    data = os.read(handle, count)
    while len(data) < count and (more := os.read(handle, count - len(data))):
        data += more
    return data
