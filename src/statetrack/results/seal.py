"""Checksums: what is read is what was written, or the file is damaged. Files of earlier versions have none.

A JSON file ends in the SHA-256 of all bytes before it. A safetensors file has it in its note, and it is that of the
file with zeros in its place.

>>> text = seal({"a": 1})
>>> text[:10], unseal(text)
(b'{"a": 1,\\n ', {'a': 1})
>>> unseal(text.replace(b"1", b"2", 1))
Traceback (most recent call last):
statetrack.results.schema.BadRecord: its checksum is wrong
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from statetrack.files import MOST_VALUES, open_plain, too_many_values
from statetrack.results.schema import BadRecord

SUM = "sha256"
WRONG = "its checksum is wrong"
MANY = f"more than the {MOST_VALUES:,} values that are read"
MOST_JSON = 2**26  # bytes of a JSON file; a record of a thousand long replies has some 2**22
MOST_HEADER = 2**26  # bytes of the header of a safetensors file
MOST_NUMBER = 2**63  # nothing that is counted here reaches it
PIECE = 2**20  # bytes read at a time

_BEFORE, _AFTER, _DIGITS = b',\n "sha256": "', b'"\n}\n', 64
_LENGTH = len(_BEFORE) + _DIGITS + len(_AFTER)
_RENAMED = re.compile(rb'"[^"]{5,7}": "[0-9a-f]{64}"\n}\n\Z')
_SHAPES = bytes.maketrans(b"123456789E", b"000000000e")  # all digits alike: searched faster than by a pattern
_LONG = (b"e000", b"e+000", b"0" * 19)  # what may be a number without bounds
_IN_NOTE = b'\\"sha256\\": \\"'  # a note is JSON text inside the JSON of the header
UNSEALED = "0" * _DIGITS


class NotOurs(BadRecord):
    """A whole file in which statetrack left no note."""


def seal(data: Mapping[str, Any], indent: int | None = None) -> bytes:
    """A mapping as a JSON file with its checksum at the end. With `indent`, every field stands in a line of its own."""
    if indent is None:
        body = json.dumps(data, allow_nan=False).removesuffix("}").encode()
    else:  # json.dumps would indent all that is inside too, in Python, which takes longer than all else here
        blanks = "\n" + " " * indent
        body = ("{" + ",".join(f"{blanks}{_dumps(name)}: {_dumps(each)}" for name, each in data.items())).encode()
    return b"".join((body, _BEFORE, hashlib.sha256(body).hexdigest().encode(), _AFTER))


def unseal(data: bytes) -> Any:
    """What `seal` was given. A file that never had a checksum is read as it is; a wrong one raises BadRecord."""
    tail = data[-_LENGTH:]
    if tail.startswith(_BEFORE) and tail.endswith(_AFTER):
        body = data[:-_LENGTH]
        if hashlib.sha256(body).hexdigest().encode() != tail[len(_BEFORE) : -len(_AFTER)]:
            raise BadRecord(WRONG)
        return _loads(body + b"}")  # without the checksum, which looks like a number without bounds
    held = _loads(data)
    if isinstance(held, dict) and (SUM in held or _RENAMED.search(data)):
        raise BadRecord(WRONG)
    return held


def _loads(data: bytes) -> Any:
    """JSON whose numbers are finite and of a size that can be counted with."""
    if too_many_values(data):
        raise BadRecord(MANY)
    try:
        if b"\\ud" in data:  # half a character can be written so, and then be sent nowhere: it becomes a question mark
            data = json.dumps(json.loads(data), ensure_ascii=False).encode(errors="replace")
        shapes = data.translate(_SHAPES)
        unbounded = _LONG[0] in shapes or _LONG[1] in shapes or _LONG[2] in shapes
        return (_careful if unbounded else _quick)(data.decode())
    except BadRecord:
        raise
    except (ValueError, RecursionError):
        raise BadRecord("not whole JSON") from None


def _no_number(text: str) -> NoReturn:
    raise BadRecord(f"{text} is not a number")


def _float(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_number(f"{text:.40}")


def _int(text: str) -> int:
    value = int(text)
    return value if abs(value) < MOST_NUMBER else _no_number(f"{text:.40}")


_dumps = json.JSONEncoder(allow_nan=False).encode
_quick = json.JSONDecoder(parse_constant=_no_number).decode
_careful = json.JSONDecoder(parse_constant=_no_number, parse_float=_float, parse_int=_int).decode


def seal_tensors(data: bytes) -> bytes:
    """A safetensors file whose note has UNSEALED for its checksum, with the checksum there."""
    at = data.index(_IN_NOTE) + len(_IN_NOTE)
    return b"".join((data[:at], hashlib.sha256(data).hexdigest().encode(), data[at + _DIGITS :]))


def check_tensors(path: Path) -> dict[str, Any]:
    """The note of a safetensors file whose checksum is right, or which has none; raises BadRecord or OSError."""
    with open_plain(path) as file:
        size = file.read(8)
        length = int.from_bytes(size, "little")
        if len(size) < 8 or not 2 <= length <= MOST_HEADER:
            raise BadRecord("not a safetensors file")
        header = file.read(length)
        at = header.find(_IN_NOTE) + len(_IN_NOTE)
        if at >= len(_IN_NOTE) and _sum(size, header, at, file) != header[at : at + _DIGITS]:
            raise BadRecord(WRONG)
    return _note(header)


def note_of(path: Path) -> dict[str, Any]:
    """The note of a safetensors file, whose checksum is not looked at; raises BadRecord or OSError."""
    with open_plain(path) as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= MOST_HEADER:
            raise BadRecord("not a safetensors file")
        return _note(file.read(length))


def _sum(size: bytes, header: bytes, at: int, file: BinaryIO) -> bytes:
    digest = hashlib.sha256(size + header[:at] + UNSEALED.encode() + header[at + _DIGITS :])
    while piece := file.read(PIECE):
        digest.update(piece)
    return digest.hexdigest().encode()


def _note(header: bytes) -> dict[str, Any]:
    if too_many_values(header):
        raise BadRecord(MANY)
    try:
        note = json.loads(json.loads(header)["__metadata__"]["statetrack"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise NotOurs("no file of statetrack") from None
    if not isinstance(note, dict):
        raise NotOurs("no file of statetrack")
    return note


def same_tensors(one: Path, other: Path) -> bool:
    """Whether two safetensors files hold the same numbers, whatever their notes say."""
    with open_plain(one) as first, open_plain(other) as second:
        for file in (first, second):
            file.seek(int.from_bytes(file.read(8), "little") % 2**40 + 8)
        while piece := first.read(PIECE):
            if piece != second.read(PIECE):
                return False
        return not second.read(1)
