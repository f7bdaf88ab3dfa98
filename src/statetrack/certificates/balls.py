"""A cover by balls, for columns that turn: every token's map is nearly a multiple of a rotation or a reflection.

Boxes fail there, since products of |A| grow where products of A do not. A column settles near a few points, told apart
by their distance, and a token moves each point near another. A node is a point with the token that comes next, and has
one ball: around the image of the point, as wide as the images of the balls before need it to be. All columns of a head
move by the same maps, so that one cover serves them all; they differ in their start.

Where a network keeps the task's state in a part of a column alone, the rest may take many values: more points, which
are nearer to each other, are tried where few do not close.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from statetrack.certificates.cover import Columns, Cover, CoveredPart, Floats, Ints, PointMaps

ROWS, STEPS, BURN = 64, 160, 24  # random words that show the points
MOST_POINTS, MOST_IMAGES = 600, 6_000_000
REFINED = 5
ROUNDS, GROWTH, WIDEST = 120, 1.01, 1.2
MARGIN = 1e-6  # beside epsilon: the checker rounds outward
MOST_ENTRIES = 10_000  # regions between the start of a column and its balls


@dataclass(frozen=True)
class BallWay:
    """How far apart two points are at least, and the error in each number that the balls leave room for. Wide balls are
    entered sooner, narrow ones are read with more margin.
    """

    near: float
    room: float
    memory: int = 1  # the tokens, the last one among them, that a node tells apart beside its point


ROOMS = (5e-2, 3e-2, 1e-2, 3e-3, 1e-3, 0.0)
BALL_WAYS = tuple(
    BallWay(near, room, memory)
    for near, memory in ((0.8, 1), (0.8, 2), (0.8, 3), (0.4, 1), (0.4, 2), (0.2, 1), (0.1, 1))
    for room in ROOMS
)


@dataclass(frozen=True)
class Turning:
    """The points of a head, where each token leads (`to`), the balls of (token, point) and how wide they are."""

    matrix: Floats  # (tokens, n, n)
    to: Ints  # (tokens, points)
    centres: Floats  # (tokens, points, n): the image of a point under a token
    radii: Floats  # (tokens, points)


def points_of(maps: PointMaps, head: int, near: float, seed: int = 0) -> Floats | None:
    """States of the columns of a head, no two within `near` of each other, such that all that random words lead to, and
    each image of a point, is that near to one; None where these are too many.
    """
    rng = np.random.default_rng(seed)
    matrix, n = maps.matrix[:, head], maps.start.shape[1]
    states, points = np.repeat(maps.start[None, head], ROWS, axis=0), np.empty((0, n))
    for step in range(STEPS):
        states = np.tanh(matrix[rng.integers(0, maps.tokens, ROWS)] @ states)
        if step >= BURN:
            points = with_new(points, states.transpose(0, 2, 1).reshape(-1, n), near)
    known = 0
    while known < len(points) <= MOST_POINTS:
        known, images = len(points), np.tanh(np.einsum("xij,cj->xci", matrix, points[known:]))
        points = with_new(points, images.reshape(-1, n), near)
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


def turning(maps: PointMaps, head: int, epsilon: float, points: Floats, memory: int = 1) -> Turning | None:
    """The balls of a head around the images of these points that hold their own images; None where there are none."""
    matrix = maps.matrix[:, head]
    for _ in range(REFINED):
        to, centres = nearest(matrix, points)
        points = np.stack([centres[to == place].mean(axis=0) if (to == place).any() else points[place]
                           for place in range(len(points))])  # fmt: skip
    to, centres = nearest(matrix, points)
    for _ in range(memory - 1):
        if centres.size // points.shape[1] * len(matrix) ** 2 > MOST_IMAGES:
            return None
        points, to = remembered(centres, to)
        centres = images_of(matrix, points)
    radii = _radii(matrix, to, centres, epsilon)
    return None if radii is None else Turning(matrix, to, centres, radii)


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
    tokens, points, n = found.centres.shape
    norms, rows = norms_of(found.matrix), np.linalg.norm(found.matrix, axis=2)
    inner = (np.arange(tokens)[None, :] * points + found.to.reshape(-1)[:, None]).reshape(-1, tokens)
    ways: list[tuple[Floats, float]] = [(start, MARGIN) for start in starts]
    following: list[list[int]] = []
    waiting = deque(range(len(ways)))
    while waiting:
        state, radius = ways[waiting.popleft()]
        arguments = found.matrix @ state
        slope = 1 - np.tanh(np.maximum(np.abs(arguments) - rows * radius, 0)) ** 2
        images = np.tanh(arguments)
        reach = slope.max(axis=1) * norms * radius + (epsilon + MARGIN) * np.sqrt(n)
        left = found.radii - np.linalg.norm(images[:, None] - found.centres, axis=2) - reach[:, None]
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
    centres = np.concatenate([found.centres.reshape(-1, n), np.stack([state for state, _ in ways])])
    radii = np.concatenate([found.radii.ravel(), [radius for _, radius in ways]])
    cover = Cover(centres[:, None], radii[:, None], np.concatenate([inner, np.array(following)]))
    return cover, [tokens * points + place for place in range(len(starts))]


def columns_of(maps: PointMaps, head: int) -> Columns:
    return tuple(column for column in maps.columns if column[0] == head)


def turn(maps: PointMaps, epsilon: float, way: BallWay) -> tuple[list[Cover], list[CoveredPart]] | None:
    """A cover for each head that closes, and the columns that come into it from their start; others may be anywhere."""
    covers: list[Cover] = []
    parts: list[CoveredPart] = []
    for head in range(maps.start.shape[0]):
        points = points_of(maps, head, way.near)
        balls = None if points is None else turning(maps, head, max(way.room, epsilon), points, way.memory)
        if balls is None:
            continue
        starts = {column: maps.start[head, :, column[1]] for column in columns_of(maps, head)}
        entering = [column for column, start in starts.items() if cover_of(balls, [start], epsilon)]
        found = cover_of(balls, [starts[column] for column in entering], epsilon) if entering else None
        if found:
            parts += [CoveredPart((column,), len(covers), start) for column, start in zip(entering, found[1])]
            covers.append(found[0])
    return (covers, parts) if covers else None
