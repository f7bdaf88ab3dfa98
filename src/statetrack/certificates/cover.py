"""What a search makes: maps as plain numbers, covers, and the proof that is written from them.

Nothing here has to be trusted: what is found is a proof only when the checker has accepted it.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from statetrack.certificates.checker.maps import Affine
from statetrack.certificates.checker.network import Network

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Column = tuple[int, int]  # head, column
Columns = tuple[Column, ...]
FORMAT = 1


class BoxMaps(Protocol):
    """What a cover by boxes asks of maps; states and boxes are (columns, n)."""

    @property
    def tokens(self) -> int: ...

    @property
    def columns(self) -> Columns: ...

    def start_of(self, columns: Columns) -> Floats: ...

    def image(self, columns: Columns, token: int, states: Floats) -> Floats: ...

    def box_image(self, columns: Columns, token: int, lo: Floats, hi: Floats, slack: float) -> tuple[Floats, Floats]:
        """A box that holds the image of one, and `slack` beside it."""

    def seen(self, values: Floats) -> Floats:
        """Numbers as a step sees them: boxes whose ends are near there are near."""

    def room(self, ends: Floats, side: int) -> Floats:
        """How many times the least room a box gets where this end of it (above: 1, below: -1) moves."""

    def anywhere(self, lo: Floats, hi: Floats, widest: float, slack: float) -> tuple[Floats, Floats] | None:
        """The same box, but that a number that moves further than `widest` may be anywhere; None where it is of no
        use then.
        """


@dataclass(frozen=True)
class PointMaps:
    """s' = tanh(A s + c) of every token and column, as float64: A is (tokens, heads, n, n), c is (tokens, heads, n,
    columns).
    """

    matrix: Floats
    constant: Floats
    start: Floats  # (heads, n, columns)

    @classmethod
    def of(cls, network: Network) -> PointMaps:
        maps = network.maps
        if not isinstance(maps, Affine):
            raise TypeError("these maps are not s' = tanh(A s + c)")
        return cls(maps.matrix.middle, maps.constant.middle, maps.start.middle)

    @property
    def tokens(self) -> int:
        return len(self.matrix)

    @property
    def columns(self) -> Columns:
        heads, _, columns = self.start.shape
        return tuple((head, column) for head in range(heads) for column in range(columns))

    def start_of(self, columns: Columns) -> Floats:
        """(columns, n)."""
        return np.stack([self.start[head, :, column] for head, column in columns])

    def of_token(self, columns: Columns, token: int) -> tuple[Floats, Floats]:
        """A (columns, n, n) and c (columns, n)."""
        heads, places = (list(each) for each in zip(*columns))
        return self.matrix[token, heads], self.constant[token, heads, :, places]

    def image(self, columns: Columns, token: int, states: Floats) -> Floats:
        """states (..., columns, n)."""
        a, c = self.of_token(columns, token)
        return np.tanh(np.einsum("pij,...pj->...pi", a, states) + c)

    def box_image(self, columns: Columns, token: int, lo: Floats, hi: Floats, slack: float) -> tuple[Floats, Floats]:
        a, c = self.of_token(columns, token)
        middle = np.einsum("pij,pj->pi", a, (lo + hi) / 2) + c
        spread = np.einsum("pij,pj->pi", np.abs(a), (hi - lo) / 2)
        return np.tanh(middle - spread) - slack, np.tanh(middle + spread) + slack

    def seen(self, values: Floats) -> Floats:
        return values

    def room(self, ends: Floats, side: int) -> Floats:
        return np.ones_like(ends)

    def anywhere(self, lo: Floats, hi: Floats, widest: float, slack: float) -> tuple[Floats, Floats] | None:
        free = hi - lo > widest
        if free.all():
            return None
        return np.where(free, -1 - 2 * slack, lo), np.where(free, 1 + 2 * slack, hi)


@dataclass(frozen=True)
class Cover:
    """Regions: centres (regions, columns, n), radii (the same for boxes, (regions, columns) for balls), and `next`
    (regions, tokens); region 0 holds the start.
    """

    centres: Floats
    radii: Floats
    next: Ints

    def to_dict(self) -> dict[str, Any]:
        return {
            "centres": packed(self.centres, "<f8"),
            "radii": packed(self.radii, "<f8"),
            "next": packed(self.next, "<i4"),
        }


@dataclass(frozen=True)
class CoveredPart:
    """Columns, the cover that they use, by number, and the region that they start in."""

    columns: Columns
    cover: int
    start: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {"columns": [list(column) for column in self.columns], "cover": self.cover, "start": self.start}


def packed(values: NDArray[Any], kind: str) -> dict[str, Any]:
    """An array as its shape and its numbers in base64."""
    return {"shape": list(values.shape), "data": base64.b64encode(values.astype(kind).tobytes()).decode()}


def proof_of(
    task: str, model: str, network: str, weights: str, epsilon: float, covers: Sequence[Cover],
    parts: Sequence[CoveredPart],
) -> dict[str, Any]:  # fmt: skip
    """What the checker reads."""
    return {
        "kind": "proof", "format": FORMAT, "task": task, "model": model, "network": network, "weights": weights,
        "epsilon": epsilon, "covers": [cover.to_dict() for cover in covers],
        "parts": [part.to_dict() for part in parts],
    }  # fmt: skip
