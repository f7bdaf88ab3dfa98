"""Covers around points, drawn for maps that are known."""

from __future__ import annotations

import itertools
import math

import numpy as np

from statetrack.certificates.cover import PointMaps
from statetrack.certificates.points import MOST_IMAGES, POINT_WAYS, PointSearch, PointWay

GAIN, EPSILON = 1.9, 1e-3


def with_a_number_that_floats() -> PointMaps:
    """S3 moves the places of three numbers, which gain keeps near +-.95. A fourth is turned and shrunk by each token in
    another way, and never comes to rest.
    """
    rng = np.random.default_rng(0)
    moves = list(itertools.permutations(range(3)))
    matrix = np.zeros((len(moves), 1, 4, 4))
    for token, images in enumerate(moves):
        matrix[token, 0, list(images), range(3)] = GAIN
        matrix[token, 0, 3, 3] = rng.uniform(-1.4, 1.4)
        matrix[token, 0, 3, :3] = rng.uniform(-0.5, 0.5, 3)
    start = np.array([0.9, -0.9, -0.9, 0.3]).reshape(1, 4, 1)
    return PointMaps(matrix, np.zeros((len(moves), 1, 4, 1)), start)


def test_a_number_that_does_not_settle_may_lie_anywhere() -> None:
    maps = with_a_number_that_floats()
    found = PointSearch(maps).turn(EPSILON, PointWay(1e-2, MOST_IMAGES), math.inf)
    assert found is not None
    (cover,), (part,) = found
    assert part.columns == ((0, 0),)
    centres, radii = cover.centres[:, 0], cover.radii[:, 0]
    around = radii[:, 3] > 1
    assert around.sum() >= 18  # three points, one region for each and each last token
    assert radii[around, :3].max() < 0.5
    for token, matrix in enumerate(maps.matrix[:, 0]):
        middle, wide = centres @ matrix.T, radii @ np.abs(matrix).T
        low, high = np.tanh(middle - wide) - EPSILON, np.tanh(middle + wide) + EPSILON
        into = cover.next[:, token]
        assert (centres[into] - radii[into] <= low).all()
        assert (high <= centres[into] + radii[into]).all()
    state = maps.start_of(((0, 0),))[0]
    assert (np.abs(state - centres[part.start]) <= radii[part.start]).all()


def test_many_nodes_are_left_to_the_ways_that_take_minutes() -> None:
    search = PointSearch(with_a_number_that_floats())
    assert search.turn(EPSILON, PointWay(1e-2, 10), math.inf) is None
    assert search.turn(EPSILON, PointWay(1e-2, MOST_IMAGES), math.inf) is not None
    assert [way.images for way in POINT_WAYS] == sorted(way.images for way in POINT_WAYS)
