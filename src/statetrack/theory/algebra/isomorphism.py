"""Whether two groups are the same group in other clothes.

Different classes, sizes or orders of elements tell most groups apart; abelian groups are the same when their elements
have the same orders. Otherwise generators g_1, g_2, ... of one are matched with elements h_1, h_2, ... of the other:
it is an isomorphism exactly when the pairs (g_i, h_i), acting side by side on both sets of points, generate a group
no larger than each of the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.tasks.groups import Group, catalogue, group
from statetrack.tasks.groups.chain import Chain
from statetrack.tasks.groups.group import MAX_ELEMENTS
from statetrack.tasks.groups.names import MATCHED
from statetrack.tasks.groups.permutations import MAX_DEGREE

SEARCHED = 1000
"""Generators are matched in groups of up to this order. Larger ones are told apart, or are simple and so known by
their order.
"""


@cache
def _by_order() -> dict[int, list[str]]:
    names: dict[int, list[str]] = {}
    for name in (*catalogue(), *MATCHED):
        names.setdefault(group(name).order, []).append(name)
    return names


def names_of_order(order: int) -> list[str]:
    """The catalogue's groups of this order."""
    return _by_order().get(order, [])


def catalogue_names(the_group: Group) -> tuple[str, ...]:
    """The catalogue's names for this group, its own included.

    >>> catalogue_names(group("<(0 1 2),(0 1)>"))
    ('s3', 'd3', 'psl2_2')
    """
    return tuple(
        name for name in names_of_order(the_group.order) if name == the_group.name or isomorphic(the_group, group(name))
    )


def isomorphic(one: Group, other: Group) -> bool:
    """Whether two groups are isomorphic. Beyond order 1,000, groups that are not simple count as different."""
    if one.order != other.order or one.is_abelian != other.is_abelian or one.order > MAX_ELEMENTS:
        return False
    if not np.array_equal(_profile(one), _profile(other)):
        return False
    if one.is_abelian:
        return True
    if one.order > SEARCHED:
        from statetrack.theory.algebra.structure import composition_factors

        factors = composition_factors(one)
        return len(factors) == 1 and factors == composition_factors(other)
    return one.degree + other.degree <= MAX_DEGREE and any(_extends(one, images) for images in _matches(one, other))


def _profile(the_group: Group) -> NDArray[Any]:
    """The size and the order of its elements, for every class, sorted."""
    sizes = np.bincount(the_group.conjugacy_classes)
    orders = the_group.element_orders[np.unique(the_group.conjugacy_classes, return_index=True)[1]]
    return np.column_stack([orders, sizes])[np.lexsort((sizes, orders))]


def _matches(one: Group, other: Group) -> Iterator[NDArray[Any]]:
    """Elements of the other group that could be the images of the generators: alike alone and in products of two.

    The first image is taken up to conjugation, so that one element of each class is enough.
    """
    generators = np.asarray(one.id_of(one.generators))
    first = np.unique(other.conjugacy_classes, return_index=True)[1]
    kinds_one, kinds_other = _kinds(one), _kinds(other)
    partial = [[int(x)] for x in first if kinds_other[x] == kinds_one[generators[0]]]
    for place in range(1, len(generators)):
        alike = np.flatnonzero([kind == kinds_one[generators[place]] for kind in kinds_other])
        longer = []
        for images in partial:
            fits = np.ones(len(alike), bool)
            for before, image in zip(generators[:place].tolist(), images):
                wanted = _signature(one, before, np.array([generators[place]]))
                fits &= (_signature(other, image, alike) == wanted).all(axis=1)
            longer += [[*images, int(x)] for x in alike[fits]]
        partial = longer
    for images in partial:
        yield other.elements[images]


def _kinds(the_group: Group) -> list[tuple[int, int]]:
    sizes = np.bincount(the_group.conjugacy_classes)[the_group.conjugacy_classes]
    return list(zip(the_group.element_orders.tolist(), sizes.tolist()))


def _signature(the_group: Group, x: int, ys: NDArray[Any]) -> NDArray[Any]:
    """The orders of xy, x y^-1 and of the commutator, for every y."""
    xy, back = the_group.then(x, ys), the_group.then(x, the_group.inverse(ys))
    commutator = the_group.then(xy, the_group.then(the_group.inverse(x), the_group.inverse(ys)))
    return np.column_stack([the_group.element_orders[part] for part in (xy, back, commutator)])


def _extends(one: Group, images: NDArray[Any]) -> bool:
    """Whether sending the generators to these images is an isomorphism."""
    if Chain(images.shape[1], images).order != one.order:
        return False
    beside = np.hstack([one.generators, images + one.degree]).astype(np.uint8)
    return Chain(beside.shape[1], beside).order == one.order
