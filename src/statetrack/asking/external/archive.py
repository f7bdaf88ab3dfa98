"""A log of Inspect's, an .eval file: a zip archive of JSON files, packed with zstandard; by earlier versions, deflated.

It comes from elsewhere. So nothing is unpacked to the disk, names in it are names and no paths, and what is unpacked in
memory is bounded: by entry, by file, and by the size of the list of entries, which zipfile reads as a whole.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from statetrack.errors import BadInput
from statetrack.files import open_plain

MOST_PACKED = 2**31  # bytes of a file
MOST_LIST = 2**25  # bytes of the list of its entries: some 300,000
MOST_ENTRY, MOST_ALL = 2**26, 2**30  # bytes that are unpacked of one entry, and of a file
PIECES = (2**18, 2**22, MOST_ENTRY)  # an entry is unpacked so far, and further where that does not tell all
CUT = "it is not whole, or not a log of Inspect's"
ZSTANDARD = 93  # the number of this way to pack in a zip file
END, FAR_END, FAR = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"


class Unreadable(BadInput):
    """Why a file of another program is left out."""


class Archive:
    """An .eval file that is open."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.left = file, MOST_ALL
        size = os.fstat(file.fileno()).st_size
        if size > MOST_PACKED:
            raise Unreadable(f"it has {size:,} bytes, more than the {MOST_PACKED:,} that are read")
        _check_list(file, size)
        with zipfile.ZipFile(file) as packed:
            self.entries = {entry.filename: entry for entry in packed.infolist()}

    def beginnings(self, name: str) -> Iterator[tuple[bytes, bool]]:
        """More and more of an entry, and whether it is all of it."""
        for most in PIECES:
            data = self._read(self.entries[name], most)
            whole = len(data) <= most
            yield data[:most], whole
            if whole:
                return
        raise Unreadable(f"{name:.80} unpacks to more than the {MOST_ENTRY:,} bytes that are read")

    def read(self, name: str) -> bytes:
        """The whole of an entry."""
        for data, whole in self.beginnings(name):
            if whole:
                return data
        raise Unreadable(f"{name:.80} cannot be read")

    def _read(self, entry: zipfile.ZipInfo, most: int) -> bytes:
        """So many bytes of it and one more, if there are."""
        with self._opened(entry) as stream:
            data = stream.read(min(most, self.left) + 1)
        self.left -= len(data)
        if len(data) == entry.file_size and zlib.crc32(data) != entry.CRC:
            raise Unreadable("its checksum is wrong")
        if self.left < 0:
            raise Unreadable(f"it unpacks to more than the {MOST_ALL:,} bytes that are read")
        return data

    @contextmanager
    def _opened(self, entry: zipfile.ZipInfo) -> Iterator[io.RawIOBase]:
        if entry.flag_bits & 1:
            raise Unreadable("it is encrypted")
        self.file.seek(entry.header_offset)
        head = self.file.read(30)
        if len(head) < 30 or head[:4] != b"PK\x03\x04":
            raise Unreadable(CUT)
        name, extra = struct.unpack("<HH", head[26:])
        self.file.seek(name + extra, os.SEEK_CUR)
        packed = _Packed(self.file, entry.compress_size)
        if entry.compress_type == zipfile.ZIP_STORED:
            yield packed
        elif entry.compress_type == zipfile.ZIP_DEFLATED:
            yield _Inflated(packed)
        elif entry.compress_type == ZSTANDARD:
            yield _Unpacked(packed)
        else:
            raise Unreadable(f"it is packed in a way that is not known here ({entry.compress_type})")


class _Packed(io.RawIOBase):
    """The bytes of an entry, from where the file stands on, of which no more is read than is asked for."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.file, self.left = file, size

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(self.left if size < 0 else min(size, self.left))
        self.left -= len(data)
        return data


class _Inflated(io.RawIOBase):
    """A deflated entry, of which no more is unpacked than is asked for."""

    def __init__(self, packed: _Packed) -> None:
        self.packed, self.inflate = packed, zlib.decompressobj(-15)

    def read(self, size: int = -1) -> bytes:
        data = b""
        while len(data) < size and not self.inflate.eof:
            piece = self.inflate.unconsumed_tail or self.packed.read(PIECES[0])
            if not piece:
                break
            data += self.inflate.decompress(piece, size - len(data))
        return data


class _Unpacked(io.RawIOBase):
    """The same of an entry that is packed with zstandard, in one frame or several."""

    def __init__(self, packed: _Packed) -> None:
        try:
            import zstandard
        except ImportError:
            raise Unreadable("reading it takes zstandard: pip install zstandard") from None
        self.error = zstandard.ZstdError
        self.stream = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(
            cast(Any, packed), read_across_frames=True
        )

    def read(self, size: int = -1) -> bytes:
        data = b""
        try:
            while len(data) < size and (more := self.stream.read(size - len(data))):
                data += more
        except self.error:
            raise Unreadable(CUT) from None
        return data


def _check_list(file: BinaryIO, size: int) -> None:
    """Refuse an archive whose list of entries is larger than is read."""
    file.seek(max(0, size - 2**16 - 22))
    tail = file.read()
    at = tail.rfind(END)
    if at < 0 or len(tail) < at + 22:
        raise Unreadable(CUT)
    (length,) = struct.unpack("<L", tail[at + 12 : at + 16])
    if (far := tail.rfind(FAR)) >= 0 and len(tail) >= far + 20:
        file.seek(min(struct.unpack("<Q", tail[far + 8 : far + 16])[0], size))
        head = file.read(56)
        if len(head) == 56 and head.startswith(FAR_END):
            (length,) = struct.unpack("<Q", head[40:48])
    if length > MOST_LIST:
        raise Unreadable(f"its list of entries has {length:,} bytes, more than the {MOST_LIST:,} that are read")
    file.seek(0)


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """An .eval file; what is wrong with it raises Unreadable."""
    try:
        with open_plain(path) as file:
            yield Archive(file)
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from None
    except (zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, UnicodeDecodeError):
        raise Unreadable(CUT) from None
