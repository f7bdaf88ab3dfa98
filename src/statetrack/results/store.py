"""A folder of results: one JSON file a cell, named by the cell's key, beside the weights of what was trained.

    DIR/3f0c...9a.json         a record: the cell, the version, its status and numbers
    DIR/3f0c...9a.safetensors  the weights
    DIR/.sweep/                how the work stands: plans, claims, scratch; may be removed when nothing runs

The status of a record is done or diverged (a result), failed or skipped (with a `reason`; no result yet).
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statetrack.errors import BadInput
from statetrack.files import write_whole
from statetrack.results.cell import Cell
from statetrack.version import __version__

DONE, DIVERGED, FAILED, SKIPPED = "done", "diverged", "failed", "skipped"
FINISHED = (DONE, DIVERGED)
STATUSES = (DONE, DIVERGED, FAILED, SKIPPED)
KEY = re.compile(r"[0-9a-f]{20}")
OLD = 86_400.0  # seconds after which a leftover is nobody's
QUICK = 1.0  # seconds: what was done in less is not worth waiting for the disk


@dataclass(frozen=True)
class Damage:
    """A file that should hold a record and does not."""

    path: Path
    why: str

    def __str__(self) -> str:
        return f"{self.path.name}: {self.why}"


class Store:
    """Reads and writes the cells of one folder, which is made when it is not there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if folder.exists() and not folder.is_dir():
            raise BadInput(f"{folder} is a file; results go into a folder")
        if not folder.parent.is_dir():
            raise BadInput(f"{folder.parent} is no folder; make it first")
        folder.mkdir(exist_ok=True)

    @classmethod
    def existing(cls, folder: Path) -> Store:
        """The store of a folder that must be there already."""
        if not folder.is_dir():
            raise BadInput(f"{folder} is {'a file' if folder.exists() else 'not there'}; a folder of results is needed")
        return cls(folder)

    @property
    def hidden(self) -> Path:
        """Where runners keep plans, claims and scratch."""
        return self.folder / ".sweep"

    def path(self, cell: Cell, ending: str = "json") -> Path:
        return self.folder / f"{cell.key}.{ending}"

    def write(self, cell: Cell, record: dict[str, Any], settle: bool = True) -> Path:
        """Keep a cell's record; a second writer of the same cell replaces it by its equal.

        Without `settle` a cut of the power may leave the file empty (a kill of the process may not): then it is
        found damaged and its cell is run again.
        """
        path = self.path(cell)
        self.folder.mkdir(parents=True, exist_ok=True)  # another process may have taken it away while it was empty
        data = (json.dumps(record, indent=1, allow_nan=False) + "\n").encode()
        if settle:
            write_whole(path, data)
        else:
            _write_quickly(path, data)
        return path

    def read(self, cell: Cell) -> dict[str, Any] | None:
        """A cell's result, or None where there is none yet: missing, damaged, failed or skipped."""
        record = self.record(cell)
        return record if record and record.get("status", DONE) in FINISHED else None

    def record(self, cell: Cell) -> dict[str, Any] | None:
        """A cell's record of any status, or None where there is none or it is damaged."""
        record = read_record(self.path(cell), cell)
        return record if isinstance(record, dict) else None

    def records(self) -> Iterator[dict[str, Any]]:
        """All whole records of the folder."""
        yield from (entry for _, entry in self.entries() if isinstance(entry, dict))

    def damaged(self) -> Iterator[Damage]:
        """The files of the folder that should be records and are not."""
        yield from (entry for _, entry in self.entries() if isinstance(entry, Damage))

    def entries(self, known: Mapping[str, Cell] | None = None) -> Iterator[tuple[str, dict[str, Any] | Damage]]:
        """The key and the record of every JSON file, in the order of their names, or what is wrong with the file.

        `known` cells by key save hashing what a record says that it is.
        """
        with os.scandir(self.folder) as files:
            names = sorted(entry.name for entry in files if entry.name.endswith(".json") and entry.name[0] != ".")
        for name in names:
            key = name.removesuffix(".json")
            entry = read_record(self.folder / name, (known or {}).get(key))
            if entry is not None:
                yield key, entry

    def scratch(self, cells: Iterable[Cell]) -> Path:
        """Where cells that are run together keep their checkpoint. Another set of cells has another place."""
        together = Cell("", " ".join(sorted(cell.key for cell in cells)), 0, 0, {})
        return self.hidden / "work" / together.key

    def tidy(self) -> None:
        """Remove what killed writers left long ago: half-written files, and the scratch of cells done since."""
        long_ago = time.time() - OLD
        for path in (*self.folder.glob(".*.part"), *self.hidden.glob("work/*")):
            if path.stat().st_mtime < long_ago:
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


@contextmanager
def kept_in(folder: Path | str | None) -> Iterator[Store | None]:
    """The store of a folder, if one is wanted. A folder that was made for it goes again when nothing came into it."""
    if folder is None:
        yield None
        return
    path = Path(folder)
    new = not path.exists()
    store = Store(path)
    try:
        yield store
    finally:
        if new:
            with suppress(OSError):  # it holds something, or is gone
                path.rmdir()


def read_record(path: Path, expected: Cell | None = None) -> dict[str, Any] | Damage | None:
    """The record in a file, what is wrong with the file, or None where there is no file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    if not data.strip():
        return Damage(path, "empty")
    try:
        record = json.loads(data)
    except ValueError:
        return Damage(path, "not whole JSON")
    ours = _is_ours(record, path.stem, expected)
    return record if ours else Damage(path, "not a record of statetrack, or of another cell")


def _is_ours(record: Any, key: str, expected: Cell | None) -> bool:
    if not isinstance(record, dict) or record.get("status", DONE) not in STATUSES:
        return False
    held = record.get("cell")
    if expected is not None:
        return bool(held == expected.to_dict())
    if not isinstance(held, dict) or not KEY.fullmatch(key):
        return False
    try:
        return Cell(**held).key == key
    except TypeError:
        return False


def _write_quickly(path: Path, data: bytes) -> None:
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        part.write_bytes(data)
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise BadInput(f"{path} cannot be written: {error.strerror or error}") from error


def no_room(error: BaseException | None) -> bool:
    """Whether the disk refused to take more: no reason to blame the cell, and none to go on."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS):
            return True
        error = error.__cause__
    return False


def no_result(cell: Cell, status: str, reason: str) -> dict[str, Any]:
    """The record of a cell that failed or was skipped, with the reason in one line."""
    return {
        "cell": cell.to_dict(),
        "version": __version__,
        "status": status,
        "reason": " ".join(reason.split()),
    }
