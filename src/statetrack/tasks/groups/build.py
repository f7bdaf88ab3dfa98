"""From a name to a group."""

from __future__ import annotations

from functools import lru_cache

from statetrack.tasks.groups.group import Group
from statetrack.tasks.groups.names import canonical, generators


def group(name: str) -> Group:
    """The group of a name; the same object for the same name.

    >>> group("A5").order, group("a4xz5").order, group("<(0 1 2 3 4),(0 1)>").order
    (60, 60, 120)
    """
    return _group(canonical(name))


@lru_cache(maxsize=128)
def _group(name: str) -> Group:
    return Group(generators(name), name)
