"""Sets of catalogued groups, by what is computed of them.

A word problem over a solvable group lies in TC0, over one that is not solvable it is complete for NC1 (Barrington
1989).
"""

from __future__ import annotations

from collections.abc import Callable

from statetrack.errors import unknown
from statetrack.tasks.groups.build import group
from statetrack.tasks.groups.group import Group
from statetrack.tasks.groups.names import catalogue

SELECTORS: dict[str, Callable[[Group], bool]] = {
    "permutation_groups": lambda group: True,
    "tc0_groups": lambda group: group.is_solvable,
    "nc1_groups": lambda group: not group.is_solvable,
}


def selector(name: str) -> list[str]:
    """The names of the catalogue's groups that a selector takes.

    >>> len(selector("permutation_groups")), selector("nc1_groups")[:3]
    (94, ['s5', 's6', 's7'])
    """
    if name.lower() not in SELECTORS:
        raise unknown("selector", name, SELECTORS)
    return [member for member in catalogue() if SELECTORS[name.lower()](group(member))]
