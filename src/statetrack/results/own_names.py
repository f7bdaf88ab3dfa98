"""What tables call tasks and models of one's own, whose code may have changed since they were run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from statetrack import spec
from statetrack.errors import BadInput
from statetrack.formatting import short_names, without_hash
from statetrack.identity import Identity, identity
from statetrack.own_code import HASH


def names_now(names: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Short names; whole ones, with the hash, where that of the code as it lies there now is another, or where there
    are several. And a line for each such code: which of them it is now. Nothing of it is run.

    >>> names_now(["mlp", "gone.py:Net[sha256=4f46d472]"])
    ({'mlp': 'mlp', 'gone.py:Net[sha256=4f46d472]': 'gone.py:Net'}, [])
    """
    known = list(dict.fromkeys(names))
    short, lines = short_names(known), []
    for address, of in _by_address(known).items():
        now = _now(address)
        here = [sha256 for sha256 in of if now and now.is_called(sha256)]
        if len(of) == len(here) or (now is None and len(of) < 2):
            continue
        short |= {name: name for same in of.values() for name in same}
        lines.append(_said(address, now, here, [sha256 for sha256 in of if sha256 not in here]))
    return short, lines


def _by_address(names: Iterable[str]) -> dict[str, dict[str, list[str]]]:
    """The names that hold a hash, by the address of the code and by that hash."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name in names:
        if without_hash(name) != name:
            address, given = _read(name)
            if HASH in given:
                found[address][given[HASH]].append(name)
    return found


def _read(name: str) -> tuple[str, dict[str, str]]:
    try:
        return spec.parse(name)
    except BadInput:  # a record may hold any text
        return name, {}


def _now(address: str) -> Identity | None:
    """What lies there now; None where nothing can be found."""
    try:
        return identity(address)
    except (BadInput, OSError, ValueError):
        return None


def _said(address: str, now: Identity | None, here: list[str], others: list[str]) -> str:
    if now is None:
        return f"{address}: cells of {len(others)} versions of its code ({', '.join(others)}); none lies there now"
    if here:
        return f"{address}: {', '.join(here)} is the code as it is now, {', '.join(others)} that of before a change"
    run = ", ".join(others)
    return f"{address} has changed: these cells are of {run}, the code as it is now is {now.text}"
