"""A cover by regions around points, for columns that turn: every token's map is nearly a multiple of a rotation or a
reflection.

Boxes that grow from the start fail there, since products of |A| grow where products of A do not. A column settles near
a few points, told apart by their distance, and a token moves each point near another. A node is a point with the token
that comes next, and has one region: around the image of the point, as wide as the images of the regions before need it
to be. All columns of a head move by the same maps and differ in their start, so that one cover may serve several.

A region is a ball, with one radius, or a box, with a radius for each number: a ball is turned without getting wider, a
box may be long where tanh is steep and short where it is flat.

Where a network keeps the task's state in a part of a column alone, the rest may take many values. Numbers that do not
settle are taken to lie anywhere in [-1, 1], which tanh grants; and more points, which are nearer to each other, are
tried where few do not close.
"""

from __future__ import annotations

import functools
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from statetrack.certificates.cover import Column, Cover, CoveredPart, Floats, Ints, PointMaps

Mask = NDArray[np.bool_]
ROWS, STEPS, BURN = 64, 160, 24  # random words that show the points
MOST_POINTS, FEW_IMAGES, MOST_IMAGES = 600, 400_000, 6_000_000
REFINED = 5
ROUNDS, GROWTH, WIDEST = 120, 1.01, 1.2
FLOATS = 0.5  # a number in which an image lies so far from the point that it leads to does not settle
MARGIN = 1e-6  # beside epsilon: the checker rounds outward
MOST_ENTRIES = 10_000  # regions between the start of a column and its points


@dataclass(frozen=True)
class Nodes:
    """Images of points under each token, and where each token leads from there."""

    matrix: Floats  # (tokens, n, n)
    to: Ints  # (tokens, points)
    centres: Floats  # (tokens, points, n): the image of a point under a token
    kept: Mask  # (n,): the other numbers may be anywhere, and are 0 in centres

    @property
    def images(self) -> int:
        """Of all nodes under all tokens."""
        return self.to.size * len(self.matrix)


class Balls:
    """One radius for all numbers of a column: arrays of radii are (..., 1)."""

    numbers = 1

    def __init__(self, matrix: Floats) -> None:
        # The 2-norm of each matrix, as the checker bounds it: n^(1/256) too large.
        size = matrix.shape[-1] ** (1 / 256) + MARGIN
        self.norms = np.linalg.svd(matrix, compute_uv=False)[:, :1] * size
        self.rows, self.error = np.linalg.norm(matrix, axis=2), np.sqrt(matrix.shape[-1])

    def spread(self, arguments: Floats, radii: Floats) -> Floats:
        """How far the images of regions reach from those of their centres; both (tokens, regions, .)."""
        least = np.maximum(np.abs(arguments) - self.rows[:, None] * radii, 0)
        slope = 1 - np.tanh(least.min(axis=2, keepdims=True)) ** 2
        return np.asarray(slope * self.norms[:, None] * radii)

    @staticmethod
    def apart(one: Floats, other: Floats) -> Floats:
        return np.linalg.norm(one - other, axis=-1, keepdims=True)


class Boxes:
    """A radius for each number of a column: arrays of radii are (..., n)."""

    def __init__(self, matrix: Floats) -> None:
        self.numbers, self.sizes, self.error = matrix.shape[-1], np.abs(matrix), 1.0

    def spread(self, arguments: Floats, radii: Floats) -> Floats:
        """How far the images of regions reach from those of their centres; both (tokens, regions, n)."""
        wide, middle = np.broadcast_to(radii, arguments.shape) @ self.sizes.transpose(0, 2, 1), np.tanh(arguments)
        return np.asarray(np.maximum(np.tanh(arguments + wide) - middle, middle - np.tanh(arguments - wide)))

    @staticmethod
    def apart(one: Floats, other: Floats) -> Floats:
        return np.abs(one - other)


SHAPES: tuple[type[Balls] | type[Boxes], ...] = (Balls, Boxes)


@dataclass(frozen=True)
class PointWay:
    """The error in each number that regions leave room for, and how many images are looked at. Wide regions are entered
    sooner, narrow ones are read with more margin; many nodes take minutes, and most networks need few.
    """

    room: float
    images: int


POINT_WAYS = tuple(
    PointWay(room, images) for images in (FEW_IMAGES, MOST_IMAGES) for room in (5e-2, 3e-2, 1e-2, 3e-3, 1e-3, 0.0)
)
# How far apart two points are at least, and how many tokens, the last among them, a node tells apart beside its point.
APART = ((0.8, 1), (0.8, 2), (0.8, 3), (0.8, 4), (0.4, 1), (0.4, 2), (0.2, 1), (0.1, 1))


@dataclass(frozen=True)
class Turning:
    """Nodes, with the regions around them: their shape and radii (tokens, points, .)."""

    nodes: Nodes
    shape: Balls | Boxes
    radii: Floats


def settled(nodes: Nodes) -> Mask:
    """The numbers in which each image lies near the point that it leads to. Others carry nothing to rely on."""
    images = np.tanh(np.einsum("yij,xcj->yxci", nodes.matrix, nodes.centres))
    return np.asarray(np.abs(images - nodes.centres[:, nodes.to]).max(axis=(0, 1, 2)) < FLOATS)


def points_of(matrix: Floats, start: Floats, near: float, kept: Mask, seed: int = 0) -> Floats | None:
    """States of a column, no two within `near` of each other, such that all that random words lead to from its start,
    and each image of a point, is that near to one; None where these are too many.
    """
    rng = np.random.default_rng(seed)
    states, points = np.repeat(start[None], ROWS, axis=0), np.empty((0, len(start)))
    for step in range(STEPS):
        states = np.tanh((matrix[rng.integers(0, len(matrix), ROWS)] @ states[..., None])[..., 0])
        if step >= BURN:
            points = with_new(points, states * kept, near)
    known = 0
    while known < len(points) <= MOST_POINTS:
        known, images = len(points), np.tanh(np.einsum("xij,cj->xci", matrix, points[known:]))
        points = with_new(points, images.reshape(-1, len(start)) * kept, near)
    return points if len(points) <= MOST_POINTS and len(points) * len(matrix) ** 2 <= MOST_IMAGES else None


def with_new(points: Floats, states: Floats, near: float) -> Floats:
    """The points, and those of the states that are further than `near` from all before.

    >>> with_new(np.zeros((1, 1)), np.array([[0.1], [1.0], [1.2], [2.0]]), 0.5).ravel().tolist()
    [0.0, 1.0, 2.0]
    """
    while len(states) and len(points) <= MOST_POINTS:
        far = np.ones(len(states), bool)
        for begin in range(0, len(points), 64):
            apart = np.linalg.norm(states[:, None] - points[None, begin : begin + 64], axis=2)
            far &= apart.min(axis=1) > near
        states = states[far]
        points = np.concatenate([points, states[:1]])
    return points


def nodes_of(matrix: Floats, start: Floats, near: float, memory: int, kept: Mask) -> Nodes | None:
    """The nodes of a column with this start; None where they are too many."""
    points = points_of(matrix, start, near, kept)
    if points is None:
        return None
    for _ in range(REFINED):
        to, centres = nearest(matrix, points, kept)
        points = np.stack([centres[to == place].mean(axis=0) if (to == place).any() else points[place]
                           for place in range(len(points))])  # fmt: skip
    to, centres = nearest(matrix, points, kept)
    for _ in range(memory - 1):
        if to.size * len(matrix) ** 2 > MOST_IMAGES:
            return None
        points, to = remembered(centres, to)
        centres = images_of(matrix, points) * kept
    return Nodes(matrix, to, centres, kept)


def images_of(matrix: Floats, points: Floats) -> Floats:
    """(tokens, points, n)."""
    return np.tanh(np.einsum("xij,cj->xci", matrix, points))


def remembered(centres: Floats, to: Ints) -> tuple[Floats, Ints]:
    """Points that remember a token more: the image of each under each token, and where it leads.

    An image lies where the point led to only nearly; the tokens before decide where, each less than the one after it.
    """
    tokens, count = to.shape
    return centres.reshape(tokens * count, -1), np.arange(tokens)[:, None] * count + to.reshape(1, -1)


def nearest(matrix: Floats, points: Floats, kept: Mask) -> tuple[Ints, Floats]:
    """Of (token, point) the point that lies nearest to the image, and the image."""
    centres = images_of(matrix, points) * kept
    apart = [np.linalg.norm(row[:, None] - points[None], axis=2).argmin(axis=1) for row in centres]
    return np.stack(apart), centres


def turning(nodes: Nodes, shape: Balls | Boxes, epsilon: float) -> Turning | None:
    """The least regions around these nodes that hold their own images; None where there are none."""
    tokens, points, n = nodes.centres.shape
    arguments = np.einsum("yij,xcj->yxci", nodes.matrix, nodes.centres).reshape(tokens, -1, n)
    targets = nodes.centres[:, nodes.to.ravel()]
    apart = shape.apart(np.tanh(arguments) * nodes.kept, targets) + (epsilon + MARGIN) * shape.error
    radii = np.zeros((tokens, points, shape.numbers))
    floats = ~nodes.kept if shape.numbers > 1 else np.zeros(1, bool)
    radii[..., floats] = 1 + 2 * (epsilon + MARGIN)  # tanh grants it
    order = np.argsort(nodes.to.ravel(), kind="stable")  # regions that lead to the same point, side by side
    into, begins = np.unique(nodes.to.ravel()[order], return_index=True)
    for _ in range(ROUNDS):
        needed = apart + shape.spread(arguments, radii.reshape(1, -1, shape.numbers))
        most = np.zeros_like(radii)
        most[:, into] = np.maximum.reduceat(needed[:, order], begins, axis=1)
        most[..., floats] = 0.0
        if (most <= radii).all():
            return Turning(nodes, shape, radii)
        radii = np.maximum(radii, most * GROWTH + MARGIN)
        if radii[..., ~floats].max() > WIDEST:
            return None
    return None


def cover_of(found: Turning, starts: Sequence[Floats], epsilon: float) -> tuple[Cover, list[int]] | None:
    """The cover of a head, with what leads into it from the starts of its columns, and the region of each start.

    From a start every token is followed until its image lies in a region around a point; what is on the way is a region
    of its own.
    """
    nodes, shape = found.nodes, found.shape
    tokens, points, n = nodes.centres.shape
    inner = (np.arange(tokens)[None, :] * points + nodes.to.reshape(-1)[:, None]).reshape(-1, tokens)
    ways: list[tuple[Floats, Floats]] = [(start, np.full(shape.numbers, MARGIN)) for start in starts]
    following: list[list[int]] = []
    waiting = deque(range(len(ways)))
    while waiting:
        state, radii = ways[waiting.popleft()]
        arguments = nodes.matrix @ state
        images = np.tanh(arguments)
        reach = shape.spread(arguments[:, None], radii[None, None])[:, 0] + (epsilon + MARGIN) * shape.error
        left = (found.radii - shape.apart(images[:, None], nodes.centres) - reach[:, None]).min(axis=2)
        row = []
        for token, best in enumerate(left.argmax(axis=1)):
            if left[token, best] > 0:
                row.append(token * points + int(best))
                continue
            row.append(tokens * points + len(ways))
            waiting.append(len(ways))
            ways.append((images[token], reach[token] * 1.001 + MARGIN))
            if (
                len(ways) > MOST_ENTRIES * len(starts)
                or reach[token, found.nodes.kept if len(reach[token]) > 1 else 0].max() > WIDEST
            ):
                return None
        following.append(row)
    centres = np.concatenate([nodes.centres.reshape(-1, n), np.stack([state for state, _ in ways])])
    radii = np.concatenate([found.radii.reshape(-1, shape.numbers), np.stack([radii for _, radii in ways])])
    kept = radii[:, 0] if isinstance(shape, Balls) else radii
    cover = Cover(centres[:, None], kept[:, None], np.concatenate([inner, np.array(following)]))
    return cover, [tokens * points + place for place in range(len(starts))]


class PointSearch:
    """Covers of one network by regions around points. What is found of a column serves every way."""

    def __init__(self, maps: PointMaps) -> None:
        self.maps = maps
        self.nodes = functools.cache(self._nodes)
        self.settled = functools.cache(self._settled)
        self.turned = functools.cache(self._turned)
        self.shapes = functools.cache(lambda head: tuple(shape(maps.matrix[:, head]) for shape in SHAPES))

    def turn(self, epsilon: float, way: PointWay, until: float) -> tuple[list[Cover], list[CoveredPart]] | None:
        """Covers of the columns that come into regions of their own, or of a column before; others may be anywhere."""
        covers: list[Cover] = []
        parts: list[CoveredPart] = []
        for head in range(self.maps.start.shape[0]):
            for regions, columns in self._grouped(head, epsilon, replace(way, room=max(way.room, epsilon)), until):
                found = cover_of(regions, [self._start(column) for column in columns], epsilon)
                if found:
                    parts += [CoveredPart((column,), len(covers), start) for column, start in zip(columns, found[1])]
                    covers.append(found[0])
        return (covers, parts) if covers else None

    def _grouped(self, head: int, epsilon: float, way: PointWay, until: float) -> list[tuple[Turning, list[Column]]]:
        """The columns of a head that come into regions, with those regions."""
        groups: list[tuple[Turning, list[Column]]] = []
        for column in (each for each in self.maps.columns if each[0] == head):
            start = [self._start(column)]
            known = next((columns for regions, columns in groups if cover_of(regions, start, epsilon)), None)
            if known is not None:
                known.append(column)
                continue
            for near, memory, floating in self._tries(column):
                if time.monotonic() > until:
                    break
                nodes = self.nodes(column, near, memory, floating)
                if nodes is None or nodes.images > way.images:
                    continue
                shapes = (
                    self.turned(column, near, memory, floating, shape, way.room)
                    for shape in range(floating, len(SHAPES))
                )
                own = next((regions for regions in shapes if regions and cover_of(regions, start, epsilon)), None)
                if own:
                    groups.append((own, [column]))
                    break
        return groups

    def _start(self, column: Column) -> Floats:
        return np.asarray(self.maps.start[column[0], :, column[1]])

    def _tries(self, column: Column) -> list[tuple[float, int, bool]]:
        """What is tried of a column: also, where numbers of it do not settle, to let these be anywhere, in boxes."""
        kept = self.settled(column)
        floating = [(*APART[0], True)] if kept.any() and not kept.all() else []
        return floating + [(near, memory, False) for near, memory in APART]

    def _settled(self, column: Column) -> Mask:
        nodes = self.nodes(column, *APART[0], False)
        return settled(nodes) if nodes else np.zeros(self.maps.matrix.shape[-1], bool)

    def _nodes(self, column: Column, near: float, memory: int, floating: bool) -> Nodes | None:
        kept = self.settled(column) if floating else np.ones(self.maps.matrix.shape[-1], bool)
        return nodes_of(self.maps.matrix[:, column[0]], self._start(column), near, memory, kept)

    def _turned(
        self, column: Column, near: float, memory: int, floating: bool, shape: int, room: float
    ) -> Turning | None:
        nodes = self.nodes(column, near, memory, floating)
        return turning(nodes, self.shapes(column[0])[shape], room) if nodes else None
