"""Files that appear whole or not at all: written under a temporary name beside the target, then renamed."""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from statetrack.errors import BadInput


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


def write_whole(path: Path, data: bytes) -> None:
    """Write one file so that whoever reads sees all of it or nothing."""
    with together(path) as (part,):
        part.write_bytes(data)


def copy_whole(path: Path, target: Path) -> None:
    """Copy one file in the same way."""
    with together(target) as (part,):
        shutil.copyfile(path, part)
