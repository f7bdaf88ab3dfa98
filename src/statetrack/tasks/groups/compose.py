"""Products of any length in groups too large for a multiplication table.

The product so far is known by its images s of the base points. One more element x changes them to

    s_b <- x[s_b]      for every base point b

and the ID of what they have become is looked up (ranks.py). In S9 that is 8 bytes of state instead of 362880 * 362880
IDs.

Worked by hand in S3, base (0, 1): the identity has the images (0, 1). After the element [1,2,0] they are (1, 2), after
[1,0,2] they are (0, 2), and the element that takes 0 to 0 and 1 to 2 is [0,2,1], the ID 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.tasks import native
from statetrack.tasks.groups.permutations import Images
from statetrack.tasks.groups.ranks import Ranks

WIDTH = 16  # rows that the compiled loop advances together, so that it waits for several elements at once
STEPS = 16  # inputs after which both loops look up the IDs of what they have seen
ROWS = 512  # rows that one thread takes at a time

Ids = NDArray[np.int32]


def padded(elements: Images) -> Images:
    """The elements with their rows filled up to a power of two: none then lies across two lines of the cache."""
    width = 1 << (elements.shape[1] - 1).bit_length()
    rows = np.zeros((len(elements), width), dtype=np.uint8)
    rows[:, : elements.shape[1]] = elements
    return rows


def prefixes(elements: Images, ranks: Ranks, ids: NDArray[np.integer], begin: Images) -> Ids:
    """The ID of the product after every one of the IDs (count, length).

    `elements` are padded; `begin` (count, base points) holds the images of the base at the start of each row.
    """
    out = np.empty(ids.shape, dtype=np.int32)
    begin = np.ascontiguousarray(begin)
    flat, stride = elements.reshape(-1), elements.shape[1]
    tables: tuple[Any, ...] = (ranks,)
    if native.available():
        loop = native.compiled(_loop)
        tables = ranks.cuts, ranks.weights, ranks.origin, ranks.before, ranks.following
        ids = np.ascontiguousarray(ids, dtype=np.int32)  # one kind of array, so that the loop is compiled once
    else:
        loop = _vectorised
    native.run_blocks(lambda a, b: loop(flat, stride, *tables, ids[a:b], begin[a:b], out[a:b]), len(ids), block=ROWS)
    return out


def _vectorised(elements: Images, stride: int, ranks: Ranks, ids: NDArray[np.integer], begin: Images, out: Ids) -> None:
    """For numpy: all rows of the block at once, on IDs laid out by time."""
    images = np.ascontiguousarray(begin.T)
    place = np.empty(images.shape, dtype=np.intp)
    for first in range(0, ids.shape[1], STEPS):
        starts = ids[:, first : first + STEPS].T.astype(np.intp, order="C") * stride
        seen = np.empty((len(starts), *images.shape), dtype=np.uint8)
        for t, start in enumerate(starts):
            np.add(start, images, out=place)
            images = np.take(elements, place, out=seen[t], mode="clip")  # in range; the mode 'raise' would copy
        out[:, first : first + STEPS] = ranks.ids(seen.transpose(1, 0, 2)).T


def _loop(
    elements: Images, stride: int, cuts: NDArray[np.int64], weights: NDArray[np.int32], origin: int,
    before: NDArray[np.int32], following: NDArray[np.int32], ids: Ids, begin: Images, out: Ids,
) -> None:  # fmt: skip
    """For numba: WIDTH rows side by side, STEPS inputs at a time; images[b, t * WIDTH + i] is row i after t inputs."""
    count, length = ids.shape
    points = begin.shape[1]
    images = np.zeros((points, (STEPS + 1) * WIDTH), dtype=np.uint8)
    start = np.zeros(WIDTH, dtype=np.uint32)  # unsigned: a signed index would be tested for being negative
    place = np.zeros(STEPS * WIDTH, dtype=np.int32)
    total = np.zeros(STEPS * WIDTH, dtype=np.int32)
    for row in range(0, count, WIDTH):
        for i in range(WIDTH):  # beyond the last row it is done once more, so that all WIDTH are elements
            for b in range(points):
                images[b, i] = begin[min(row + i, count - 1), b]
        for first in range(0, length, STEPS):
            steps = min(STEPS, length - first)
            for t in range(steps):
                for i in range(WIDTH):
                    start[i] = ids[min(row + i, count - 1), first + t] * stride
                for b in range(points):
                    for i in range(t * WIDTH, (t + 1) * WIDTH):
                        images[b, i + WIDTH] = elements[start[i - t * WIDTH] + np.uint32(images[b, i])]
            for j in range(STEPS * WIDTH):
                place[j] = origin
                total[j] = 0
            for c in range(len(cuts) - 1):
                for b in range(cuts[c], cuts[c + 1]):
                    for j in range(STEPS * WIDTH):  # always all, so that it becomes vector instructions
                        place[j] += weights[b] * np.int32(images[b, WIDTH + j])
                for j in range(steps * WIDTH):
                    at = np.uint32(place[j])
                    total[j] += before[at]
                    place[j] = following[at]
            for t in range(steps):
                for i in range(min(WIDTH, count - row)):
                    out[row + i, first + t] = total[t * WIDTH + i]
            for b in range(points):
                for i in range(WIDTH):
                    images[b, i] = images[b, steps * WIDTH + i]
