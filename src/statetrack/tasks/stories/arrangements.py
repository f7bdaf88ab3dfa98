"""Things at numbered places: who stands where, and the number of the whole arrangement."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Arrangement = tuple[int, ...]  # the place of each thing; thing i starts at place i


def ranks(arrangements: NDArray[np.intp]) -> NDArray[np.intp]:
    """The lexicographic number of each permutation: the sum over i of (later entries that are smaller) * (n-1-i)!.

    >>> ranks(np.array([[0, 1, 2], [1, 2, 0]]))
    array([0, 3])
    """
    n = arrangements.shape[1]
    total = np.zeros(len(arrangements), np.intp)
    for i in range(n):
        smaller = np.sum(arrangements[:, i + 1 :] < arrangements[:, i, None], axis=1)
        total += smaller * math.factorial(n - 1 - i)
    return total


def arrangement(rank: int, n: int) -> Arrangement:
    """The permutation with this lexicographic number.

    >>> arrangement(3, 3)
    (1, 2, 0)
    """
    left, cups = list(range(n)), []
    for i in range(n):
        at, rank = divmod(rank, math.factorial(n - 1 - i))
        cups.append(left.pop(at))
    return tuple(cups)
