"""Replies that no record holds yet: KEY.replies.jsonl, a line for each with its number in the episode, the key of its
cell and a checksum.

`asking/journal.py` writes them. Lines of earlier versions name no cell; a journal with a line of another cell is none
of this one. A damaged journal is never written over: it is set aside first. An episode is what its record holds and,
behind that, what its journal holds. Of two episodes of one cell, one that begins like the other adds nothing to it;
where they differ, both are kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import uuid
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statetrack.errors import BadInput, shortened
from statetrack.files import copy_whole, read_bounded, write_whole
from statetrack.results import conflicts, records, seal
from statetrack.results.conflicts import Conflict
from statetrack.results.records import AskedRecord, Record
from statetrack.results.store import Damage, Store, read_record

ENDING = "replies.jsonl"
NAME = re.compile(r"([0-9a-f]{20})\.replies\.jsonl")
ASIDE = re.compile(r"([0-9a-f]{20})\.[0-9a-f]{8}\.conflict\.replies\.jsonl")
MOST_BYTES = 2**30  # of a journal that is read
NO_RECORD = "an episode without a record"
LOST = "is not whole; the replies from there on are asked for again"
FOREIGN = "is of another cell:"
DAMAGED = ".damaged"


@dataclass(frozen=True)
class Line:
    """A reply: its number in the episode, its fields, the bytes of the line, and the key of its cell if it is there."""

    number: int
    reply: dict[str, Any]
    data: bytes
    key: str = ""


def write_line(number: int, reply: Mapping[str, Any], key: str = "") -> bytes:
    """A line of a journal."""
    text = json.dumps({"number": number, "reply": reply} | ({"cell": key} if key else {}))
    return f'{text[:-1]}, "crc32": {zlib.crc32(text.encode())}}}\n'.encode()


def read_line(data: bytes) -> Line | None:
    """What a line holds; None for one that is damaged."""
    try:
        held = json.loads(data)
        number, reply, key = held["number"], held["reply"], held.get("cell", "")
        kinds = type(number) is int and isinstance(reply, dict) and isinstance(key, str)
        whole = kinds and data == write_line(number, reply, key)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return Line(number, reply, data, key) if whole else None


def lines(path: Path) -> Iterator[Line]:
    """The lines of a journal up to the first that is not whole; none of one that is not there or of another cell."""
    found = [read_line(data) for data in _data(path).splitlines(keepends=True)]
    if any(line is not None and _is_foreign(line, path) for line in found):
        return
    for line in found:
        if line is None:
            return
        yield line


def _is_foreign(line: Line, path: Path) -> bool:
    """Whether a line names another cell than its journal."""
    return bool(line.key) and line.key != path.name[:20]


def _data(path: Path) -> bytes:
    try:
        return read_bounded(path, MOST_BYTES)
    except OSError:
        return b""


def problem(path: Path) -> str | None:
    """What is wrong with a journal. A last line that is not whole is not: its writer was killed."""
    try:
        data = read_bounded(path, MOST_BYTES).splitlines(keepends=True)
    except OSError as error:
        return error.strerror or str(error)
    found = [read_line(line) for line in data]
    for place, line in enumerate(found, start=1):
        if line is not None and _is_foreign(line, path):
            return f"its line {place} {FOREIGN} {shortened(line.key)}"
    broken = found.index(None) + 1 if None in found else None
    torn = broken == len(data) and not data[-1].endswith(b"\n")
    return f"its line {broken} {LOST}" if broken and not torn else None


def set_aside(path: Path, whole: bytes = b"") -> Path:
    """Move a damaged journal out of the way, and leave its `whole` lines: KEY.replies.jsonl.HASH.damaged holds all."""
    try:
        mark = hashlib.sha256(read_bounded(path, MOST_BYTES)).hexdigest()[:8]
    except OSError:  # too large, or no plain file
        mark = uuid.uuid4().hex[:8]
    kept = path.with_name(f"{path.name}.{mark}{DAMAGED}")
    try:
        os.replace(path, kept)
    except OSError as error:
        raise BadInput(f"{path} is damaged and cannot be moved: {error.strerror or error}") from error
    if whole:
        write_whole(path, whole)
    return kept


def damaged(folder: Path) -> Iterator[Path]:
    """The journals that were set aside because they were damaged."""
    yield from sorted(folder.glob(f"*.{ENDING}.*{DAMAGED}"))


def journals(folder: Path) -> dict[str, Path]:
    """The journals of a folder, by the keys of their cells."""
    found = ((NAME.fullmatch(path.name), path) for path in sorted(folder.glob(f"*.{ENDING}")))
    return {name[1]: path for name, path in found if name and path.is_file()}


def aside(folder: Path) -> Iterator[Path]:
    """The journals of episodes that were set aside for others of their cells."""
    yield from (path for path in sorted(folder.glob(f"*.conflict.{ENDING}")) if ASIDE.fullmatch(path.name))


def beside(path: Path) -> Path:
    """Where the journal of a record lies that was set aside."""
    return path.with_name(path.name.removesuffix("json") + ENDING)


@dataclass(frozen=True)
class Episode:
    """What a folder holds of an episode."""

    key: str
    journal: Path
    record: Record | None
    lines: tuple[Line, ...]

    @classmethod
    def of(cls, store: Store, key: str) -> Episode:
        path = store.folder / f"{key}.{ENDING}"
        record = read_record(store.folder / f"{key}.json")
        return cls(key, path, None if isinstance(record, Damage) else record, tuple(lines(path)))

    @property
    def finished(self) -> bool:
        return self.record is not None and self.record.finished

    @property
    def recorded(self) -> list[str]:
        return self.record.episode.replies if isinstance(self.record, AskedRecord) else []

    @property
    def replies(self) -> list[tuple[str, str | None]]:
        """Text and reasoning of every reply without a gap; a record does not hold the reasoning."""
        told: list[tuple[str, str | None]] = [(text, None) for text in self.recorded]
        later = {line.number: line.reply for line in self.lines}
        while (reply := later.get(len(told))) is not None:
            told.append((_sendable(reply.get("text")), _sendable(reply.get("reasoning"))))
        return told

    @property
    def loose(self) -> bool:
        """Whether its journal goes on from replies that are not here."""
        return bool(self.lines) and self.lines[0].number > len(self.recorded)

    def beats(self, other: Episode) -> bool:
        """A result before an episode that was cut off; of two of those the longer."""
        return (self.finished, len(self.replies)) > (other.finished, len(other.replies))

    def holds(self, other: Episode) -> bool:
        """Whether the other has nothing that this one lacks."""
        ours, theirs = self.replies, other.replies
        return not other.loose and len(theirs) <= len(ours) and all(map(_same, ours, theirs))


def _sendable(text: Any) -> str:
    """As a record holds it, without halves of characters."""
    return str(text).encode("utf-8", "replace").decode()


def _same(one: tuple[str, str | None], other: tuple[str, str | None]) -> bool:
    return one[0] == other[0] and (None in (one[1], other[1]) or one[1] == other[1])


def take(store: Store, home: Store, key: str) -> tuple[bool, Conflict | None]:
    """Take over what another folder holds of an episode: whether theirs is the one that counts now, and what was set
    aside.
    """
    ours, theirs = Episode.of(home, key), Episode.of(store, key)
    if ours.record is None and not ours.lines:
        _adopt(home, theirs)
        return True, None
    taken = theirs.beats(ours)
    first, second = (theirs, ours) if taken else (ours, theirs)
    if first.holds(second):
        if ours.record and theirs.record:
            home.write(records.unite(ours.record, theirs.record))
        elif theirs.record:
            home.write(theirs.record)
        if taken and theirs.lines:
            _copy(theirs.journal, ours.journal)
        return taken, None
    found = _aside(home.folder, second)
    if taken:
        _adopt(home, theirs)
    return taken, found


def _adopt(home: Store, episode: Episode) -> None:
    """Put an episode in the place of what is there."""
    target = home.folder / f"{episode.key}.{ENDING}"
    if episode.journal.is_file():  # whole or not
        _copy(episode.journal, target)
    else:
        target.unlink(missing_ok=True)
    if episode.record is not None:
        copy_whole(episode.journal.with_name(f"{episode.key}.json"), home.path(episode.record.cell))


def _copy(journal: Path, target: Path) -> None:
    if problem(target) and target.exists():
        set_aside(target)
    copy_whole(journal, target)


def _aside(folder: Path, episode: Episode) -> Conflict:
    """Keep an episode beside the one that counts: its record, if that holds replies, and its journal."""
    record, journal = episode.record if episode.recorded else None, b"".join(line.data for line in episode.lines)
    if record and not journal:
        return conflicts.set_aside(folder, record, None, conflicts.REPLIES)
    told = seal.seal(records.write(record), indent=1) if record else b""
    path = conflicts.path_for(folder, episode.key, told + journal)
    write_whole(beside(path), journal)
    if told:
        write_whole(path, told)
    return conflict(beside(path))


def take_aside(journal: Path, folder: Path) -> Conflict:
    """Keep an episode that was set aside in another folder."""
    record = journal.with_name(journal.name.removesuffix(ENDING) + "json")
    for path in filter(Path.is_file, (journal, record)):
        copy_whole(path, folder / path.name)
    return conflict(folder / journal.name)


def conflict(journal: Path) -> Conflict:
    """What a journal that was set aside is named by: its record, if it has one."""
    path = journal.with_name(journal.name.removesuffix(ENDING) + "json")
    for found, record in conflicts.aside(journal.parent, journal.name[:20]):
        if found == path and isinstance(record, Record):
            return Conflict(path, str(record.cell), conflicts.REPLIES)
    return Conflict(journal, NO_RECORD, conflicts.REPLIES)
