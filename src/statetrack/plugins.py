"""What installed packages add: tasks, models, diagnostics and figures, by entry points in the groups named here.

    [project.entry-points."statetrack.tasks"]
    lamp = "lamps.task:Lamp"

What is broken, or carries a name that is taken, is left out with one line on stderr, and stops nothing else.
docs/extend.md shows a package that adds one of each.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable, Container
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from statetrack.errors import BadInput, one_line
from statetrack.formatting import visible

TASKS, MODELS = "statetrack.tasks", "statetrack.models"
DIAGNOSTICS, FIGURES = "statetrack.diagnostics", "statetrack.figures"

Added = TypeVar("Added")


def offered(group: str, taken: Container[str]) -> dict[str, EntryPoint]:
    """What packages offer in a group, by name in lower case and before it is loaded; `taken` names are not given away.

    >>> offered("statetrack.nothing", taken=())
    {}
    """
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=group):
        name = point.name.lower()
        if name in taken:
            say(f"{label(point)} is left out: statetrack has that name already")
        elif name in found:
            say(f"{label(point)} is left out: {label(found[name])} has that name already")
        else:
            found[name] = point
    return found


def load(point: EntryPoint, kind: type[Added]) -> Added:
    """What an entry point names; raises BadInput where that cannot be imported or is not of this kind."""
    try:
        added = point.load()
    except (Exception, SystemExit) as error:  # importing somebody's package may raise anything
        raise BadInput(f"{point.value} cannot be loaded: {one_line(error)}") from error
    if not isinstance(added, kind):
        raise BadInput(f"{point.value} is of the type {type(added).__name__}, not {kind.__name__}")
    return added


def loaded(group: str, taken: Container[str], read: Callable[[EntryPoint], Added]) -> dict[str, Added]:
    """Everything of a group that can be read, as `read` gives it."""
    found = {}
    for name, point in offered(group, taken).items():
        try:
            found[name] = read(point)
        except (Exception, SystemExit) as error:  # so may looking at what it offers
            say(f"{label(point)} is left out: {one_line(error)}")
    return found


def label(point: EntryPoint) -> str:
    """
    >>> label(EntryPoint("lamp", "lamps.task:Lamp", TASKS))
    'lamp (statetrack.tasks)'
    """
    package = f" of {point.dist.name} {point.dist.version}" if point.dist else ""
    return f"{point.name}{package} ({point.group})"


@functools.cache
def say(line: str) -> None:
    """A line on stderr, once."""
    print(f"statetrack: {visible(line)}", file=sys.stderr, flush=True)


@functools.cache
def usable(library: str) -> bool:
    """Whether a library that only makes things faster is there and can be imported; one that is broken is named."""
    if importlib.util.find_spec(library) is None:
        return False
    try:
        importlib.import_module(library)
    except Exception as error:  # one that does not fit its numpy or llvmlite raises what comes
        say(f"{library} is installed and cannot be used ({one_line(error)}); numpy and torch take its place")
        return False
    return True
