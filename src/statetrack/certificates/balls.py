"""A cover by balls, for columns that turn: every token's map is nearly a multiple of a rotation or a reflection.

Boxes fail there, since products of |A| grow where products of A do not. A column settles near a few points, told apart
by their distance, and a token moves each point near another. A node is a point with the token that comes next, and has
one ball: around the image of the point, as wide as the images of the balls before need it to be. All columns of a head
move by the same maps and differ in their start, so that one cover may serve several.

Where a network keeps the task's state in a part of a column alone, the rest may take many values: more points, which
are nearer to each other, are tried where few do not close.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from statetrack.certificates.cover import Column, Cover, CoveredPart, Floats, Ints, PointMaps

ROWS, STEPS, BURN = 64, 160, 24  # random words that show the points
MOST_POINTS, MOST_IMAGES = 600, 6_000_000
REFINED = 5
ROUNDS, GROWTH, WIDEST = 120, 1.01, 1.2
MARGIN = 1e-6  # beside epsilon: the checker rounds outward
MOST_ENTRIES = 10_000  # regions between the start of a column and its balls


@dataclass(frozen=True)
class BallWay:
    """How far apart two points are at least; how many tokens, the last among them, a node tells apart beside its point;
    and the error in each number that the balls leave room for. Wide balls are entered sooner, narrow ones are read with
    more margin.
    """

    near: float
    memory: int
    room: float


APART = ((0.8, 1), (0.8, 2), (0.8, 3), (0.8, 4), (0.4, 1), (0.4, 2), (0.2, 1), (0.1, 1))  # near, memory
BALL_WAYS = tuple(BallWay(*apart, room) for apart in APART for room in (5e-2, 3e-2, 1e-2, 3e-3, 1e-3, 0.0))


@dataclass(frozen=True)
class Nodes:
    """Images of points under each token, and where each token leads from there."""

    matrix: Floats  # (tokens, n, n)
    to: Ints  # (tokens, points)
    centres: Floats  # (tokens, points, n): the image of a point under a token


@dataclass(frozen=True)
class Turning:
    """Nodes, with the balls around them and how wide they are."""

    nodes: Nodes
    radii: Floats  # (tokens, points)


def points_of(matrix: Floats, start: Floats, near: float, seed: int = 0) -> Floats | None:
    """States of a column, no two within `near` of each other, such that all that random words lead to from its start,
    and each image of a point, is that near to one; None where these are too many.
    """
    rng = np.random.default_rng(seed)
    states, points = np.repeat(start[None], ROWS, axis=0), np.empty((0, len(start)))
    for step in range(STEPS):
        states = np.tanh((matrix[rng.integers(0, len(matrix), ROWS)] @ states[..., None])[..., 0])
        if step >= BURN:
            points = with_new(points, states, near)
    known = 0
    while known < len(points) <= MOST_POINTS:
        known, images = len(points), np.tanh(np.einsum("xij,cj->xci", matrix, points[known:]))
        points = with_new(points, images.reshape(-1, len(start)), near)
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


def nodes_of(matrix: Floats, start: Floats, near: float, memory: int) -> Nodes | None:
    """The nodes of a column with this start; None where they are too many."""
    points = points_of(matrix, start, near)
    if points is None:
        return None
    for _ in range(REFINED):
        to, centres = nearest(matrix, points)
        points = np.stack([centres[to == place].mean(axis=0) if (to == place).any() else points[place]
                           for place in range(len(points))])  # fmt: skip
    to, centres = nearest(matrix, points)
    for _ in range(memory - 1):
        if to.size * len(matrix) ** 2 > MOST_IMAGES:
            return None
        points, to = remembered(centres, to)
        centres = images_of(matrix, points)
    return Nodes(matrix, to, centres)


def turning(nodes: Nodes, epsilon: float) -> Turning | None:
    """The balls around these nodes that hold their own images; None where there are none."""
    radii = _radii(nodes.matrix, nodes.to, nodes.centres, epsilon)
    return None if radii is None else Turning(nodes, radii)


def images_of(matrix: Floats, points: Floats) -> Floats:
    """(tokens, points, n)."""
    return np.tanh(np.einsum("xij,cj->xci", matrix, points))


def remembered(centres: Floats, to: Ints) -> tuple[Floats, Ints]:
    """Points that remember a token more: the image of each under each token, and where it leads.

    An image lies where the point led to only nearly; the tokens before decide where, each less than the one after it.
    """
    tokens, count = to.shape
    return centres.reshape(tokens * count, -1), np.arange(tokens)[:, None] * count + to.reshape(1, -1)


def nearest(matrix: Floats, points: Floats) -> tuple[Ints, Floats]:
    """Of (token, point) the point that lies nearest to the image, and the image."""
    centres = images_of(matrix, points)
    apart = [np.linalg.norm(row[:, None] - points[None], axis=2).argmin(axis=1) for row in centres]
    return np.stack(apart), centres


def norms_of(matrix: Floats) -> Floats:
    """The 2-norm of each matrix, as the checker bounds it: n^(1/256) too large."""
    return np.linalg.svd(matrix, compute_uv=False)[:, 0] * (matrix.shape[-1] ** (1 / 256) + MARGIN)


def _radii(matrix: Floats, to: Ints, centres: Floats, epsilon: float) -> Floats | None:
    """The least radii such that the image of every ball lies in the next one."""
    tokens, points, n = centres.shape
    norms, rows = norms_of(matrix), np.linalg.norm(matrix, axis=2)
    arguments = np.einsum("yij,xcj->yxci", matrix, centres)
    targets = centres[np.arange(tokens)[:, None, None], to[None]]
    apart = np.linalg.norm(np.tanh(arguments) - targets, axis=3) + (epsilon + MARGIN) * np.sqrt(n)
    arguments = np.abs(arguments)
    radii = np.zeros((tokens, points))
    for _ in range(ROUNDS):
        slope = 1 - np.tanh(np.maximum(arguments - rows[:, None, None] * radii[None, :, :, None], 0)) ** 2
        needed = apart + slope.max(axis=3) * norms[:, None, None] * radii[None]
        most = np.zeros_like(radii)
        for place in range(points):
            most[:, place] = needed[:, to == place].max(axis=1, initial=0.0)
        if (most <= radii).all():
            return radii
        radii = np.maximum(radii, most * GROWTH + MARGIN)
        if radii.max() > WIDEST:
            return None
    return None


def cover_of(found: Turning, starts: Sequence[Floats], epsilon: float) -> tuple[Cover, list[int]] | None:
    """The cover of a head, with what leads into it from the starts of its columns, and the region of each start.

    From a start every token is followed until its image lies in a ball; what is on the way is a region of its own.
    """
    nodes = found.nodes
    tokens, points, n = nodes.centres.shape
    norms, rows = norms_of(nodes.matrix), np.linalg.norm(nodes.matrix, axis=2)
    inner = (np.arange(tokens)[None, :] * points + nodes.to.reshape(-1)[:, None]).reshape(-1, tokens)
    ways: list[tuple[Floats, float]] = [(start, MARGIN) for start in starts]
    following: list[list[int]] = []
    waiting = deque(range(len(ways)))
    while waiting:
        state, radius = ways[waiting.popleft()]
        arguments = nodes.matrix @ state
        slope = 1 - np.tanh(np.maximum(np.abs(arguments) - rows * radius, 0)) ** 2
        images = np.tanh(arguments)
        reach = slope.max(axis=1) * norms * radius + (epsilon + MARGIN) * np.sqrt(n)
        left = found.radii - np.linalg.norm(images[:, None] - nodes.centres, axis=2) - reach[:, None]
        row = []
        for token, best in enumerate(left.argmax(axis=1)):
            if left[token, best] > 0:
                row.append(token * points + int(best))
                continue
            row.append(tokens * points + len(ways))
            waiting.append(len(ways))
            ways.append((images[token], float(reach[token]) * 1.001 + MARGIN))
            if len(ways) > MOST_ENTRIES * len(starts) or reach[token] > WIDEST:
                return None
        following.append(row)
    centres = np.concatenate([nodes.centres.reshape(-1, n), np.stack([state for state, _ in ways])])
    radii = np.concatenate([found.radii.ravel(), [radius for _, radius in ways]])
    cover = Cover(centres[:, None], radii[:, None], np.concatenate([inner, np.array(following)]))
    return cover, [tokens * points + place for place in range(len(starts))]


class BallSearch:
    """Covers by balls of one network. The nodes of a column serve every way that tells as much apart."""

    def __init__(self, maps: PointMaps) -> None:
        self.maps = maps
        self.nodes = functools.cache(self._nodes)

    def turn(self, epsilon: float, way: BallWay) -> tuple[list[Cover], list[CoveredPart]] | None:
        """Covers of the columns that come into balls of their own, or of a column before; others may be anywhere."""
        covers: list[Cover] = []
        parts: list[CoveredPart] = []
        for head in range(self.maps.start.shape[0]):
            for balls, columns in self._grouped(head, epsilon, way):
                found = cover_of(balls, [self._start(column) for column in columns], epsilon)
                if found:
                    parts += [CoveredPart((column,), len(covers), start) for column, start in zip(columns, found[1])]
                    covers.append(found[0])
        return (covers, parts) if covers else None

    def _grouped(self, head: int, epsilon: float, way: BallWay) -> list[tuple[Turning, list[Column]]]:
        """The columns of a head that come into balls, with those balls."""
        groups: list[tuple[Turning, list[Column]]] = []
        for column in (each for each in self.maps.columns if each[0] == head):
            start = [self._start(column)]
            known = next((columns for balls, columns in groups if cover_of(balls, start, epsilon)), None)
            if known is not None:
                known.append(column)
                continue
            nodes = self.nodes(column, way.near, way.memory)
            balls = turning(nodes, max(way.room, epsilon)) if nodes else None
            if balls and cover_of(balls, start, epsilon):
                groups.append((balls, [column]))
        return groups

    def _start(self, column: Column) -> Floats:
        return np.asarray(self.maps.start[column[0], :, column[1]])

    def _nodes(self, column: Column, near: float, memory: int) -> Nodes | None:
        return nodes_of(self.maps.matrix[:, column[0]], self._start(column), near, memory)
