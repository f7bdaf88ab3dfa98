"""Which group a set of permutations really is, whatever it is called.

The permutations generate a group; what can be computed from it without regard to names and points (its invariants) is
compared with the catalogue's groups of the same order. Equal invariants do not prove that two groups are the same in
general, but they tell apart all groups of the catalogue that are not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.data.maps import PermutationMap, texts
from statetrack.data.read import DataSet
from statetrack.errors import BadInput
from statetrack.tasks.catalogue import SUFFIX
from statetrack.tasks.groups import Group, canonical, catalogue, group
from statetrack.tasks.groups.group import MAX_ELEMENTS
from statetrack.tasks.groups.names import MATCHED

NAMING_FIELDS = ("group", "group_name", "name", "task")  # of a metadata file


@dataclass(frozen=True)
class StatedGroup:
    """The group that a data set says it is, and where it says so."""

    name: str
    source: str


def claim(data: DataSet, given: str | None) -> StatedGroup | None:
    """The name given by the caller, in the metadata, or in the name of the file or folder."""
    if given is not None:
        return StatedGroup(canonical(given.lower().removesuffix(SUFFIX)), "--group")
    for field in NAMING_FIELDS:
        name = _named_in(str(data.metadata.get(field, "")))
        if name and data.metadata_path:
            return StatedGroup(name, f"{field!r} in {data.metadata_path.name}")
    path = data.path.absolute()
    for place in (path.name, path.parent.name):
        if name := _named_in(place):
            return StatedGroup(name, f"the name {place}")
    return None


def _named_in(text: str) -> str | None:
    """The group whose name a text starts with: q8, q8_composition, q8-train.jsonl; psl2_4 rather than what is in it.

    >>> _named_in("PSL2_4_composition"), _named_in("q8.parquet"), _named_in("d55"), _named_in("train")
    ('psl2_4', 'q8', None, None)
    """
    lower = text.lower()
    if "<" in lower or "x" in lower:  # generators or a product, in the words of `statetrack data`
        try:
            return canonical(lower.partition("[")[0].removesuffix(SUFFIX))
        except BadInput:
            pass  # not a group's name after all
    for name in sorted((*catalogue(), *MATCHED), key=len, reverse=True):
        if re.match(rf"{name}(?![a-z0-9])", lower):
            return name
    return None


def generated(id_map: PermutationMap) -> Group:
    """The group that the map's permutations generate, from as few of them as it takes."""
    so_far = Group.from_generators([id_map.images[-1]])
    while so_far.order <= MAX_ELEMENTS:
        outside = np.flatnonzero(~np.isin(texts(id_map.images), texts(so_far.elements)))
        if not len(outside):
            break
        so_far = Group.from_generators([*so_far.generators, id_map.images[outside[len(outside) // 2]]])
    return so_far


def invariants(the_group: Group) -> dict[str, Any]:
    """What does not depend on how the group is written down."""
    if the_group.order > MAX_ELEMENTS:
        return {"order": the_group.order}
    return {
        "order": the_group.order,
        "element_orders": _counted(the_group.element_orders),
        "conjugacy_classes": int(the_group.conjugacy_classes.max()) + 1,
        "centre": len(the_group.centre),
        "derived_series": [below.order for below in the_group.derived_series],
        "abelianisation": abelian_type(the_group),
    }


def _counted(values: NDArray[np.int32]) -> dict[int, int]:
    return dict(zip(*(column.tolist() for column in np.unique(values, return_counts=True))))


def abelian_type(the_group: Group) -> list[int]:
    """The orders of the cyclic groups of prime power order whose product G / G' is; empty when G = G'.

    The elements x with p^k x = 0 are p^(r_1 + ... + r_k) many, where r_k is the number of factors of order p^k or more.

    >>> abelian_type(group("s5")), abelian_type(group("c12")), abelian_type(group("q8"))
    ([2], [3, 4], [2, 2])
    """
    orders = _coset_orders(the_group)
    factors = []
    for prime in (p for p in range(2, len(orders) + 1) if len(orders) % p == 0 and all(p % q for q in range(2, p))):
        killed = [1]
        while len(orders) // prime ** (len(killed) - 1) % prime == 0:
            killed.append(int((prime ** len(killed) % orders == 0).sum()))
        logs = np.round(np.log(killed) / np.log(prime)).astype(int)
        ranks = [*np.diff(logs).tolist(), 0]
        for power, (here, above) in enumerate(pairwise(ranks), 1):
            factors += [prime**power] * (here - above)
    return sorted(factors)


def _coset_orders(the_group: Group) -> NDArray[np.int64]:
    """The order of every element of G / G'."""
    quotient = the_group.abelianisation
    everything = np.arange(quotient.count)
    power, orders = everything, np.zeros(quotient.count, np.int64)
    for exponent in range(1, quotient.count + 1):
        orders[(power == 0) & (orders == 0)] = exponent
        if orders.all():
            break
        power = quotient.then(power, everything)
    return orders


def same_as(the_group: Group) -> list[str]:
    """The catalogue's names for a group."""
    own = invariants(the_group)
    names = (*catalogue(), *MATCHED)
    return [name for name in names if group(name).order == the_group.order and invariants(group(name)) == own]
