"""Keys and tokens are kept out of everything that is written or shown."""

from __future__ import annotations

import os
import re

HIDDEN = "***"
_NAMES = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL)S?$")
_SHAPES = re.compile(
    r"(?i:(?<=bearer )\S+)|(?i:(?<=api[-_]key[=:])\s*[^\s&\"',}]+)|\bsk-[A-Za-z0-9_-]{8,}|\bhf_[A-Za-z0-9]{8,}|(?<=://)[^/\s@]+@"
)
_LEAST = 8  # a shorter value would blot out ordinary words


def scrub(text: str) -> str:
    """A text without the values of environment variables that hold keys, and without what looks like a key.

    >>> scrub("401: Authorization: Bearer abc.def at https://me:pass@host/v1")
    '401: Authorization: Bearer *** at https://***host/v1'
    """
    values = {value for name, value in os.environ.items() if _NAMES.search(name.upper()) and len(value) >= _LEAST}
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    return _SHAPES.sub(HIDDEN, text)
