"""PSL(n, q) as permutations of the points of projective space.

The points are the vectors over F_q whose first non-zero coordinate is 1, in lexicographic order. Worked by hand: over
F_2 the projective line has (0, 1), (1, 0), (1, 1), the points 0, 1, 2. With x the second coordinate of (1, x), the
translation x -> x + 1 fixes (0, 1) and swaps the other two: [0, 2, 1].

>>> line_generators(2)[0].tolist()
[0, 2, 1]
"""

from __future__ import annotations

from itertools import product

import numpy as np

from statetrack.tasks.groups.fields import Field
from statetrack.tasks.groups.permutations import Images

Vector = tuple[int, ...]
Matrix = list[list[int]]


def line_generators(q: int) -> list[Images]:
    """PSL(2, q): x -> x + b for b in a basis of F_q over F_p, and x -> -1/x."""
    field = Field(q)
    translations: list[Matrix] = [[[1, 0], [b, 1]] for b in field.basis]  # (1, x) -> (1, x + b)
    turn: Matrix = [[0, 1], [field.minus(1), 0]]  # (1, x) -> (x, -1), which is (1, -1/x)
    return [act(field, matrix) for matrix in [*translations, turn]]


def plane_generators(q: int) -> list[Images]:
    """PSL(3, q): v_1 -> v_1 + b v_2 for b in a basis of F_q over F_p, and the 3-cycle of the coordinates."""
    field = Field(q)
    shears: list[Matrix] = [[[1, b, 0], [0, 1, 0], [0, 0, 1]] for b in field.basis]
    cycle: Matrix = [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    return [act(field, matrix) for matrix in [*shears, cycle]]


def points(field: Field, dimension: int) -> list[Vector]:
    """The vectors whose first non-zero coordinate is 1, in lexicographic order."""
    vectors = product(range(field.q), repeat=dimension)
    return [vector for vector in vectors if next(filter(None, vector), 0) == 1]


def act(field: Field, matrix: Matrix) -> Images:
    """The permutation of the projective points that v -> matrix v makes."""
    space = points(field, len(matrix))
    number = {point: index for index, point in enumerate(space)}
    images = [number[_normalised(field, _times(field, matrix, point))] for point in space]
    return np.array(images, dtype=np.uint8)


def _times(field: Field, matrix: Matrix, vector: Vector) -> Vector:
    total = [0] * len(matrix)
    for i, row in enumerate(matrix):
        for entry, coordinate in zip(row, vector):
            total[i] = field.plus(total[i], field.times(entry, coordinate))
    return tuple(total)


def _normalised(field: Field, vector: Vector) -> Vector:
    scale = field.inverse(next(filter(None, vector)))
    return tuple(field.times(scale, coordinate) for coordinate in vector)
