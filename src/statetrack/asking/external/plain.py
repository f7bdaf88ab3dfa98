"""JSON that others wrote: read in bounded memory, with numbers that can be counted with and names that can be shown.

A number that is none (NaN) or that nothing counts to is read as missing, wherever in the file it stands: a harness may
write it for a task that is not ours.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from statetrack.asking.external.archive import Unreadable
from statetrack.files import MOST_VALUES, read_bounded, too_many_values
from statetrack.formatting import visible
from statetrack.secrets import scrub

MOST_JSON = 2**26  # bytes of a JSON file
MOST_NUMBER = 2**53
LONGEST = 120  # letters of a name that is shown
NOT_JSON = "it is not whole JSON"


def _float(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _int(text: str) -> int | None:
    return value if len(text) < 18 and abs(value := int(text)) < MOST_NUMBER else None


_DECODER = json.JSONDecoder(parse_constant=lambda name: None, parse_float=_float, parse_int=_int)


def _check_count(data: bytes) -> None:
    if too_many_values(data):
        raise Unreadable(f"it holds more than the {MOST_VALUES:,} values that are read")


def loads(data: bytes) -> Any:
    _check_count(data)
    try:
        return _DECODER.decode(data.decode())
    except (ValueError, RecursionError):
        raise Unreadable(NOT_JSON) from None


def fields_before(last: str, data: bytes) -> dict[str, Any] | None:
    """The fields of an object before the one of this name, or all of them; None where the text ends or errs before it.
    It is gone through once, whatever stands in it.

    >>> fields_before("c", b'{"a": [1, {"c": 2}], "c": {"b'), fields_before("c", b'{"a": [1, {"c": 2')
    ({'a': [1, {'c': 2}]}, None)
    """
    _check_count(data)
    text = data.decode(errors="replace")
    found: dict[str, Any] = {}
    at = _behind_blanks(text, 0)
    try:
        if text[at] != "{":
            return None
        while text[at] != "}":
            key, at = _DECODER.raw_decode(text, _behind_blanks(text, at + 1))
            at = _behind_blanks(text, at)
            if not isinstance(key, str) or text[at] != ":":
                return None
            if key == last:
                return found
            found[key], at = _DECODER.raw_decode(text, _behind_blanks(text, at + 1))
            at = _behind_blanks(text, at)
            if text[at] not in ",}":
                return None
    except (ValueError, IndexError, RecursionError):
        return None
    return found


def _behind_blanks(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\n", "\r", "\t"):
        at += 1
    return at


def read(path: Path) -> Any:
    """The content of a JSON file."""
    try:
        return loads(read_bounded(path, MOST_JSON))
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from None


def mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is a mapping, else an empty one: what is missing is missed further down."""
    return value if isinstance(value, dict) else {}


def name(value: Any) -> str:
    """A name as it can be shown: on one line, not too long, without keys; nothing where it is no text.

    >>> name("gpt-4o"), name(None), name("https://me:secret@host/v1\\n")
    ('gpt-4o', '', 'https://***host/v1')
    """
    if not isinstance(value, str):
        return ""
    text = " ".join(visible(scrub(value[: 8 * LONGEST])).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 4]} ..."


def digits(text: str) -> str:
    """A text that is not shown, by the first digits of its hash.

    >>> digits("Be brief.")
    '213c22ed'
    """
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:8]


def model_name(value: Any) -> str:
    """The name of a model; of a folder on somebody's machine its last part.

    >>> model_name("org/net"), model_name("/home/me/models/net/"), model_name("hf//tmp/net")
    ('org/net', 'net', 'hf/net')
    """
    text = name(value)
    provider, _, rest = text.partition("/")
    if rest.startswith(("/", "./", "~", "../")):
        return f"{provider}/{Path(rest).name}" if provider else Path(rest).name
    return Path(text).name if text.startswith(("/", ".", "~")) else text
