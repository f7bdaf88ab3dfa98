"""The permutation map of a data set: which permutation each ID stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from statetrack.errors import BadInput
from statetrack.tasks.groups import Group
from statetrack.tasks.groups.permutations import MAX_DEGREE, Images

KEY = "permutation_map"


@dataclass(frozen=True)
class PermutationMap:
    """IDs in ascending order, and the image array of each."""

    ids: NDArray[np.int64]
    images: Images

    @classmethod
    def of_group(cls, group: Group) -> Self:
        """The map that our own IDs make."""
        return cls(np.arange(len(group.elements)), group.elements)

    @classmethod
    def read(cls, entries: Any, where: str) -> Self:
        """The map {"0": [images], ...} of a metadata file.

        >>> PermutationMap.read({"1": [1, 0], "0": [0, 1]}, "metadata.json").images.tolist()
        [[0, 1], [1, 0]]
        """
        if not isinstance(entries, Mapping) or not entries:
            raise BadInput(f"{where}: {KEY} should hold an ID with its images for every element")
        ids = _ids(entries, where)
        order = np.argsort(ids)
        rows = list(entries.values())
        return cls(ids[order], _images(rows, list(entries), where)[order])

    def codes(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Which row of `images` each ID is, and whether the map holds it at all (row 0 where it does not)."""
        if self.ids[-1] == len(self.ids) - 1:  # 0, 1, 2, ...: as every map should be
            inside = (ids >= 0) & (ids < len(self.ids))
            return np.where(inside, ids, 0), inside
        rows = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        inside = self.ids[rows] == ids
        return np.where(inside, rows, 0), inside

    @property
    def distinct(self) -> int:
        """How many different permutations the map holds."""
        return len(np.unique(texts(self.images)))


def texts(images: Images) -> NDArray[np.bytes_]:
    """Every row of images as one value that can be sorted and compared: its bytes."""
    rows = np.ascontiguousarray(images)
    return rows.view(f"S{rows.shape[1]}").reshape(-1)


def _ids(entries: Mapping[str, Any], where: str) -> NDArray[np.int64]:
    for key in entries:
        if not (key.isascii() and key.isdigit() and len(key) <= 18):
            raise BadInput(f"{where}: {KEY}: the ID {key[:40]!r} should be a whole number")
    ids = np.fromiter(map(int, entries), np.int64, len(entries))
    if len(np.unique(ids)) < len(ids):
        raise BadInput(f"{where}: {KEY} gives an ID twice")
    return ids


def _images(rows: list[Any], keys: list[str], where: str) -> Images:
    degree = len(rows[0]) if isinstance(rows[0], list) else 0
    if not 1 <= degree <= MAX_DEGREE:
        raise BadInput(f"{where}: {KEY}: entry {keys[0]} should be a list of 1..{MAX_DEGREE} images")
    points = set(range(degree))
    for key, row in zip(keys, rows):
        whole = isinstance(row, list) and len(row) == degree and all(isinstance(image, int) for image in row)
        if not whole or set(row) != points:
            raise BadInput(f"{where}: {KEY}: entry {key} is not a permutation of 0..{degree - 1}")
    return np.array(rows, np.uint8)
