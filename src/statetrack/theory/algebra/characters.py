"""Characters of small groups, and what their real representations move.

Worked by hand: S3 has the classes {1}, {three swaps}, {two 3-cycles} and the characters (1, 1, 1), (1, -1, 1) and (2,
0, -1). The last belongs to the symmetries of a triangle: a swap has trace 0, so of the two dimensions it fixes one
and moves one, it is a reflection; a 3-cycle turns the plane and moves both.

The table comes from the class sums, which commute: with random weights c, the matrix

    M[j, k] = sum over y in class j of c(class of z_k y^-1),    z_k in class k

has for every irreducible character x the eigenvector w_k = |C_k| x(z_k) / x(1). Scaled by 1/sqrt|C_k| the matrix is
normal (Burnside's method, in floating point; orthogonality of the table is checked).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
TOLERANCE = 1e-6


@dataclass(frozen=True)
class RealRepresentations:
    """The irreducible real representations of a group, one per row, and its conjugacy classes, one per column.

    `character[r, k]` is the trace of an element of class k, `moved[r, k]` how many dimensions it moves, `kernel[r,
    k]` whether it moves none; `class_of[g]` is the class of the element with ID g, and class 0 is the identity's.
    """

    class_of: Ints
    character: NDArray[np.float64]
    moved: Ints

    @property
    def dimension(self) -> Ints:
        return np.rint(self.character[:, 0]).astype(np.int64)

    @property
    def kernel(self) -> NDArray[np.bool_]:
        return self.moved == 0

    def minimal_normal(self) -> NDArray[np.bool_]:
        """The smallest normal subgroups that are not trivial, one per row, as sets of classes."""
        closures = []
        for k in range(1, self.moved.shape[1]):
            fixing = self.kernel[:, k]
            closures.append(self.kernel[fixing].all(axis=0))  # what all representations that are trivial on k fix
        masks = np.unique(np.array(closures, bool).reshape(-1, self.moved.shape[1]), axis=0)
        contains = (masks[:, None, :] >= masks[None, :, :]).all(axis=2)
        return masks[contains.sum(axis=1) == 1]


def real_representations(cayley: NDArray[Any]) -> RealRepresentations:
    """The real irreducible representations of a group: cayley[a, b] is the ID of a, then b; the identity is 0."""
    table = cayley.astype(np.int64)
    class_of = conjugacy_classes(table)
    characters = character_table(table, class_of)
    representatives = np.unique(class_of, return_index=True)[1]
    powers = _powers(table, representatives)
    sizes = np.bincount(class_of)
    rows: dict[tuple[int, ...], NDArray[np.float64]] = {}
    for character in characters:
        squares = character[class_of[[power[2 % len(power)] for power in powers]]]
        # the indicator of Frobenius and Schur: 1 for a real representation; else it takes two to make a real one
        indicator = round(float((sizes * squares).sum().real) / len(table))
        real = character.real if indicator == 1 else 2 * character.real
        rows[tuple(np.rint(real * 1e4).astype(int))] = real
    real_characters = np.array(list(rows.values()))
    fixed = np.stack([real_characters[:, class_of[power]].mean(axis=1) for power in powers], axis=1)
    moved = np.rint(real_characters[:, :1] - fixed).astype(np.int64)
    return RealRepresentations(class_of, real_characters, moved)


def conjugacy_classes(table: Ints) -> Ints:
    """The class of every element, classes numbered by their first element."""
    inverse = np.argmin(table, axis=1)  # the product is the identity, ID 0
    conjugates = table[table, inverse[:, None]]  # row h, column g: h, then g, then h^-1
    return np.unique(conjugates.min(axis=0), return_inverse=True)[1].astype(np.int64)


def character_table(table: Ints, class_of: Ints) -> NDArray[np.complex128]:
    """Irreducible characters as rows, classes as columns."""
    order, sizes = len(table), np.bincount(class_of)
    inverse = np.argmin(table, axis=1)
    representatives = np.unique(class_of, return_index=True)[1]
    root = np.sqrt(sizes)
    for seed in range(20):
        weights = np.random.default_rng(seed).normal(size=len(sizes))
        matrix = np.empty((len(sizes), len(sizes)))
        for k, z in enumerate(representatives):
            matrix[:, k] = np.bincount(class_of, weights=weights[class_of[table[z, inverse]]], minlength=len(sizes))
        normal = matrix / root[:, None] * root[None, :]
        vectors = np.linalg.eig(normal)[1].T * root  # rows: |C_k| x(z_k) / x(1), up to a factor
        central = vectors / vectors[:, :1]
        dimension = np.sqrt(order / (np.abs(central) ** 2 / sizes).sum(axis=1))
        characters = central / sizes * np.rint(dimension)[:, None]
        gram = (characters * sizes) @ characters.conj().T / order
        if np.abs(gram - np.eye(len(sizes))).max() < TOLERANCE:
            return characters
    raise ArithmeticError(f"no character table of a group of order {order} within {TOLERANCE}")


def _powers(table: Ints, elements: Ints) -> list[Ints]:
    """For every element its powers g^0, g^1, ..., as far as they differ."""
    cycles = []
    for g in elements.tolist():
        powers = [0]
        while (following := int(table[powers[-1], g])) != 0:
            powers.append(following)
        cycles.append(np.array(powers))
    return cycles
