"""Whether code that a text names, `file.py:Class` or `package.module:Class`, may be imported.

A record, an archive and a sweep file come from anywhere, and to import is to run. So what one of them names is refused
unless the user

    names it in this call:    statetrack train txc mine.py:Mine, task("mine.py:Mine"), --trust mine.py:Mine
    says that all may run:    --trust-code, trust_code=True; what is run is then printed
    has run it before:        this address with this hash stands in the list in the user's own settings folder

>>> require("mine.py:Mine", "ab12")
Traceback (most recent call last):
statetrack.trust.Untrusted: mine.py:Mine is code of a file that may come from elsewhere, and is not run: ...
>>> with trusting("mine.py:Mine"):
...     require("mine.py:Mine", "ab12")
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from statetrack.errors import BadInput

SETTINGS = "STATETRACK_CONFIG"  # the variable that names another settings folder
LIST = "trusted"  # the file there: a line for each hash and address
MOST_BYTES = 2**24  # of the list

_named: frozenset[str] = frozenset()  # addresses that may run, whatever their hash
_everything = False
_remembered: set[tuple[str, str]] = set()  # (hash, address) of this process, where the list cannot be written
_told: set[tuple[str, str]] = set()


class Untrusted(BadInput):
    """Code that somebody's file names, and that the user has not allowed."""


@contextmanager
def trusting(*addresses: str, everything: bool = False) -> Iterator[None]:
    """Within this, the code at these addresses may be imported, or all code that is named."""
    global _named, _everything
    before = _named, _everything
    _named, _everything = _named | set(addresses), _everything or everything
    try:
        yield
    finally:
        _named, _everything = before


class Allowed(NamedTuple):
    """What may run within this call, for a process that is to do a part of it."""

    named: frozenset[str]
    everything: bool


def allowed() -> Allowed:
    return Allowed(_named, _everything)


CODE = "is code of a file that may come from elsewhere, and is not run"


def require(address: str, sha256: str, what: str = CODE) -> None:
    """Refuse code that the user has not allowed (Untrusted). `sha256` is the whole hash of all that would be run,
    `what` says what it is and that it is not done.
    """
    if address in _named or _known(address, sha256):
        return
    if not _everything:
        once = ", or run it by its name once" if what == CODE else ""
        raise Untrusted(
            f"{address} {what}: name it with --trust {shlex.quote(address)} (in Python trust={address!r}){once}, "
            "or say --trust-code (trust_code=True); docs/security.md says more"
        )
    if (sha256, address) not in _told:
        _told.add((sha256, address))
        print(f"statetrack: --trust-code: running {address}, sha256 {sha256 or 'unknown'}", file=sys.stderr, flush=True)


def remember(address: str, sha256: str) -> None:
    """Note that the user has run this code, so that records that name it can be read again."""
    if not sha256 or _known(address, sha256):
        return
    _remembered.add((sha256, address))
    folder = settings_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(folder / LIST, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(f"{sha256} {json.dumps(address)}\n")
    except OSError as error:
        said = f"{folder / LIST} cannot be written ({error.strerror}): {address} is trusted in this call only"
        print(f"statetrack: {said}", file=sys.stderr, flush=True)


def settings_folder() -> Path:
    """$STATETRACK_CONFIG, or statetrack in $XDG_CONFIG_HOME, which is ~/.config where it is not set."""
    if own := os.environ.get(SETTINGS):
        return Path(own)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "statetrack"


def _known(address: str, sha256: str) -> bool:
    return bool(sha256) and ((sha256, address) in _remembered or (sha256, address) in set(_listed()))


def _listed() -> Iterable[tuple[str, str]]:
    path = settings_folder() / LIST
    if not path.is_file():
        return
    with path.open("rb") as file:
        lines = file.read(MOST_BYTES).decode(errors="replace").splitlines()
    for line in lines:
        sha256, _, written = line.partition(" ")
        try:
            yield sha256, json.loads(written)
        except ValueError:  # a line that somebody else wrote allows nothing
            continue
