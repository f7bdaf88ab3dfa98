"""How many reflections per token a linear recurrence needs for a group: the least r, computed from characters.

A product of r reflections moves at most r dimensions, and an orthogonal map that moves m dimensions is a product of m
reflections (Cartan and Dieudonne). So inputs g of a group can act by r reflections each, in a representation that
tells all elements apart, exactly when the group has a faithful real representation in which every input moves at most
r dimensions.

Worked by hand: S3 acts on a triangle; a swap is one reflection, a 3-cycle a turn: r = 2, or r = 1 if only swaps are
inputs. S4 is the group of turns of a cube: every turn moves two dimensions, so r = 2, although a 4-cycle is three
swaps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.tasks.groups import Group
from statetrack.theory.algebra.characters import real_representations
from statetrack.theory.algebra.structure import abelian_factors

LARGEST = 1000
"""Characters are computed for groups up to this order."""
NODES = 200_000
"""Sums of representations looked at before the search gives up and says so."""


@dataclass(frozen=True)
class Reflections:
    """The least number of reflections per token for a group and its inputs.

    `least` puts the whole representation into one state. `each` lets its irreducible parts stand side by side, each
    in a head of its own that makes its own reflections; `heads` of them are enough. The states need as many rows as
    the representation has dimensions: `dimension` in one state, `largest` for the largest part. Where `exact` is False,
    `least` is an upper bound.
    """

    least: int
    each: int
    heads: int
    exact: bool
    dimension: int
    largest: int


def least_reflections(group: Group, letters: NDArray[np.int64] | None = None) -> Reflections:
    """The least r for inputs with these IDs, or for all elements.

    Beyond order 1,000 the representation that permutes the points gives upper bounds.

    >>> from statetrack.tasks.groups import group
    >>> [least_reflections(group(name)).least for name in ("c2", "s3", "s4", "a5", "s5", "z5_2")]
    [1, 2, 2, 2, 4, 4]
    """
    if group.order == 1:
        return Reflections(0, 0, 1, True, 0, 0)
    if group.order > LARGEST:
        swaps = _swaps_by_orbit(group, letters)
        largest = max(map(len, orbits(group)))
        return Reflections(sum(swaps), max(swaps), len(swaps), False, group.degree, largest)
    table = group.cayley
    inputs = np.arange(group.order) if letters is None else np.unique(letters)
    if letters is None and np.array_equal(table, table.T):
        moved = [1 if factor == 2 else 2 for factor in abelian_factors(group.element_orders)]
        return Reflections(sum(moved), max(moved), len(moved), True, sum(moved), max(moved))
    representations = real_representations(table)
    columns = np.unique(representations.class_of[inputs])
    nontrivial = ~representations.kernel.all(axis=1)
    moved_by = representations.moved[nontrivial][:, columns]
    lost = ~representations.minimal_normal()[:, None, :] | representations.kernel[nontrivial][None, :, :]
    return _search(moved_by, np.logical_not(lost.all(axis=2)), representations.dimension[nontrivial])


def swaps_needed(group: Group, letters: NDArray[np.int64] | None = None) -> int:
    """The most swaps of points that one input is made of in one orbit: points minus cycles.

    Permuting points moves as many dimensions; each orbit may have a head of its own.

    >>> from statetrack.tasks.groups import group
    >>> swaps_needed(group("s5")), swaps_needed(group("z2_3"))
    (4, 1)
    """
    return max(_swaps_by_orbit(group, letters))


def _swaps_by_orbit(group: Group, letters: NDArray[np.int64] | None) -> list[int]:
    images = group.elements if letters is None else group.elements[letters]
    return [len(orbit) - _fewest_cycles(images[:, orbit]) for orbit in orbits(group)]


def orbits(group: Group) -> list[NDArray[np.intp]]:
    """The sets of points that the generators connect."""
    least = np.arange(group.degree)
    while True:
        before = least
        for generator in group.generators:
            least = np.minimum(least, least[generator])
        least = least[least]
        if np.array_equal(least, before):
            return [np.flatnonzero(least == first) for first in np.unique(least)]


def _fewest_cycles(images: NDArray[Any]) -> int:
    """The least number of cycles of any row, fixed points counted: each cycle has one point that is its own least.

    Doubling finds it: the least among the next 2^i points of a cycle, for i = 1, 2, ....
    """
    points = np.unique(images[0])
    hop = np.searchsorted(points, images)
    everyone = np.arange(len(points))
    least = np.broadcast_to(everyone, hop.shape)
    for _ in range(max(1, (len(points) - 1).bit_length())):
        least = np.minimum(least, np.take_along_axis(least, hop, axis=1))
        hop = np.take_along_axis(hop, hop, axis=1)
    return int((least == everyone).sum(axis=1).min())


def _search(moved: NDArray[np.int64], covers: NDArray[np.bool_], dimensions: NDArray[np.int64]) -> Reflections:
    """The least possible maximum of a sum of rows of `moved`, where the rows chosen cover every row of `covers`.

    covers[n, r] says that representation r is not trivial on the minimal normal subgroup n; a representation is
    faithful when none of these is lost.
    """
    everything = int(moved.sum(axis=0).max())
    best, dimension, nodes, exact = everything + 1, int(dimensions.sum()), 0, True
    stack = [(np.zeros(moved.shape[1], np.int64), np.zeros(len(covers), bool), 0)]
    while stack:
        total, covered, size = stack.pop()
        nodes += 1
        if nodes > NODES:
            exact = False
            break
        if total.max(initial=0) >= best:
            continue
        if covered.all():
            best, dimension = int(total.max()), size
            continue
        options = np.flatnonzero(covers[int(np.argmin(covered))])
        sums = total + moved[options]
        # The most promising one last, to be taken first: it moves least, and of those it is the smallest.
        for at in np.lexsort((-dimensions[options], -sums.max(axis=1))):
            choice = options[at]
            stack.append((sums[at], covered | covers[:, choice], size + int(dimensions[choice])))
    each, heads, largest = _side_by_side(moved.max(axis=1), covers, dimensions)
    return Reflections(min(best, everything), each, heads, exact, dimension, largest)


def _side_by_side(
    most: NDArray[np.int64], covers: NDArray[np.bool_], dimensions: NDArray[np.int64]
) -> tuple[int, int, int]:
    """The least r for which the representations that move at most r are faithful together, how many are enough, and
    the dimensions of the largest of these.
    """
    each = next(int(r) for r in np.unique(most) if covers[:, most <= r].any(axis=1).all())
    left, sizes, chosen = covers[:, most <= each], dimensions[most <= each], []
    while len(left):
        choice = np.lexsort((sizes, -left.sum(axis=0)))[0]  # what covers most, and of those the smallest
        left = left[~left[:, choice]]
        chosen.append(int(sizes[choice]))
    return each, len(chosen), max(chosen)
