"""The groups inside a transition monoid, by Green's relations.

Two maps are H-equivalent when they have the same image and the same kernel (the pairs of states that they no longer
tell apart) and lie in a group. A group of the monoid is the set of maps that share image and kernel with an
idempotent e: such a map permutes the image of e, so it acts there as a permutation. All groups of one D-class are
isomorphic, so one is shown for each. For maps m that lie in groups, image and kernel in the monoid decide what they
decide among all maps, because the inverse of m is a power of m and so is in the monoid as well.

Worked by hand: over the states 0, 1, 2 let a = [1, 0, 0] (it swaps 0 and 1 and sends 2 to 0). Its image is {0, 1},
its square is [0, 1, 1], again with the image {0, 1}: a and a*a form the group C2, although no letter is a
permutation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.tasks.groups.permutations import MAX_DEGREE
from statetrack.theory.algebra.monoid import Maps, Monoid, image_masks, kernels


@dataclass(frozen=True)
class Subgroup:
    """One group of the monoid that is not trivial: its maps as permutations of the image of its identity.

    `members` are the maps' numbers in the monoid, the identity's first. `stable` are the permutations that words of
    one common length make (see `quasi_aperiodic`).
    """

    members: NDArray[np.int64]
    permutations: Maps
    stable: Maps

    @property
    def order(self) -> int:
        return len(self.members)


def subgroups(monoid: Monoid) -> list[Subgroup]:
    """The groups in the monoid that are not trivial, one for each D-class that has some."""
    moving = monoid.in_group & ~monoid.idempotent
    if not moving.any():
        return []
    candidates = np.flatnonzero(np.isin(monoid.ranks, np.unique(monoid.ranks[moving])))
    maps = monoid.elements[candidates]
    kernel, image = _numbered(kernels(maps)), _numbered(np.packbits(image_masks(maps), axis=1))
    pairs = kernel * (image.max() + 1) + image
    occurring = np.unique(pairs)
    grouped = moving[candidates]
    left = {int(pair): (int(k), int(i)) for pair, k, i in zip(pairs[grouped], kernel[grouped], image[grouped])}
    groups = []
    while left:
        pair, (k, i) = next(iter(left.items()))
        groups.append(_subgroup(monoid, candidates[pairs == pair]))
        # e and f are in one D-class when a map leads from the kernel of each to the image of the other
        others = np.array(list(left.values()))
        width = image.max() + 1
        same = np.isin(k * width + others[:, 1], occurring) & np.isin(others[:, 0] * width + i, occurring)
        for gone in [key for key, linked in zip(list(left), same) if linked]:
            del left[gone]
    return groups


def partial_subgroups(monoid: Monoid, most: int = 8) -> list[Maps]:
    """Permutations that lie together in a group of a monoid that was not written out: the sets with most members seen.

    What they generate is in the monoid for certain.
    """
    moving = np.flatnonzero(monoid.in_group & ~monoid.idempotent)
    if not len(moving):
        return []
    maps = monoid.elements[moving]
    kernel, image = _numbered(kernels(maps)), _numbered(np.packbits(image_masks(maps), axis=1))
    pairs = kernel * (image.max() + 1) + image
    names, counts = np.unique(pairs, return_counts=True)
    groups = []
    for pair in names[np.argsort(-counts, kind="stable")][:most]:
        rows = maps[pairs == pair]
        points = np.unique(rows[0])
        if len(points) <= MAX_DEGREE:
            groups.append(np.searchsorted(points, rows[:, points]))
    return groups


def quasi_aperiodic(groups: list[Subgroup]) -> bool:
    """Whether no set of words of one common length makes a group that is not trivial.

    Such a task is in AC0, even where its monoid is not aperiodic: (aa)* over the letter a alone has the monoid C2,
    but words of even length make only its identity and words of odd length only the other element.
    """
    return all(len(group.stable) == 1 for group in groups)


def _subgroup(monoid: Monoid, members: NDArray[np.int64]) -> Subgroup:
    members = members[np.argsort(~monoid.idempotent[members], kind="stable")]
    image = np.unique(monoid.elements[members[0]])
    permutations = np.searchsorted(image, monoid.elements[np.ix_(members, image)])
    stable = permutations[_lengths(monoid, members) == 0]
    return Subgroup(members, permutations, stable)


def _lengths(monoid: Monoid, members: NDArray[np.int64]) -> NDArray[np.int64]:
    """The length, modulo d, of the words that make each member; d is the greatest common divisor of the lengths for e.

    If u makes e and v makes g, then e*v = g, and any two words that lead from e to g differ in length by a multiple
    of d: with a word back to e both close a loop. So lengths modulo d are a homomorphism of the group, and the words
    of one length t make, for some t, exactly its kernel. Loops at e stay among the maps that can come back to e: the
    R-class of e.
    """
    start = int(members[0])
    level = _levels_from(monoid, start)
    inside = np.flatnonzero(level >= 0)
    sources = np.repeat(inside, monoid.right.shape[1])
    targets = monoid.right[inside].ravel()
    within = level[targets] >= 0
    sources, targets = sources[within], targets[within]
    back = np.zeros(len(level), bool)
    back[start] = True
    while True:
        more = np.unique(sources[back[targets] & ~back[sources]])
        if not len(more):
            break
        back[more] = True
    loops = back[sources] & back[targets]
    divisor = int(np.gcd.reduce(level[sources[loops]] + 1 - level[targets[loops]]))
    return level[members] % divisor


def _levels_from(monoid: Monoid, start: int) -> NDArray[np.int64]:
    """How many letters lead from a map to each map of the same rank; -1 where none do."""
    level = np.full(len(monoid), -1)
    level[start] = 0
    edge, depth = np.array([start]), 0
    while len(edge):
        depth += 1
        reached = np.unique(monoid.right[edge])
        edge = reached[(level[reached] < 0) & (monoid.ranks[reached] == monoid.ranks[start])]
        level[edge] = depth
    return level


def _numbered(rows: NDArray[Any]) -> NDArray[np.int64]:
    """Equal rows get equal numbers."""
    whole = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).reshape(-1)
    return np.unique(whole, return_inverse=True)[1].astype(np.int64)
