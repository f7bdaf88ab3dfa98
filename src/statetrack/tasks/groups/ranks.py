"""From the images of the base to the ID, by a few table look-ups.

Elements are sorted, so all elements that agree on the first base points stand together, and how many they are does
not depend on which ones: it is the order of the stabiliser. The base is cut into chunks. The images s_b of a chunk
are read as one number, and the ID is a sum over the chunks of how many elements come before:

    place = origin
    for each chunk:   place += sum of weight_b * s_b;   id += before[place];   place = following[place]

Rows of the tables that would be equal are kept once: in S9, what can follow the images of 0, 1 and 2 depends on which
three points they are, not on their order, so there are 84 rows and not 504.

Worked by hand: S3 has the base (0, 1); in one chunk the weights are 3 and 1. [1, 2, 0] is read as 3 * 1 + 2 = 5.
Before it come 1, from [0, 1, 2], then 2, from [0, 2, 1], and 3, from [1, 0, 2]. So before[5] = 3, which is its ID.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from statetrack.tasks.groups.permutations import Images

ENOUGH = 1 << 18
"""Tables of up to this many entries are small enough for the cache: the base is then not cut any finer."""


@dataclass(frozen=True)
class Ranks:
    """The tables of one group. Chunk c holds the base's points number cuts[c]..cuts[c+1]-1."""

    cuts: NDArray[np.int64]
    weights: NDArray[np.int32]
    origin: int
    before: NDArray[np.int32]
    following: NDArray[np.int32]

    def ids(self, images: Images) -> NDArray[np.int32]:
        """The IDs of elements whose images of the base's i-th point are images[i], an array of any shape."""
        place = np.full(images.shape[1:], self.origin, dtype=np.int32)
        total = np.zeros_like(place)
        for first, last in pairwise(self.cuts):
            for i in range(first, last):
                place += np.multiply(images[i], self.weights[i], dtype=np.int32)
            total += self.before.take(place)
            place = self.following.take(place)
        return total


def build(images: Images, orbits: Sequence[int]) -> Ranks:
    """The tables of a group whose sorted elements take its base to the rows of `images`, in the fewest chunks that do.

    `orbits` are the lengths of the orbits in the stabiliser chain: prod(orbits[i:]) elements agree on i base points.
    """
    points = len(orbits)
    if points == 0:  # the trivial group
        return Ranks(np.zeros(1, np.int64), np.zeros(0, np.int32), 0, *np.zeros((2, 1), np.int32))
    finer_and_finer = ([-(-points * c // chunks) for c in range(chunks + 1)] for chunks in range(1, points + 1))
    return next(tables for cuts in finer_and_finer if (tables := _cut(images, orbits, cuts)) is not None)


@dataclass(frozen=True)
class _Table:
    """One chunk's rows: for each code how many elements come before, and which row of the next chunk follows."""

    before: NDArray[np.int32]
    following: NDArray[np.int32]
    origin: int  # what to add to a sum of weight * image to have a code from 0 on


def _cut(images: Images, orbits: Sequence[int], cuts: list[int]) -> Ranks | None:
    """The tables for the chunks between `cuts`, made from the last chunk to the first; None if these are too large."""
    finest = len(cuts) > len(orbits)
    least = images.min(axis=0).astype(np.int64)
    radices = (images.max(axis=0) - least + 1).tolist()
    if not finest and any(prod(radices[first:last]) > ENOUGH for first, last in pairwise(cuts)):
        return None
    weights = np.array([prod(radices[i + 1 : last]) for first, last in pairwise(cuts) for i in range(first, last)])
    tables: list[_Table] = []
    kinds, kind = 1, np.zeros(len(images), dtype=np.int64)  # of what follows: after the last chunk there is one kind
    for first, last in reversed(list(pairwise(cuts))):
        below, block = prod(orbits[last:]), prod(orbits[first:])
        origin = -int(least[first:last] @ weights[first:last])
        code = images[::below, first:last] @ weights[first:last] + origin
        rows, kind = _distinct((code * kinds + kind).reshape(-1, block // below))
        shape = len(rows), prod(radices[first:last])
        if not finest and prod(shape) + sum(table.before.size for table in tables) > ENOUGH:
            return None
        before, following = np.zeros((2, *shape), dtype=np.int32)
        np.put_along_axis(before, rows // kinds, np.arange(0, block, below)[None], axis=1)
        np.put_along_axis(following, rows // kinds, rows % kinds, axis=1)
        tables.insert(0, _Table(before, following, origin))
        kinds = len(rows)
    joined = np.concatenate([table.before.reshape(-1) for table in tables])
    return Ranks(np.array(cuts), weights.astype(np.int32), tables[0].origin, joined, _linked(tables))


def _linked(tables: list[_Table]) -> NDArray[np.int32]:
    """`following` of all tables one after the other, with a row's number replaced by where the row begins."""
    linked, start = [], 0
    for table, after in pairwise(tables):
        start += table.before.size
        linked.append(start + table.following * after.before.shape[1] + after.origin)
    linked.append(tables[-1].following)  # zeros: nothing follows
    return np.concatenate([part.reshape(-1) for part in linked]).astype(np.int32)


def _distinct(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Equal rows once, and which of them each row is. (np.unique with an axis is slow on long rows.)"""
    whole = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).reshape(-1)
    _, first, which = np.unique(whole, return_index=True, return_inverse=True)
    return rows[first], which
