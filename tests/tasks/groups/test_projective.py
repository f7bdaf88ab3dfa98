"""PSL(n, q) built a second time: all matrices of determinant 1, over fields that are matrices themselves."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from statetrack.tasks.groups import group
from statetrack.tasks.groups.fields import Field

COMPANIONS = {  # the matrix of multiplication by x, for x^2+x+1, x^3+x+1 and x^2+x+2
    4: (2, [[0, 1], [1, 1]]),
    8: (2, [[0, 0, 1], [1, 0, 1], [0, 1, 0]]),
    9: (3, [[0, 1], [1, 2]]),
}


class Matrices:
    """F_q as matrices over F_p: the element with the digits c is c_0 + c_1 X + c_2 X^2, X the companion matrix."""

    def __init__(self, q: int) -> None:
        p, x = COMPANIONS.get(q, (q, [[0]]))
        powers = [np.linalg.matrix_power(np.array(x), i) for i in range(len(x))]
        digits = [[n // p**i % p for i in range(len(x))] for n in range(q)]
        elements = [sum(c * power for c, power in zip(d, powers)) % p for d in digits]
        number = {e.tobytes(): n for n, e in enumerate(elements)}
        self.q = q
        self.plus = np.array([[number[((a + b) % p).tobytes()] for b in elements] for a in elements])
        self.times = np.array([[number[(a @ b % p).tobytes()] for b in elements] for a in elements])
        self.minus = self.plus.argmin(axis=1)

    def dot(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Sum over the last axis of a * b."""
        terms = np.moveaxis(self.times[a, b], -1, 0)
        total = terms[0]
        for term in terms[1:]:
            total = self.plus[total, term]
        return total

    def determinant(self, m: np.ndarray) -> np.ndarray:
        if m.shape[-1] == 2:
            return self.plus[self.times[m[:, 0, 0], m[:, 1, 1]], self.minus[self.times[m[:, 0, 1], m[:, 1, 0]]]]
        minors = []
        for j, (a, b) in enumerate([(1, 2), (2, 0), (0, 1)]):
            minors.append(self.times[m[:, 0, j], self.determinant(m[:, 1:][:, :, [a, b]])])
        return self.plus[self.plus[minors[0], minors[1]], minors[2]]

    def permutations(self, m: np.ndarray) -> np.ndarray:
        """How matrices move the projective points, which are numbered in the lexicographic order of normal vectors."""
        n = m.shape[-1]
        vectors = [v for v in product(range(self.q), repeat=n) if any(v)]
        numbers = np.full((self.q,) * n, -1)
        points: list[tuple[int, ...]] = []
        for v in vectors:  # the first vector of a line in this order is the one that starts with 1
            if numbers[v] < 0:
                for scale in range(1, self.q):
                    numbers[tuple(self.times[scale, list(v)])] = len(points)
                points.append(v)
        moved = self.dot(m[:, None, :, :], np.array(points)[None, :, None, :])
        return numbers[tuple(np.moveaxis(moved, -1, 0))]


@pytest.mark.parametrize("q", [2, 3, 4, 5, 7, 8, 9, 11])
def test_field_is_the_field_of_matrices(q: int) -> None:
    ours, other = Field(q), Matrices(q)
    for a, b in product(range(q), repeat=2):
        assert ours.plus(a, b) == other.plus[a, b]
        assert ours.times(a, b) == other.times[a, b]
    assert [ours.minus(a) for a in range(q)] == other.minus.tolist()
    assert all(ours.times(a, ours.inverse(a)) == 1 for a in range(1, q))


@pytest.mark.parametrize("name", ["2_2", "2_3", "2_4", "2_5", "2_7", "2_8", "2_9", "2_11", "3_2", "3_3"])
def test_all_elements_are_all_matrices_of_determinant_one(name: str) -> None:
    n, q = map(int, name.split("_"))
    field = Matrices(q)
    m = np.array(list(product(range(q), repeat=n * n))).reshape(-1, n, n)
    m = m[field.determinant(m) == 1]
    assert group(f"psl{name}").elements.tolist() == np.unique(field.permutations(m), axis=0).tolist()


@pytest.mark.parametrize("name", ["3_4", "3_5"])
def test_matrices_of_determinant_one_are_elements_of_the_large_groups(name: str) -> None:
    n, q = map(int, name.split("_"))
    field = Matrices(q)
    m = np.random.default_rng(0).integers(0, q, (2000, n, n))
    determinants = field.determinant(m)
    special, others = field.permutations(m[determinants == 1]), field.permutations(m[determinants == 2])
    g = group(f"psl{name}")
    assert len(special) > 200
    assert (g.elements[g.id_of(special)] == special).all()
    # the order is that of SL(3, q) without its scalars, and q = 4 has matrices of other determinants that are not in it
    assert g.order == q**3 * (q**2 - 1) * (q**3 - 1) // (3 if q == 4 else 1)
    assert any(g.chain.contains(p.astype(np.uint8)) for p in others) == (q != 4)
