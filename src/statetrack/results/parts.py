"""A packed folder in parts that are each below a size, for mail and other small doors.

    demo.1of3.tar.gz  demo.2of3.tar.gz  demo.3of3.tar.gz

Each part is a tar file of its own, which ends in the list of the SHA-256 of what is in it. It begins with PART.json:
which part it is, of how many, and of which set (the SHA-256 of the lists of all). So the names of the files do not
matter. A file that has no room in one part lies in several as NAME.piece1, NAME.piece2, ...
"""

from __future__ import annotations

import gzip
import hashlib
import re
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from statetrack.errors import BadInput, shortened
from statetrack.files import check_parent, read_start, together
from statetrack.results.schema import BadRecord, plain, read
from statetrack.results.seal import seal, unseal

ENDINGS = (".tar", ".tar.gz", ".tgz")
LIST, HEAD = "SHA256SUMS", "PART.json"
SMALLEST, MOST_PARTS = 16_000, 9_999  # bytes of a part; how many there may be
MOST_NAMED = 5  # missing parts
LEAST_PIECE = 4096  # bytes of a file that are worth a piece
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}  # the smaller reading: 15M passes every door of 15 MB
BLOCK = tarfile.BLOCKSIZE
COPIED = 2**20  # bytes at a time
START = 4096  # bytes of a part that its head is surely in

_NAME = re.compile(r"(?P<stem>.*)\.(?P<number>\d{1,4})of(?P<count>\d{1,4})(?P<ending>\.tar|\.tar\.gz|\.tgz)")
_PIECE = re.compile(r"(?P<name>.+)\.piece(?P<number>[1-9]\d{0,6})")
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)([kmg]?)b?", re.IGNORECASE)
_SET = re.compile(r"[0-9a-f]{64}")


def size_in_bytes(text: str) -> int:
    """
    >>> size_in_bytes("15M"), size_in_bytes("500k"), size_in_bytes("1.5GB"), size_in_bytes("20000")
    (15000000, 500000, 1500000000, 20000)
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise BadInput(f"size {shortened(text)} should be a number of bytes, such as 15M, 500k or 1G")
    return int(float(found[1]) * UNITS[found[2].lower()])


def check_ending(archive: Path) -> None:
    if not archive.name.endswith(ENDINGS):
        raise BadInput(f"{archive} should end in {', '.join(ENDINGS)}")


def gzip_stream(file: IO[bytes]) -> gzip.GzipFile:
    """A stream into a file, the same bytes whenever it is written."""
    return gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0)


def as_member(name: str, size: int) -> tarfile.TarInfo:
    """A file of a tar file, with nothing of this machine in it."""
    one = tarfile.TarInfo(name)
    one.size, one.mode = size, 0o644
    return one


def line(data: bytes | memoryview, name: str) -> str:
    """Of the list that an archive ends in, as `sha256sum` writes it."""
    return f"{hashlib.sha256(data).hexdigest()}  {name}\n"


class _Filling:
    """A part without its head, as far as it is filled: the end of a file that all parts are first written to."""

    def __init__(self, file: IO[bytes], archive: Path, most: int) -> None:
        self.file, self.start, self.most = file, file.tell(), most
        self.stream = file if archive.name.endswith(".tar") else gzip_stream(file)
        self.list = ""
        self.waiting = 0  # bytes that were written and may be in the compressor still

    def room(self, name: str, wanted: int) -> int:
        """How many bytes of a file surely fit, whatever they are; beyond `wanted` it need not be all."""
        if self.waiting and self._room(name) < wanted:
            self.stream.flush()
            self.waiting = 0
        return self._room(name)

    def _room(self, name: str) -> int:
        used = self.file.tell() - self.start + self.waiting
        return _room(self.most - used, len(self.list), name)

    def add(self, name: str, data: bytes | memoryview) -> None:
        self.list += line(data, name)
        self._write(name, data)

    def _write(self, name: str, data: bytes | memoryview) -> None:
        for block in (as_member(name, len(data)).tobuf(), data, bytes(-len(data) % BLOCK)):
            self.stream.write(block)
            self.waiting += len(block)

    def close(self) -> None:
        self._write(LIST, self.list.encode())
        self.stream.write(bytes(2 * BLOCK))
        if self.stream is not self.file:
            self.stream.close()
        self.size = self.file.tell() - self.start


def _room(left: int, listed: int, name: str) -> int:
    """What is left for the bytes of one more file: beside them a part needs its list, its end and what pads them, and
    bytes that cannot be compressed grow by a third of a thousandth.
    """
    longer = listed + len(line(b"", f"{name}.piece{10**6}"))
    around = BLOCK + (BLOCK + longer + BLOCK) + 2 * BLOCK + BLOCK
    return max(0, (left - around - 256) * 1000 // 1001)


def _head(number: int, count: int, of: str, archive: Path) -> bytes:
    """The first file of a part. Where parts are compressed it is a stream of its own that is not, so that its length
    is always the same.
    """
    told = seal(plain(_Told(number, count, of)))
    blocks = as_member(HEAD, len(told)).tobuf() + told.ljust(BLOCK, b"\0")
    return blocks if archive.name.endswith(".tar") else gzip.compress(blocks, compresslevel=0, mtime=0)


def write_parts(files: Iterable[tuple[str, bytes]], archive: Path, size: int) -> list[Path]:
    """Write named files into as many parts below a size as it takes, all of them or none; where they are."""
    check_ending(archive)
    check_parent(archive)
    if size < SMALLEST:
        raise BadInput(f"parts below {size:,} bytes are too small; from {SMALLEST:,} on it can be done")
    most = size - 1 - len(_head(1, 1, "0" * 64, archive))
    with tempfile.TemporaryFile(dir=archive.absolute().parent) as file:  # it has no name: a kill leaves nothing
        try:
            parts = _filled(files, file, archive, most)
        except OSError as error:
            raise BadInput(f"{archive} cannot be written: {error}") from error
        of = set_of(part.list for part in parts)
        paths = [archive.with_name(part_name(archive, number, len(parts))) for number in range(1, len(parts) + 1)]
        with together(*paths) as temporary:
            file.seek(0)
            for number, (part, path) in enumerate(zip(parts, temporary), 1):
                with path.open("wb") as target:
                    target.write(_head(number, len(parts), of, archive))
                    _copy(file, target, part.size)
    return paths


def _copy(source: IO[bytes], target: IO[bytes], count: int) -> None:
    while count:
        count -= target.write(source.read(min(count, COPIED)))


def _filled(files: Iterable[tuple[str, bytes]], file: IO[bytes], archive: Path, most: int) -> list[_Filling]:
    """Parts one behind the other in a file. Only what does not fit into an empty part is cut."""
    parts = [_Filling(file, archive, most)]
    for name, data in files:
        rest, pieces = memoryview(data), 0
        while rest or not pieces:
            room = parts[-1].room(name, len(rest))
            if parts[-1].list and len(rest) > room and (room < LEAST_PIECE or len(rest) <= _room(most, 0, name)):
                parts[-1].close()
                parts.append(_Filling(file, archive, most))
                continue
            pieces += 1
            whole = pieces == 1 and len(rest) <= room
            parts[-1].add(name if whole else f"{name}.piece{pieces}", rest[:room])
            rest = rest[room:]
        if len(parts) > MOST_PARTS:
            raise BadInput(f"{archive} would take more than {MOST_PARTS:,} parts; take a larger size")
    parts[-1].close()
    return parts


def set_of(lists: Iterable[str]) -> str:
    """What the parts of one folder have in common: the SHA-256 of their lists."""
    return hashlib.sha256("".join(lists).encode()).hexdigest()


def part_name(archive: Path, number: int, count: int) -> str:
    """
    >>> part_name(Path("demo.tar.gz"), 2, 12)
    'demo.02of12.tar.gz'
    """
    ending = next(ending for ending in ENDINGS if archive.name.endswith(ending))
    return f"{archive.name.removesuffix(ending)}.{number:0{len(str(count))}}of{count}{ending}"


@dataclass(frozen=True)
class _Told:
    """PART.json."""

    part: int
    of: int
    set: str


@dataclass(frozen=True)
class Part:
    """An archive to be read: a part as its head tells, or a whole one, which is the only one of its set."""

    path: Path
    number: int = 1
    count: int = 1
    of: str = ""  # the set; none of a whole archive

    def __str__(self) -> str:
        return f"{self.path} (part {self.number} of {self.count})" if self.of else str(self.path)


def look(path: Path) -> Part | None:
    """Which part a file is; None where it is none, or its head is damaged. Raises OSError."""
    data = read_start(path, START)
    try:
        if data.startswith(b"\x1f\x8b"):
            data = zlib.decompressobj(wbits=31).decompress(data, 2 * BLOCK)
        first = tarfile.TarInfo.frombuf(data[:BLOCK], "utf-8", "surrogateescape")
        if first.name != HEAD:
            return None
        told = read(_Told, unseal(data[BLOCK : BLOCK + first.size]))
    except (zlib.error, tarfile.HeaderError, BadRecord):
        return None
    right = 1 <= told.part <= told.of <= MOST_PARTS and _SET.fullmatch(told.set)
    return Part(path, told.part, told.of, told.set) if right else None


def in_order(archives: Sequence[Path]) -> list[list[Part]]:
    """Archives as they are to be read: each whole one alone, and the parts of a set from the first to the last. Those
    that are not named are looked for beside those that are.
    """
    sets: dict[str, dict[int, Part]] = {}
    for number, path in enumerate(archives):
        part = _found(path)
        sets.setdefault(part.of or str(number), {}).setdefault(part.number, part)
    return [_completed(parts) for parts in sets.values()]


def _found(path: Path) -> Part:
    """The part, or the whole archive, that somebody named."""
    try:
        part = look(path)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}{_in_parts(path)}") from error
    named = _NAME.fullmatch(path.name)
    if part is None and named:
        raise BadInput(f"{path} (part {int(named['number'])} of {int(named['count'])}) is damaged; nothing was taken")
    return part or Part(path)


def _in_parts(path: Path) -> str:
    """Where an archive of this name was packed in parts, that one of them is to be named."""
    names = [other.name for other in path.absolute().parent.glob("*")]
    found = [named for named in map(_NAME.fullmatch, names) if named and named["stem"] + named["ending"] == path.name]
    first = min((named[0] for named in found), default=None)
    return f"; it was packed in parts: name one of them, {path.with_name(first)}" if first else ""


def _completed(parts: dict[int, Part]) -> list[Part]:
    one = next(iter(parts.values()))
    if len(parts) < one.count:
        for path in _candidates(list(parts.values())):
            with suppress(OSError):
                other = look(path)
                if other and other.of == one.of:
                    parts.setdefault(other.number, other)
    missing = [number for number in range(1, one.count + 1) if number not in parts]
    if missing:
        raise BadInput(f"{_missing(missing, one)}; nothing was taken")
    return [parts[number] for number in sorted(parts)]


def _candidates(parts: list[Part]) -> Iterator[Path]:
    """Files beside parts that may be others: those that are named so first, as a copy may be older."""
    one, folders = parts[0], {part.path.absolute().parent: None for part in parts}
    for folder in folders:
        paths = sorted(path for path in folder.iterdir() if path.name.endswith(ENDINGS))
        stem = _NAME.fullmatch(one.path.name)
        yield from sorted(paths, key=lambda path: not (stem and path.name.startswith(f"{stem['stem']}.")))


def _missing(numbers: list[int], one: Part) -> str:
    """Which parts are not there, and of the first of them whether it is there and damaged."""
    path = _beside(one, numbers[0])
    if path and path.exists():
        return f"{path} (part {numbers[0]} of {one.count}) is damaged, or a part of something else"
    shown = ", ".join(map(str, numbers[:MOST_NAMED])) + (", ..." if len(numbers) > MOST_NAMED else "")
    many = len(numbers) > 1
    where = f"; looked beside {one.path}" if not path else f": no {path.name} beside {one.path}"
    return f"part{'s' if many else ''} {shown} of {one.count} {'are' if many else 'is'} missing{where}"


def _beside(one: Part, number: int) -> Path | None:
    """Where another part should lie, if this one has the name that it was given."""
    named = _NAME.fullmatch(one.path.name)
    if named is None or int(named["number"]) != one.number or int(named["count"]) != one.count:
        return None
    return one.path.with_name(f"{named['stem']}.{number:0{len(named['number'])}}of{one.count}{named['ending']}")


def piece_of(name: str) -> tuple[str, int]:
    """The file that a member is of, and which piece of it, 0 for the whole.

    >>> piece_of("3f0c.safetensors.piece2"), piece_of("3f0c.json")
    (('3f0c.safetensors', 2), ('3f0c.json', 0))
    """
    found = _PIECE.fullmatch(name)
    return (found["name"], int(found["number"])) if found else (name, 0)
