"""The transition monoid of an automaton: the maps of its states that words make.

A letter maps every state to the next one; a word does so letter by letter. The maps that occur are finitely many, and
how they multiply is what the automaton computes. Worked by hand: parity has the states 0 and 1; the letter 0 is the
map [0, 1] (nothing changes), the letter 1 is [1, 0]; 1 after 1 is [0, 1] again. Two maps: the group C2.

>>> import numpy as np
>>> generate(np.array([[0, 1], [1, 0]])).elements.tolist()
[[0, 1], [1, 0]]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

LIMIT = 100_000
"""Monoids are written out up to this many elements."""
CELLS = 2**25
"""And up to this many elements times states, which bounds the memory."""
BLOCK = 2**22  # cells multiplied at a time

Maps = NDArray[Any]
"""Maps of the states, one per row: row[q] is where the state q goes."""


@dataclass(frozen=True)
class Monoid:
    """The maps that words make, the empty word's first; `right[m, a]` is the number of: map m, then letter a.

    `letters` are the different maps of single letters. Where the limit was reached, `complete` is False and
    `elements` are the maps of the shortest words.
    """

    letters: Maps
    elements: Maps
    right: NDArray[np.int32]
    complete: bool

    def __len__(self) -> int:
        return len(self.elements)

    @cached_property
    def ranks(self) -> NDArray[np.int64]:
        """How many states each map still tells apart: the size of its image."""
        return image_masks(self.elements).sum(axis=1)

    @cached_property
    def idempotent(self) -> NDArray[np.bool_]:
        """Which maps equal their square."""
        return (squares(self.elements) == self.elements).all(axis=1)

    @cached_property
    def in_group(self) -> NDArray[np.bool_]:
        """Which maps lie in a group: those that permute their own image, so that the square has no smaller one."""
        return image_masks(squares(self.elements)).sum(axis=1) == self.ranks

    @property
    def aperiodic(self) -> bool:
        """Whether every group in it is trivial. A map in a group that is not its identity shows one that is not."""
        return bool((self.idempotent | ~self.in_group).all())


def letter_maps(steps: NDArray[Any]) -> Maps:
    """The different maps that the columns of a table steps[state, symbol] make."""
    kind = np.int16 if len(steps) <= np.iinfo(np.int16).max else np.int32
    return np.unique(np.ascontiguousarray(steps.T.astype(kind)), axis=0)


def generate(steps: NDArray[Any], limit: int = LIMIT) -> Monoid:
    """All maps that words over the letters make, found by lengthening words letter by letter."""
    letters = letter_maps(steps)
    states = letters.shape[1]
    limit = max(1, min(limit, CELLS // states))
    identity = np.arange(states, dtype=letters.dtype)
    elements, numbers = [identity], {identity.tobytes(): 0}
    right: list[NDArray[np.int32]] = []
    done, block = 0, max(1, BLOCK // states)
    while done < len(elements) <= limit:
        maps = np.stack(elements[done : done + block])
        targets = np.empty((len(maps), len(letters)), np.int32)
        for a, letter in enumerate(letters):
            for row, longer in enumerate(letter[maps]):
                key = longer.tobytes()
                number = numbers.setdefault(key, len(elements))
                if number == len(elements):
                    elements.append(longer.copy())
                targets[row, a] = number
            if len(elements) > limit:
                break
        right.append(targets)
        done += len(maps)
    complete = len(elements) <= limit
    graph = np.concatenate(right) if complete else np.zeros((0, len(letters)), np.int32)
    return Monoid(letters, np.stack(elements), graph, complete)


def squares(maps: Maps) -> Maps:
    """Every map applied twice."""
    return np.take_along_axis(maps, maps.astype(np.intp), axis=1)


def image_masks(maps: Maps) -> NDArray[np.bool_]:
    """For every map, which states are reached."""
    masks = np.zeros(maps.shape, bool)
    masks[np.arange(len(maps))[:, None], maps] = True
    return masks


def kernels(maps: Maps) -> NDArray[np.int32]:
    """For every map and state, the first state that goes to the same place: the map does not tell them apart."""
    rows = np.arange(len(maps))
    first = np.zeros(maps.shape, np.int32)
    for state in reversed(range(maps.shape[1])):
        first[rows, maps[:, state]] = state
    return np.take_along_axis(first, maps.astype(np.intp), axis=1)


def is_permutation(maps: Maps) -> NDArray[np.bool_]:
    """Which maps are one to one."""
    return np.all(image_masks(maps), axis=1)
