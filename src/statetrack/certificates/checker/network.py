"""What the checker asks of every network: how its state moves, and how it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from statetrack.certificates.checker.maps import Maps
from statetrack.certificates.checker.rounding import Floats, Interval, Refused

Ints = NDArray[np.int64]
Tensors = dict[str, Floats]
MOST_WIDE = 2**13  # of each side of a tensor
MOST_MAPS = 2**21  # numbers of the matrices of all tokens and heads


class Region(Protocol):
    """Where the columns of one part are: a row for each region that is asked about."""

    @property
    def columns(self) -> tuple[tuple[int, int], ...]: ...

    def forms(self, place: int, weights: Interval) -> Interval:
        """Linear forms of one column: weights (F, n), or (rows, F, n), give (rows, F)."""


class Covered(Protocol):
    """All regions of one part: centres (regions, columns, n), radii (the same, or without n for balls)."""

    @property
    def centres(self) -> Floats: ...

    @property
    def radii(self) -> Floats: ...


class Reading(NamedTuple):
    """The least by which the logit of the right class is above all others, in exact arithmetic, and what a logit in
    float32 is off by, at most.
    """

    margin: float
    float32: float


class Network:
    """The maps of a network and how its state is read."""

    alike_columns = False  # whether all columns of a head move by the same map

    def __init__(self, tensors: Tensors, inputs: int) -> None:
        self.tensors = tensors
        tokens = len(self.get("embedding.weight").lo)
        if tokens != inputs:
            raise Refused(f"the network knows {tokens} tokens, the task has {inputs}")
        heads, n = self.shape()
        if not 0 < tokens * heads * n * n <= MOST_MAPS:
            raise Refused(f"{heads} x {n} x {n} numbers for each of {tokens} tokens are more than can be checked")
        self.maps: Maps = self.maps_of()

    def shape(self) -> tuple[int, int]:
        """Heads, and numbers of a column."""
        raise NotImplementedError

    def get(self, name: str, unit: float = 0.0) -> Interval:
        if name not in self.tensors:
            raise Refused(f"the weights have no {name}")
        return Interval.of(self.tensors[name], unit)

    def maps_of(self) -> Maps:
        raise NotImplementedError

    def reading(self, parts: Sequence[Region], tokens: Ints, right: Ints) -> Reading:
        """How these regions are read, after these tokens and with these classes due."""
        raise NotImplementedError

    def float32_error(self, parts: Sequence[Covered] = ()) -> float:
        """At least what one step in float32 is off by, in any number, from these regions, or from states in [-1, 1]."""
        raise NotImplementedError


def least_margin(
    features: Interval, weight: Interval, base: Interval, bias: Interval, tokens: Ints, right: Ints,
    length: Interval | None,
) -> float:  # fmt: skip
    """The least of (base + weight features)_right - (the same)_other, divided by `length`, and the biases apart."""
    least = np.inf
    for own in np.unique(right):
        if own < 0:  # nothing is asked in this state
            continue
        rows = right == own
        others = np.delete(np.arange(len(bias.lo)), own)
        difference = weight[[own]] - weight[others]
        above = features[rows] @ difference.turned() + (base[tokens[rows]][:, [own]] - base[tokens[rows]][:, others])
        if length is not None:
            above = above / length[rows].reshape(-1, 1)
        above = above + (bias[[own]] - bias[others])
        least = np.minimum(least, above.lo.min(initial=np.inf))  # NaN stays NaN
    return float(least)
