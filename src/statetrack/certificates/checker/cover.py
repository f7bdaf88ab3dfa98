"""The cover of a proof: regions of the state, and where every token leads.

A region is a box (a radius for each number) or a ball (one radius for each column) around a centre. A part covers one
column or several together; parts whose columns move by the same maps may share a cover.
"""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.certificates.checker.maps import Maps
from statetrack.certificates.checker.rounding import Floats, Interval, Refused, outward, up

Ints = NDArray[np.int64]
Columns = tuple[tuple[int, int], ...]  # (head, column)
MOST_STATES, MOST_STEPS = 1_000_000, 2**23  # of the product with the task; a step is a token in a state
CHUNK = 2048


def unpacked(told: dict[str, Any], kind: str) -> NDArray[Any]:
    """An array of a proof: its shape, and its numbers in base64, little end first."""
    return np.frombuffer(base64.b64decode(told["data"], validate=True), kind).reshape(told["shape"])


@dataclass(frozen=True)
class Part:
    """Columns that are covered together: centres (regions, columns, n), radii (the same, or without n for balls)."""

    columns: Columns
    centres: Floats
    radii: Floats
    next: Ints  # (regions, tokens)
    start: int

    @classmethod
    def read(cls, told: dict[str, Any], cover: dict[str, Any], maps: Maps) -> Part:
        columns = tuple((int(head), int(column)) for head, column in told["columns"])
        part = cls(columns, unpacked(cover["centres"], "<f8"), unpacked(cover["radii"], "<f8"),
                   unpacked(cover["next"], "<i4").astype(np.int64), int(told["start"]))  # fmt: skip
        heads, n, most = maps.shape
        count = len(part.centres)
        centres, following = (count, len(columns), n), (count, maps.tokens)
        if part.centres.shape != centres or part.radii.shape not in (centres, centres[:2]) or not count:
            raise Refused("the regions of a cover do not fit the network")
        if (
            part.next.shape != following
            or ((part.next < 0) | (part.next >= count)).any()
            or not 0 <= part.start < count
        ):
            raise Refused("a region that is named is not there")
        if not (np.isfinite(part.centres).all() and np.isfinite(part.radii).all() and (part.radii >= 0).all()):
            raise Refused("a region is not finite")
        if any(not (0 <= head < heads and 0 <= column < most) for head, column in columns):
            raise Refused("a column that is named is not there")
        return part

    @property
    def balls(self) -> bool:
        return self.radii.ndim == 2

    def check_start(self, maps: Maps) -> None:
        for place, (head, column) in enumerate(self.columns):
            own = maps.start[head, :, column]
            region = np.array([self.start])
            if not self._holds(place, region, Interval(own.lo[None], own.hi[None]), np.zeros(1)).all():
                raise Refused(f"the start of column {column} of head {head} is not in its region")

    def check_images(self, maps: Maps, epsilon: float) -> None:
        """Every region under every token, column by column."""
        for place, (head, column) in enumerate(self.columns):
            for token in range(maps.tokens):
                image, reach = self._image(maps, place, (head, column), token, epsilon)
                inside = self._holds(place, self.next[:, token], image, reach)
                if not inside.all():
                    region = int(np.flatnonzero(~inside)[0])
                    raise Refused(
                        f"the image of region {region} under token {token} is not inside region "
                        f"{self.next[region, token]} (column {column} of head {head}, with an error of {epsilon:g})"
                    )

    def _image(
        self, maps: Maps, place: int, column: tuple[int, int], token: int, epsilon: float
    ) -> tuple[Interval, Floats]:
        """What holds the images of all regions, with the error: boxes, or how far balls reach from their centres."""
        centres, radii = self.centres[:, place], self.radii[:, place]
        if self.balls:
            image, reach = maps.ball(column, token, centres, radii)
            error = Interval.of(epsilon) * Interval.of(math.sqrt(centres.shape[1]) * (1 + 1e-15))
            return image, (Interval.of(reach) + error).hi
        image = maps.box(column, token, centres, radii)
        return outward(image.lo - epsilon, image.hi + epsilon, 0.0), np.zeros(len(centres))

    def _holds(self, place: int, regions: Ints, image: Interval, reach: Floats) -> NDArray[np.bool_]:
        """Whether each image, and all within `reach` of it, lies in its region."""
        centres, radii = Interval.of(self.centres[regions, place]), Interval.of(self.radii[regions, place])
        if not self.balls:
            inside = ((centres - radii).hi <= image.lo) & (image.hi <= (centres + radii).lo)
            return np.asarray(inside.all(axis=1))
        apart = Interval.of((image - centres).size)
        return np.asarray(up((apart * apart).total().sqrt().hi[:, 0] + reach) <= radii.lo)


@dataclass(frozen=True)
class Chosen:
    """The regions of one part, a row for each case that comes up."""

    part: Part
    regions: Ints

    @property
    def columns(self) -> Columns:
        return self.part.columns

    def forms(self, place: int, weights: Interval) -> Interval:
        """Linear forms of one column: weights (F, n), or (rows, F, n), give (rows, F)."""
        centres = Interval.of(self.part.centres[self.regions, place][:, None, :])
        middle, size = centres @ weights.turned(), Interval.of(weights.size)
        radii = self.part.radii[self.regions, place]
        if self.part.balls:
            spread = (Interval.of(radii)[:, None] * (size * size).total().sqrt()[..., 0]).hi
        else:
            spread = (Interval.of(radii[:, None, :]) @ size.turned()).hi[:, 0]
        return outward(middle.lo[:, 0] - spread, middle.hi[:, 0] + spread, 0.0)


@dataclass(frozen=True)
class Cases:
    """All that can come up: the region of each part after a token, that token, and the automaton's state."""

    regions: Ints
    tokens: Ints
    after: Ints
    states: int

    def chunks(self) -> list[slice]:
        return [slice(begin, begin + CHUNK) for begin in range(0, len(self.tokens), CHUNK)]


def follow(parts: list[Part], steps: NDArray[np.integer]) -> Cases:
    """Follow every token from the start. Regions with the same successors have the same future, and are one here."""
    classes, rows = [], []
    for part in parts:
        distinct, which = np.unique(part.next, axis=0, return_inverse=True)
        classes.append(which.ravel().tolist())
        rows.append(distinct.tolist())
    start = (0, *(own[part.start] for own, part in zip(classes, parts)))
    known, todo, cases = {start}, [start], set()
    following, most = steps.tolist(), min(MOST_STATES, MOST_STEPS // steps.shape[1])
    while todo:
        state = todo.pop()
        own = [row[each] for row, each in zip(rows, state[1:])]
        for token, after in enumerate(following[state[0]]):
            into = tuple(row[token] for row in own)
            cases.add((*into, token, after))
            reached = (after, *(which[region] for which, region in zip(classes, into)))
            if reached not in known:
                if len(known) >= most:
                    raise Refused(f"more than {most} states come up")
                known.add(reached)
                todo.append(reached)
    found = np.array(sorted(cases), np.int64)
    return Cases(found[:, :-2], found[:, -2], found[:, -1], len(known))
