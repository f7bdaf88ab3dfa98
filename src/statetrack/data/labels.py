"""Which order of composition the labels of a data set follow.

For a listed sequence p_1 ... p_n the mathematical rule gives p_n ∘ ... ∘ p_1 (p_1 acts first) and the published data
set gives p_1 ∘ ... ∘ p_n. Both are built up from left to right, one permutation per step, for many rows at once:

    forward  <- p_t ∘ forward      forward[i]  = p_t[forward[i]]
    backward <- backward ∘ p_t     backward[i] = backward[p_t[i]]

Permutations are composed as image arrays, without any table of the group, so the map need not be of a group at all.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from statetrack.data.text import Starts
from statetrack.tasks.groups.permutations import Images

Flags = NDArray[np.bool_]


def follows(
    images: Images, codes: NDArray[np.intp], starts: Starts, targets: NDArray[np.intp],
    prefixes: NDArray[np.intp] | None = None,
) -> tuple[Flags, Flags]:  # fmt: skip
    """For every row, whether its target is the mathematical and whether it is the published product.

    `codes` are rows of `images`, those of each sequence from its start to the next one's; there is one of `targets` for
    each sequence. Where there are `prefixes`, one for each code, all of those of a row have to be right as well.
    """
    order = np.argsort(-np.diff(starts), kind="stable")  # longest first: rows still running are always the first ones
    lengths = np.diff(starts)[order]
    forward = np.tile(np.arange(images.shape[1], dtype=np.uint8), (len(order), 1))
    backward = forward.copy()
    mathematical, published = np.ones(len(order), bool), np.ones(len(order), bool)
    answers = None if prefixes is None else _by_time(prefixes, starts, order)
    for t, rows in enumerate(_steps(images, _by_time(codes, starts, order), lengths, forward, backward)):
        if answers is not None:
            here = images[answers[t, :rows]]
            mathematical[:rows] &= (forward[:rows] == here).all(axis=1)
            published[:rows] &= (backward[:rows] == here).all(axis=1)
    wanted, back = images[targets[order]], np.argsort(order)
    mathematical &= (forward == wanted).all(axis=1)
    published &= (backward == wanted).all(axis=1)
    return mathematical[back], published[back]


def _by_time(codes: NDArray[np.intp], starts: Starts, order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Column r holds the sequence of row order[r]; what stands below its end is never looked at."""
    lengths = np.diff(starts)
    by_time = np.zeros((int(lengths.max(initial=0)), len(order)), np.intp)
    for column, row in enumerate(order.tolist()):
        by_time[: lengths[row], column] = codes[starts[row] : starts[row + 1]]
    return by_time


def _steps(
    images: Images, by_time: NDArray[np.intp], lengths: NDArray[np.int64], forward: Images, backward: Images
) -> Iterator[int]:
    """Take the products one step on, in place, again and again: how many rows, the first ones, had that step."""
    degree = images.shape[1]
    flat = images.reshape(-1)
    row_starts = np.arange(len(lengths), dtype=np.intp)[:, None] * degree
    running = np.searchsorted(-lengths, -np.arange(len(by_time)), side="left")  # rows longer than t
    for step, rows in zip(by_time, running):
        forward[:rows] = flat.take(step[:rows, None] * degree + forward[:rows])
        backward[:rows] = backward.reshape(-1).take(row_starts[:rows] + images.take(step[:rows], axis=0))
        yield int(rows)
