"""A permutation of the points 0..n-1 is its image array: p[i] is where i goes.

Worked by hand: p = (0 1 2) is [1, 2, 0] and q = (0 1) is [1, 0, 2]. First p, then q: 0 -> 1 -> 0, 1 -> 2 -> 2,
2 -> 0 -> 1, so q ∘ p = [0, 2, 1], which is the array q[p].

>>> p, q = from_cycles([(0, 1, 2)], 3), from_cycles([(0, 1)], 3)
>>> q[p].tolist(), cycle_text(q[p])
([0, 2, 1], '(1 2)')
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from statetrack.errors import BadInput

Images = NDArray[np.uint8]
"""One image array, or one per row."""

MAX_DEGREE = 255
"""Points are bytes."""


def identity(degree: int) -> Images:
    return np.arange(degree, dtype=np.uint8)


def inverse(p: Images) -> Images:
    """The permutation q with q[p[i]] = i."""
    q = np.empty_like(p)
    q[p] = identity(len(p))
    return q


def from_cycles(cycles: Iterable[Sequence[int]], degree: int) -> Images:
    """The permutation that sends each point of a cycle to the next one, and the last to the first."""
    p = identity(degree)
    for cycle in cycles:
        for here, there in zip(cycle, [*cycle[1:], *cycle[:1]]):
            p[here] = there
    return p


def to_cycles(p: Images) -> list[tuple[int, ...]]:
    """The cycles of p that are longer than one point, each from its least point on."""
    cycles, seen = [], set()
    for start in range(len(p)):
        cycle, point = [], start
        while point not in seen:
            seen.add(point)
            cycle.append(point)
            point = int(p[point])
        if len(cycle) > 1:
            cycles.append(tuple(cycle))
    return cycles


def cycle_text(p: Images) -> str:
    """Cycle notation: '(0 1 2)(3 4)', and '()' for the identity."""
    return "".join(f"({' '.join(map(str, cycle))})" for cycle in to_cycles(p)) or "()"


def orbits(count: int, permutations: Iterable[NDArray[np.integer]]) -> NDArray[np.int32]:
    """The number of the orbit in which each of 0..count-1 lies; orbits are counted by their least members.

    Every x points to the least number known to be connected with it, and takes over what that number points to.

    >>> orbits(5, [np.array([1, 0, 2, 4, 3])]).tolist()
    [0, 0, 1, 2, 2]
    """
    steps = list(permutations)
    least = np.arange(count, dtype=np.int32)
    while True:
        before = least
        for step in steps:
            least = np.minimum(least, least[step])
        least = least[least]
        if (least == before).all():
            return np.unique(least, return_inverse=True)[1].astype(np.int32)


def checked(generators: Iterable[ArrayLike]) -> Images:
    """Generators as rows of images, or what is wrong with them and where."""
    rows = [_checked_images(images, f"generator {number}") for number, images in enumerate(generators, 1)]
    if not rows:
        raise BadInput("a group needs at least one generator; the identity alone gives the trivial group")
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise BadInput(
                f"generator {number} has degree {len(row)}, but generator 1 has degree {len(rows[0])}; "
                "all must act on the same points"
            )
    return np.stack(rows)


def _checked_images(images: ArrayLike, what: str) -> Images:
    row = np.asarray(images)
    if row.ndim != 1 or row.dtype.kind not in "iu" or not 1 <= len(row) <= MAX_DEGREE:
        raise BadInput(f"{what} should be a list of 1..{MAX_DEGREE} whole numbers, the images of 0, 1, 2, ...")
    first_seen: dict[int, int] = {}
    for point, image in enumerate(row.tolist()):
        if not 0 <= image < len(row):
            raise BadInput(f"{what} is not a permutation: it takes point {point} to {image}, outside 0..{len(row) - 1}")
        if image in first_seen:
            raise BadInput(
                f"{what} is not a permutation: it takes the points {first_seen[image]} and {point} both to {image}"
            )
        first_seen[image] = point
    return row.astype(np.uint8)
