r"""Keys and tokens are kept out of everything that is written or shown.

A secret is the value of an environment variable whose name says so, and whatever `remember` was told. It is found
whole and in pieces of eight characters or more, in either case, backwards, in letters of another width or weight, with
other signs between its letters, in hex, base32 and base64, also twice, and behind percent, JSON, Python and HTML
escapes.

>>> remember("loop-back-key-0123456789")
>>> scrub("sent bG9vcC1iYWNrLWtleS0wMTIzNDU2Nzg5, got %6coop-back%2Dkey and 6c6f6f702d6261636b")
'sent ***, got *** and ***'
"""

from __future__ import annotations

import base64
import functools
import html
import logging
import os
import re
import sys
import threading
import traceback
import unicodedata
import warnings
from collections.abc import Mapping
from types import TracebackType
from typing import Any

HIDDEN = "***"
PIECE = 8  # characters of a key that are enough to be hidden; a shorter value would blot out ordinary words
_NAMES = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL)S?$")
_SHAPES = re.compile(
    r"(?i:(?<=bearer )\S+)|(?i:(?<=api[-_]key[=:])\s*[^\s&\"',}]+)|\bsk-[A-Za-z0-9_-]{8,}|\bhf_[A-Za-z0-9]{8,}|(?<=://)[^/\s@]+@"
)
# One backslash at a time: before it others are signs like any other, and a million of them take no longer than letters.
_ESCAPE = re.compile(
    r"(?:%(?:25)*|\\x|(?<![0-9a-z])0x)(?P<two>[0-9a-f]{2})|(?:\\|%)(?-i:u)(?P<four>[0-9a-f]{4})"
    r"|\\(?-i:U)(?P<eight>[0-9a-f]{8})|(?:\\u\{|&#x)0{0,99}(?P<some>[0-9a-f]{1,6})(?:\}|;?)"
    r"|&#0{0,99}(?P<decimal>[0-9]{1,7});?|\\(?P<octal>[0-3]?[0-7]{2})|\\N\{(?P<name>[a-z0-9 -]{1,60})\}"
    r"|(?P<entity>&\w{1,31};)",
    re.IGNORECASE,
)
_BASES = {"decimal": 10, "octal": 8}  # of the numbers in an escape; the others are hexadecimal
_NESTED = 8  # escapes within escapes that are looked into
_given: set[str] = set()


def remember(secret: str | None) -> None:
    """Hide this text too from now on, wherever it came from."""
    if secret and len(secret) >= PIECE:
        _given.add(secret)


def remember_named(options: Mapping[str, Any]) -> None:
    """Remember those of some options that hold a key by their names, and all headers."""
    for name, value in options.items():
        for secret in value.values() if isinstance(value, Mapping) else [value]:
            if isinstance(secret, str) and (isinstance(value, Mapping) or _NAMES.search(name.upper())):
                remember(secret)


def scrub(text: str) -> str:
    """A text without the keys that are known here, and without what looks like a key.

    >>> scrub("401: Authorization: Bearer abc.def at https://me:pass@host/v1")
    '401: Authorization: Bearer *** at https://***host/v1'
    """
    secrets, paths = _known()
    for value in paths:
        text = text.replace(value, HIDDEN)
    pieces = _pieces(secrets)
    shown = _SHAPES.sub(HIDDEN, _blotted(text, _found(text, pieces)) if pieces else text)
    return shown.replace(2 * HIDDEN, HIDDEN)  # the shape of one key may hold a piece of another


def _known() -> tuple[frozenset[str], set[str]]:
    """The secrets, and paths to credentials, whose folders are no secret."""
    values = {value for name, value in os.environ.items() if _NAMES.search(name.upper()) and len(value) >= PIECE}
    paths = {value for value in values if os.path.exists(value)}
    return frozenset(_given | values - paths), paths


def scrubbed(value: Any) -> Any:
    """Plain data with every text in it scrubbed, the names of fields among them, and numbers that hold digits of a
    key.
    """
    return _scrubbed(value, any(piece.isdigit() for piece in _pieces(_known()[0])))


def _scrubbed(value: Any, numbers: bool) -> Any:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, Mapping):
        return {_scrubbed(key, numbers): _scrubbed(held, numbers) for key, held in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_scrubbed(held, numbers) for held in value)
    if numbers and type(value) in (int, float):
        return value if scrub(str(value)) == str(value) else 0
    return scrub(value.decode("latin-1")).encode("latin-1") if isinstance(value, bytes) else value


def scrub_error(error: BaseException | None) -> None:
    """Scrub what an error, and whatever led to it, says: its arguments and its fields."""
    met: set[int] = set()
    while error is not None and id(error) not in met:
        met.add(id(error))
        error.args = tuple(scrubbed(part) for part in error.args)
        for name, value in list(vars(error).items()):
            if isinstance(value, str | bytes | list | tuple | dict):
                setattr(error, name, scrubbed(value))
        error = error.__cause__ or error.__context__


@functools.lru_cache(maxsize=64)
def _pieces(secrets: frozenset[str]) -> frozenset[str]:
    """All runs of eight characters in any of the secrets' spellings, in lower case."""
    spellings = {spelling.lower() for secret in secrets for spelling in _spellings(secret)}
    return frozenset(text[at : at + PIECE] for text in spellings for at in range(len(text) - PIECE + 1))


def _spellings(secret: str) -> list[str]:
    data = secret.encode()
    coded = _in_base64(data)
    made = [secret, _letters(secret), data.hex(), base64.b32encode(data).decode().rstrip("="), *coded]
    made += [twice for inner in coded[::2] for twice in _in_base64(inner.encode())]
    return [*made, secret[::-1], _letters(secret)[::-1]]


def _in_base64(data: bytes) -> list[str]:
    """The signs that stand for these bytes alone: a text looks different behind one or two other bytes."""
    made = []
    for before in range(3):
        coded = base64.b64encode(b"\0" * before + data).decode()
        inner = coded[(0, 2, 3)[before] : len(coded) - (0, 3, 2)[(before + len(data)) % 3]]
        made += [inner, inner.translate(str.maketrans("+/", "-_"))]
    return made


def _letters(text: str) -> str:
    return "".join(sign for sign in text if sign.isalnum())


def _found(text: str, pieces: frozenset[str]) -> list[tuple[int, int]]:
    """Where pieces stand in a text, read as it is, without what is no letter, and with its escapes undone."""
    found: list[tuple[int, int]] = []
    signs, places = _plain_letters(text), [(at, at + 1) for at in range(len(text))]
    for _ in range(_NESTED + 1):
        found += _matches(signs, places, pieces)
        letters = [at for at, sign in enumerate(signs) if sign.isalnum()]
        if len(letters) < len(signs):
            found += _matches("".join(signs[at] for at in letters), [places[at] for at in letters], pieces)
        undone = _unescaped(signs, places)
        if undone is None:
            break
        signs, places = undone
    return found


def _plain_letters(text: str) -> str:
    """Letters of full width, bold ones and the like as plain ones, each in its place."""
    if text.isascii():
        return text
    folded = ((unicodedata.normalize("NFKC", sign), sign) for sign in text)
    return "".join(plain if len(plain) == 1 else sign for plain, sign in folded)


def _matches(signs: str, places: list[tuple[int, int]], pieces: frozenset[str]) -> list[tuple[int, int]]:
    low = signs.lower()
    if len(low) != len(signs):  # lower case makes some letters two
        low = signs
    starts = [at for at in range(len(low) - PIECE + 1) if low[at : at + PIECE] in pieces]
    return [(places[at][0], places[at + PIECE - 1][1]) for at in starts]


def _unescaped(signs: str, places: list[tuple[int, int]]) -> tuple[str, list[tuple[int, int]]] | None:
    made: list[str] = []
    where: list[tuple[int, int]] = []
    last = 0
    for match in _ESCAPE.finditer(signs):
        sign = _escaped(match)
        if len(sign) != 1:
            continue
        made += [signs[last : match.start()], sign]
        where += [*places[last : match.start()], (places[match.start()][0], places[match.end() - 1][1])]
        last = match.end()
    return ("".join([*made, signs[last:]]), [*where, *places[last:]]) if made else None


def _escaped(match: re.Match[str]) -> str:
    """The sign that an escape stands for; nothing, or more than one sign, for what is none."""
    kind = str(match.lastgroup)
    if kind == "entity":
        return html.unescape(match[kind])
    if kind == "name":
        try:
            return unicodedata.lookup(match[kind])
        except KeyError:
            return ""
    number = int(match[kind], _BASES.get(kind, 16))
    return chr(number) if number <= sys.maxunicode else ""


def _blotted(text: str, spans: list[tuple[int, int]]) -> str:
    """The text with each stretch of overlapping spans hidden."""
    parts: list[str] = []
    at = 0
    for begin, end in sorted(spans):
        if begin > at or not parts:
            parts += [text[at:begin], HIDDEN]
        at = max(at, end)
    return "".join([*parts, text[at:]])


def guard() -> None:
    """From now on no log record, warning and traceback of this process shows a key, of whichever thread; once only,
    however often it is called.
    """
    if not isinstance(logging.getLogRecordFactory(), _CleanRecords):
        logging.setLogRecordFactory(_CleanRecords(logging.getLogRecordFactory()))
    if not isinstance(sys.excepthook, _CleanTraceback):
        sys.excepthook = _CleanTraceback()
        threading.excepthook = sys.unraisablehook = _clean_elsewhere
    if not isinstance(warnings.showwarning, _CleanWarnings):
        warnings.showwarning = _CleanWarnings(warnings.showwarning)


class _CleanRecords:
    """Makes log records whose message and traceback are clean before any handler has them."""

    def __init__(self, make: Any) -> None:
        self.make = make

    def __call__(self, *arguments: Any, **more: Any) -> logging.LogRecord:
        record: logging.LogRecord = self.make(*arguments, **more)
        told = record.getMessage()
        if (clean := scrub(told)) != told:
            record.msg, record.args = clean, ()
        if record.exc_info and record.exc_info[1] is not None:
            scrub_error(record.exc_info[1])
        return record


class _CleanTraceback:
    """What Python prints for an error that nobody caught."""

    def __call__(self, kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
        sys.stderr.write(scrub("".join(traceback.format_exception(kind, error, at))))


def _clean_elsewhere(told: Any) -> None:
    """The same for a thread, and for what goes wrong where nobody can catch it."""
    sys.stderr.write(scrub("".join(traceback.format_exception(told.exc_type, told.exc_value, told.exc_traceback))))


class _CleanWarnings:
    """Shows warnings: those of pydantic repeat what a server sent."""

    def __init__(self, show: Any) -> None:
        self.show = show

    def __call__(self, message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        told = str(message)
        clean = scrub(told)
        self.show(message if clean == told else clean, category, *place, **more)
