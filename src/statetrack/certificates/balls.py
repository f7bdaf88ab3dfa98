"""A cover by balls, for columns that turn: every token's map is nearly a multiple of a rotation or a reflection.

Boxes fail there, since products of |A| grow where products of A do not. A column settles near a few points, told apart
by their signs, and a token moves each point near another. A node is a point with the token that comes next, and has one
ball: around the image of the point, as wide as the images of the balls before need it to be. All columns of a head move
by the same maps, so that one cover serves them all; they differ in their start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from statetrack.certificates.cover import Columns, Cover, Floats, Ints, PointMaps

ROWS, STEPS, BURN = 64, 160, 24  # random words that show the points
MOST_POINTS = 600
REFINED = 5
ROUNDS, WIDEST = 300, 1.2
MARGIN = 1e-6  # beside epsilon: the checker rounds outward
MOST_ENTRIES = 10_000  # regions between the start of a column and its balls


@dataclass(frozen=True)
class Turning:
    """The points of a head, where each token leads (`to`), the balls of (token, point) and how wide they are."""

    matrix: Floats  # (tokens, n, n)
    to: Ints  # (tokens, points)
    centres: Floats  # (tokens, points, n): the image of a point under a token
    radii: Floats  # (tokens, points)


def points_of(maps: PointMaps, head: int, seed: int = 0) -> Floats | None:
    """The means of the states that columns of a head come through, by their signs; None where these are too many."""
    rng = np.random.default_rng(seed)
    states = np.repeat(maps.start[None, head], ROWS, axis=0)
    seen: dict[bytes, list[Floats]] = {}
    for step in range(STEPS):
        states = np.tanh(maps.matrix[rng.integers(0, maps.tokens, ROWS), head] @ states)
        if step >= BURN:
            for column in states.transpose(0, 2, 1).reshape(-1, states.shape[1]):
                seen.setdefault(np.signbit(column).tobytes(), []).append(column)
            if len(seen) > MOST_POINTS:
                return None
    return np.stack([np.mean(each, axis=0) for each in seen.values()])


def turning(maps: PointMaps, head: int, epsilon: float) -> Turning | None:
    """The balls of a head that hold their own images; None where there are none."""
    points, matrix = points_of(maps, head), maps.matrix[:, head]
    if points is None:
        return None
    for _ in range(REFINED):
        centres = np.tanh(np.einsum("xij,cj->xci", matrix, points))
        number = {np.signbit(point).tobytes(): place for place, point in enumerate(points)}
        signs = np.signbit(centres)
        to = np.array([[number.get(sign.tobytes(), -1) for sign in row] for row in signs])
        if (to < 0).any() or len(number) < len(points):
            return None
        points = np.stack([centres[to == place].mean(axis=0) if (to == place).any() else points[place]
                           for place in range(len(points))])  # fmt: skip
    centres = np.tanh(np.einsum("xij,cj->xci", matrix, points))
    radii = _radii(matrix, to, centres, epsilon)
    return None if radii is None else Turning(matrix, to, centres, radii)


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
        radii = np.maximum(radii, most * 1.001 + MARGIN)
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
