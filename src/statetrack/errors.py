"""The two ways in which statetrack says no, each in one line.

>>> from statetrack.errors import unknown
>>> print(unknown("group", "s55", ["s5", "s6", "a5"]))
unknown group 's55'; did you mean s5?
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from types import ModuleType


class BadInput(ValueError):
    """What was asked for cannot be: a wrong name, value or file. The command line prints it and exits with 2."""


class MissingExtra(BadInput):
    """A library that only some uses need is not installed."""


def unknown(what: str, name: str, known: Iterable[str]) -> BadInput:
    """The error for a name nobody knows, with the nearest names that somebody does."""
    names = sorted(set(known))
    near = difflib.get_close_matches(name.lower(), names, n=4, cutoff=0.6)
    hint = f"did you mean {', '.join(near)}?" if near else f"known: {_shortened(names)}"
    return BadInput(f"unknown {what} {name!r}; {hint}")


def _shortened(names: list[str], most: int = 12) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"


def need(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional library where it is used, or name the pip line that brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtra(f"{purpose} needs {package}: pip install 'statetrack[{extra}]'") from error
