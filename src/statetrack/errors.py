"""The ways in which statetrack says no, each in one line.

>>> from statetrack.errors import unknown
>>> print(unknown("group", "s55", ["s5", "s6", "a5"]))
unknown group 's55'; did you mean s5?
"""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import itertools
import os
import sysconfig
import traceback
from collections.abc import Callable, Iterable
from traceback import extract_tb
from types import ModuleType
from typing import Any, TypeVar, cast

VERBOSE = "STATETRACK_VERBOSE"  # the variable that -v sets, for workers to see it too
HERE = os.path.dirname(__file__)
LIBRARIES = {sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")}
MOST_SHOWN = 60  # characters of a wrong value
PART = 3  # letters of a name that are enough to find the rest

Call = TypeVar("Call", bound=Callable[..., Any])


class BadInput(ValueError):
    """What was asked for cannot be done: a wrong name, value or file. The command line prints it and exits with 2."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows, which asks for it by this name: the lines that were written there, and what is wrong.

        Where somebody's own code has failed behind it, all of it.
        """
        if self.__cause__ is not None:
            return "".join(traceback.format_exception(self)).splitlines()
        outside = itertools.takewhile(lambda frame: not _is_in(frame.filename, HERE), extract_tb(self.__traceback__))
        theirs = [frame for frame in outside if not any(_is_in(frame.filename, place) for place in LIBRARIES)]
        return [*(f"line {frame.lineno}: {frame.line}" for frame in theirs), f"{type(self).__name__}: {self}"]


class MissingExtra(BadInput):
    """A library that only some uses need is not installed."""


class OutOfMemory(BadInput):
    """What was asked for does not fit into memory, or not beside what is there."""


def _is_in(file: str, folder: str) -> bool:
    return os.path.abspath(file).startswith(os.path.join(folder, ""))


def one_line(error: BaseException) -> str:
    r"""What an error says, without line breaks, and behind its type unless it is our own.

    >>> one_line(BadInput("no such\n  task")), one_line(KeyError("x"))
    ('no such task', "KeyError: 'x'")
    """
    text = " ".join(str(error).split())
    return text if isinstance(error, BadInput) and text else f"{type(error).__name__}: {text}"


def show_cause(error: BaseException) -> None:
    """With `statetrack -v`, the traceback of what somebody's own code raised, in this process or in a worker."""
    if os.environ.get(VERBOSE) and error.__cause__ is not None:
        traceback.print_exception(error.__cause__)


def shortened(value: object, quoted: bool = True) -> str:
    """A wrong value as an error shows it, no longer than one reads.

    >>> shortened("few"), shortened("few", quoted=False), shortened([1] * 1000), shortened(2**20_000)
    ("'few'", 'few', '[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,...', 'a very long int')
    """
    try:
        text = repr(value) if quoted else str(value)
    except (ValueError, RecursionError):  # Python does not write out such a number
        return f"a very long {type(value).__name__}"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def unknown(what: str, name: str, known: Iterable[str]) -> BadInput:
    """The error for a name nobody knows, with the nearest names that somebody does."""
    names = sorted(set(known))
    near = _near(name.lower(), names)
    hint = f"did you mean {_shortened(near, 6)}?" if near else f"known: {_shortened(names, 12)}"
    return BadInput(f"unknown {what} {name!r}; {hint}")


def refusing_unknown(function: Call) -> Call:
    """A function that refuses an argument which it does not have with the nearest names that it has.

    >>> @refusing_unknown
    ... def train(*, batch=128): ...
    >>> train(bach=64)
    Traceback (most recent call last):
    statetrack.errors.BadInput: unknown argument of train 'bach'; did you mean batch?
    """
    known = inspect.signature(function).parameters

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        for name in named:
            if name not in known:
                raise unknown(f"argument of {function.__name__}", name, known)
        return function(*given, **named)

    return cast(Call, call)


def _near(name: str, names: list[str]) -> list[str]:
    """Names that begin with it, then names that hold it, the shortest first, then those that are spelt like it.

    >>> _near("rnn", ["gru", "linear-rnn", "m2rnn", "rnn-2"])
    ['rnn-2', 'm2rnn', 'linear-rnn']
    """
    holding = [candidate for candidate in names if len(name) >= PART and name in candidate.lower()]
    holding.sort(key=lambda candidate: (not candidate.lower().startswith(name), len(candidate), candidate))
    return list(dict.fromkeys([*holding, *difflib.get_close_matches(name, names, n=4, cutoff=0.6)]))


def _shortened(names: list[str], most: int) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"


def need(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional library where it is used, or name the pip line that brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtra(f"{purpose} needs {package}: {pip_line(extra)}") from error


def pip_line(extra: str) -> str:
    """The line that brings an extra to this installation: from where it came itself, which need not be an index."""
    import json  # here and below: seldom needed, and importing statetrack should stay quick
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin = distribution("statetrack").read_text("direct_url.json")
    except PackageNotFoundError:
        return f"pip install '.[{extra}]' in a clone of statetrack"
    return _pip_line(extra, json.loads(origin)) if origin else f"pip install 'statetrack[{extra}]'"


def _pip_line(extra: str, origin: dict[str, Any]) -> str:
    """By what pip has noted of where it took statetrack from.

    >>> _pip_line("hf", {"url": "file:///my/clone", "dir_info": {"editable": True}})
    "pip install -e '/my/clone[hf]'"
    >>> _pip_line("hf", {"url": "https://host/it.git", "vcs_info": {"vcs": "git", "commit_id": "2a90fac"}})
    "pip install 'statetrack[hf] @ git+https://host/it.git@2a90fac'"
    """
    from urllib.parse import unquote, urlsplit

    url, version = origin["url"], origin.get("vcs_info")
    if version:
        return f"pip install 'statetrack[{extra}] @ {version['vcs']}+{url}@{version['commit_id']}'"
    if not url.startswith("file:"):
        return f"pip install 'statetrack[{extra}] @ {url}'"
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return f"pip install {editable}'{unquote(urlsplit(url).path)}[{extra}]'"
