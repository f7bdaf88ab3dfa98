"""A folder of results: one JSON file for each cell, named by the cell's key, beside the weights of what was trained.

    DIR/3f0c...9a.json         a record: the cell, the version, its status and numbers
    DIR/3f0c...9a.safetensors  the weights
    DIR/3f0c...9a.proof        a proof that they are right for ever (`results/proofs.py`)
    DIR/*.conflict.json        other results of a cell (`results/conflicts.py`)
    DIR/diagnosis/             what was found out about trained cells
    DIR/.sweep/                how the work stands: plans, claims, scratch; may be removed when nothing runs

In 0.1.0 the length of the stream was part of a cell. Such a file keeps its name. It is found under the cell without
that; and several of one cell are read as one record, with the evaluations of all.
"""

from __future__ import annotations

import errno
import fcntl
import functools
import json
import os
import re
import stat
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from statetrack import spec
from statetrack.errors import BadInput
from statetrack.files import copy_whole, read_bounded, read_start, too_many_values, write_whole
from statetrack.results import conflicts, proofs, records, schema, seal
from statetrack.results.cell import ASK, Cell
from statetrack.results.records import EvaluatedRecord, Record, TrainingRecord
from statetrack.results.schema import BadRecord

KEY = re.compile(r"[0-9a-f]{20}")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
STREAMED = re.compile(rb'"stream": ?[1-9]')  # in a protocol of 0.1.0
HEAD = 4096  # bytes that a file's cell is in
Network = TypeVar("Network", TrainingRecord, EvaluatedRecord)
QUICK = 1.0  # seconds: what was done in less is not worth waiting for the disk


@dataclass(frozen=True)
class Damage:
    """A file that should hold a record and does not. `foreign` is one that nothing of statetrack ever was: its name is
    not a cell's, and it holds no record. Others put such files beside ours, as the logs of a harness.
    """

    path: Path
    why: str
    foreign: bool = False

    def __str__(self) -> str:
        return f"{self.path.name}: {self.why}"


class Store:
    """Reads and writes the cells of one folder, which is made when it is not there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if folder.exists() and not folder.is_dir():
            raise BadInput(f"{folder} is a file; results go into a folder")
        if not folder.parent.is_dir():
            raise BadInput(f"{folder.parent} is not a folder; make it first")
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
        """Where a file of this cell is written."""
        return self.folder / f"{cell.key}.{ending}"

    def files(self, cell: Cell, ending: str = "json") -> list[Path]:
        """The files of this cell that are there, those under a name of 0.1.0 among them.

        A record that is no plain file is named as damaged; weights that are none, such as a pipe, are not there.
        """
        return self._files(cell.key, ending)

    def _files(self, key: str, ending: str) -> list[Path]:
        paths = [self.folder / f"{name}.{ending}" for name in (key, *self._old_names.get(key, ()))]
        return [path for path in paths if (path.exists() if ending == "json" else path.is_file())]

    def weights(self, cell: Cell) -> Path | None:
        """Where the weights of a cell lie: those beside the file that its training is read from; None where there are
        none.
        """
        paths = self.files(cell, "safetensors")
        if cell.key not in self._old_names:
            return next(iter(paths), None)
        record = self.record(cell)
        for path in paths:
            beside = read_record(path.with_suffix(".json"))
            if records.same_weights(record, beside):
                return path
        return None

    def adopt(self, cell: Cell, paths: Iterable[Path]) -> None:
        """Copy files of this cell from another folder, under the names that they have there."""
        for path in paths:
            copy_whole(path, self.folder / path.name)
            if path.stem != cell.key and path.stem not in self._old_names.get(cell.key, ()):
                self._old_names.setdefault(cell.key, []).append(path.stem)

    def write(self, record: Record) -> Path:
        """Keep a record. What the folder holds of the cell stays: a result is not replaced by a failure, replies and
        evaluations are united, and another result is set aside (`results/conflicts.py`).

        What took less than a second is not forced to the disk: a power failure may leave that file empty (a killed
        process may not). Then it is found damaged, and its cell is run again.
        """
        path = self.path(record.cell)
        there = read_record(path, record.cell)
        if isinstance(there, Record):
            record = self._united(there, record)
        self.put(path.name, seal.seal(records.write(record), indent=1), record.seconds)
        return path

    def _united(self, there: Record, comes: Record) -> Record:
        """What comes, with what is there."""
        what = conflicts.difference(there, comes)
        if comes.finished and what is None:
            return records.unite(comes, there)
        kept = comes if comes.finished else there if there.finished else records.with_replies(comes, there)
        if what:
            other = there if kept is comes else comes
            conflicts.set_aside(self.folder, other, None, what)  # its weights made room for those that came
        return kept

    def put(self, name: str, data: bytes, seconds: float | None = None) -> None:
        """Keep a file that took this many seconds to make."""
        if seconds is None or seconds >= QUICK:
            self.folder.mkdir(parents=True, exist_ok=True)  # another process may have removed it while it was empty
            write_whole(self.folder / name, data)
        else:
            _write_quickly(self.folder / name, data)

    def read(self, cell: Cell) -> Record | None:
        """A cell's result, or None where there is none yet: missing, damaged, failed or skipped."""
        record = self.record(cell)
        return record if record and record.finished else None

    def record(self, cell: Cell) -> Record | None:
        """A cell's record of any status, or None where there is none or it is damaged."""
        record = self._entry(cell.key, cell)
        return record if isinstance(record, Record) else None

    def records(self) -> Iterator[Record]:
        """All whole records of the folder."""
        yield from (entry for _, entry in self.entries() if isinstance(entry, Record))

    def damaged(self) -> Iterator[Damage]:
        """The files of the folder that should be records and are not."""
        yield from (entry for _, entry in self.entries() if isinstance(entry, Damage))

    def foreign(self) -> list[str]:
        """The names of JSON files here that are not statetrack's; they are left alone, and counted nowhere."""
        strange = [name for name in self._names() if not KEY.fullmatch(name[:-5])]
        found = {name: read_record(self.folder / name) for name in strange}
        return [name for name, entry in found.items() if isinstance(entry, Damage) and entry.foreign]

    def entries(self, known: Mapping[str, Cell] | None = None) -> Iterator[tuple[str, Record | Damage]]:
        """The key and the record of every cell, in the order of their keys, or what is wrong with the file; nothing of
        files that are not ours.

        `known` cells by key save hashing what a record says that it is.
        """
        names = self._names()
        small: dict[str, bytes] = {}  # files that were read already
        self.__dict__["_old_names"] = self._look(names, small)  # others may have filled the folder meanwhile
        old = {name for same in self._old_names.values() for name in same}
        for key in sorted({name[:-5] for name in names} - old | self._old_names.keys()):
            entry = self._entry(key, (known or {}).get(key), small.pop(f"{key}.json", None))
            if entry is not None and not (isinstance(entry, Damage) and entry.foreign):
                yield key, entry

    def _entry(self, key: str, cell: Cell | None, data: bytes | None = None) -> Record | Damage | None:
        """What is known of a cell: its own file, with what files of 0.1.0 add."""
        entry = read_record(f"{self.folder}/{key}.json", cell, data)
        for name in self._old_names.get(key, ()):
            older = read_record(f"{self.folder}/{name}.json")
            if isinstance(older, Record):
                entry = records.unite(entry, older) if isinstance(entry, Record) else older
            elif entry is None:
                entry = older
        return proofs.vouched(entry, lambda ending: self._files(key, ending))

    @functools.cached_property
    def _old_names(self) -> dict[str, list[str]]:
        """Files of 0.1.0 whose cells were streamed, by the key of the cell without that."""
        return self._look(self._names(), {})

    def _look(self, names: list[str], small: dict[str, bytes]) -> dict[str, list[str]]:
        """Look for them; what is `small` is kept, as opening ten thousand files takes longer than reading them."""
        old_names: dict[str, list[str]] = {}
        for name in names:
            with suppress(OSError):
                path = f"{self.folder}/{name}"
                head = read_start(path, HEAD)
                if len(head) < HEAD:
                    small[name] = head
                if b'"format":' not in head[:64] and STREAMED.search(head):
                    cell = _cell_in(read_bounded(path, seal.MOST_JSON))
                    if cell is not None and cell.steps and cell.key == name[:-5]:
                        old_names.setdefault(cell.identity.key, []).append(cell.key)
        return old_names

    def _names(self) -> list[str]:
        with os.scandir(self.folder) as files:
            names = [entry.name for entry in files if entry.name.endswith(".json") and entry.name[0] != "."]
        return sorted(name for name in names if not name.endswith(conflicts.ENDING))

    def make(self, *parts: str) -> Path:
        """A folder of runners, open to the same people as the folder itself, whatever this process gives away."""
        path = self.hidden
        for part in ("", *parts):
            path = path / part
            if not path.is_dir():
                path.mkdir(parents=True, exist_ok=True)
                with suppress(PermissionError):  # another user made it at this moment
                    path.chmod(stat.S_IMODE(self.folder.stat().st_mode))
        return path

    @contextmanager
    def adding(self) -> Iterator[None]:
        """Alone with what is added to records."""
        handle = open_lock(self.make() / "adding.lock")
        try:
            with suppress(OSError):  # no locks here: one who adds at the same moment may have to do it again
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def scratch(self, cells: Iterable[Cell]) -> Path:
        """Where cells that are run together keep their checkpoint. Another set of cells has another place."""
        together = Cell("", " ".join(sorted(cell.key for cell in cells)), 0, 0, {})
        return self.hidden / "work" / together.key


@contextmanager
def kept_in(folder: Path | str | None) -> Iterator[Store | None]:
    """The store of a folder, if one is wanted. A folder that was made for it is removed if nothing is kept in it."""
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


def read_record(path: str | Path, expected: Cell | None = None, data: bytes | None = None) -> Record | Damage | None:
    """The record in a file, or in the `data` read of it; what is wrong with it; or None where there is no file."""
    try:
        data = read_bounded(path, seal.MOST_JSON) if data is None else data
    except FileNotFoundError:
        return None
    except OSError as error:
        return Damage(Path(path), error.strerror or str(error), KEY.fullmatch(_key_in(path)) is None)
    strange = KEY.fullmatch(_key_in(path)) is None
    if not data.strip():
        return Damage(Path(path), "empty", strange)
    try:
        content = seal.unseal(data)
        record = records.read(content)
    except BadRecord as error:
        return Damage(Path(path), str(error), strange)
    except BadInput as error:
        if strange:
            return Damage(Path(path), str(error), strange)
        raise BadInput(f"{path}: {error}") from None
    except (ValueError, RecursionError):
        return Damage(Path(path), "not a record of statetrack", strange)
    if expected is not None:
        ours = record.cell == expected
    else:  # what 0.1.0 called a cell has another name
        ours = _is_named(path, record.cell if "format" in content else schema.read(Cell, content["cell"]))
    if not ours:
        return Damage(Path(path), "the record of another cell")
    wrong = _wrong_name(record.cell.task, record.cell.subject, str(record.cell.protocol.get("name")), record.cell.kind)
    return Damage(Path(path), wrong) if wrong else record


@functools.lru_cache(maxsize=4096)
def _wrong_name(task: str, subject: str, protocol: str, kind: str) -> str | None:
    """Why the names of a cell cannot be names; a language model is called whatever its server calls it."""
    for name in (task, subject, protocol):
        if CONTROL.search(name):
            return f"{name!r} holds control characters"
    try:
        for name in (task,) if kind == ASK else (task, subject):
            spec.parse(name)
    except BadInput as error:
        return str(error)
    return None


def _is_named(path: str | Path, cell: Cell) -> bool:
    return cell.key == _key_in(path)


def _key_in(path: str | Path) -> str:
    return os.path.basename(path).removesuffix(".json")


def _cell_in(data: bytes) -> Cell | None:
    with suppress(ValueError, TypeError, KeyError, RecursionError):
        return None if too_many_values(data) else schema.read(Cell, json.loads(data)["cell"])
    return None


def open_lock(path: Path) -> int:
    """A lock file, made where it is not there. That of another user can be read, which is enough to lock it."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except PermissionError:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)


def _write_quickly(path: Path, data: bytes) -> None:
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        try:
            part.write_bytes(data)
        except FileNotFoundError:  # the folder was removed while it was empty; to look first would cost as much
            path.parent.mkdir(parents=True, exist_ok=True)
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


def is_complete(store: Store, record: Record, streams: Iterable[int], words: int | None) -> bool:
    """Whether a finished record holds what is asked for. For hard words alone nothing is trained again: where no
    weights were kept, they stay untried.
    """
    if record.lacks(streams):
        return False
    return not (record.lacks_words(words) and store.weights(record.cell))


def add(store: Store, record: Network) -> Network:
    """Keep a record with what was evaluated since it was read; evaluations that others added meanwhile stay."""
    with store.adding():
        there = store.read(record.cell)
        if isinstance(there, type(record)) and (isinstance(there, EvaluatedRecord) or _one_training(there, record)):
            record = replace(there.with_evaluations(record.evaluations), evaluation_seconds=record.evaluation_seconds)
        store.write(record)
    return record


def _one_training(one: Record, other: Record) -> bool:
    return isinstance(one, TrainingRecord) and isinstance(other, TrainingRecord) and one.training == other.training
