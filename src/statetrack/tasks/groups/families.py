"""The families of the catalogue: which groups they hold, how each is generated, and what people call it.

A family is one line of FAMILIES. Its members' names are its pattern with the numbers filled in, so that ('psl2_{}',
[2, 3]) names psl2_2 and psl2_3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from statetrack.tasks.groups.permutations import Images, from_cycles
from statetrack.tasks.groups.projective import line_generators, plane_generators


@dataclass(frozen=True)
class GroupFamily:
    """Groups made by one rule; each member is a tuple of numbers that fills the patterns and feeds the rule."""

    name: str
    pattern: str
    usual: str
    generators: Callable[..., list[Images]]
    members: Sequence[tuple[int, ...]]


def symmetric(n: int) -> list[Images]:
    return [from_cycles([(0, 1)], n), from_cycles([range(n)], n)]


def alternating(n: int) -> list[Images]:
    """(0 1 2) and the longest cycle that is even: all n points, or all but 0."""
    three, long = from_cycles([range(3)], n), from_cycles([range(1 - n % 2, n)], n)
    return [three] if n == 3 else [three, long]


def cyclic(n: int) -> list[Images]:
    """x -> x + 1."""
    return [from_cycles([range(n)], n)]


def dihedral(n: int) -> list[Images]:
    """x -> x + 1 and x -> -x."""
    return [*cyclic(n), _affine(-1, n)]


def quaternion(order: int) -> list[Images]:
    """On the points e*N + j, N = order / 2: a: (e, j) -> (e, j + 1); b: (0, j) -> (1, -j), (1, j) -> (0, N/2 - j)."""
    n = order // 2
    j = np.arange(n)
    a = np.concatenate([(j + 1) % n, n + (j + 1) % n])
    b = np.concatenate([n + -j % n, (n // 2 - j) % n])
    return [a.astype(np.uint8), b.astype(np.uint8)]


def frobenius(order: int) -> list[Images]:
    """x -> x + 1 and x -> 2x, modulo 5 (order 20) or 7 (order 21)."""
    n = {20: 5, 21: 7}[order]
    return [*cyclic(n), _affine(2, n)]


def klein(_: int) -> list[Images]:
    return [from_cycles([(0, 1), (2, 3)], 4), from_cycles([(0, 2), (1, 3)], 4)]


def elementary_abelian(p: int, k: int) -> list[Images]:
    """k disjoint p-cycles."""
    return [from_cycles([range(p * i, p * i + p)], p * k) for i in range(k)]


def mathieu(n: int) -> list[Images]:
    """M11 and M12 by their usual generators, which are written with points from 1 on."""
    written: list[list[Sequence[int]]] = [[range(1, 12)], [(3, 7, 11, 8), (4, 10, 5, 6)]]
    if n == 12:
        written.append([(1, 12), (2, 11), (3, 6), (4, 8), (5, 9), (7, 10)])
    return [from_cycles([[point - 1 for point in cycle] for cycle in cycles], n) for cycles in written]


def _affine(factor: int, n: int) -> Images:
    return (factor * np.arange(n) % n).astype(np.uint8)


def _each(*numbers: int) -> list[tuple[int, ...]]:
    return [(number,) for number in numbers]


_POWERS = [(2, k) for k in range(1, 6)] + [(p, k) for p in (3, 5) for k in range(1, 5)]

FAMILIES = [
    GroupFamily("symmetric", "s{}", "S{}", symmetric, _each(*range(3, 10))),
    GroupFamily("alternating", "a{}", "A{}", alternating, _each(*range(3, 10))),
    GroupFamily("cyclic", "c{}", "C{}", cyclic, _each(*range(2, 31))),
    GroupFamily("dihedral", "d{}", "D{}", dihedral, _each(*range(3, 21))),
    GroupFamily("quaternion", "q{}", "Q{}", quaternion, _each(8, 16, 32)),
    GroupFamily("frobenius", "f{}", "F{}", frobenius, _each(20, 21)),
    GroupFamily("klein", "v{}", "V{}", klein, _each(4)),
    GroupFamily("elementary_abelian", "z{}_{}", "Z_{}^{}", elementary_abelian, _POWERS),
    GroupFamily("psl", "psl2_{}", "PSL(2,{})", line_generators, _each(2, 3, 4, 5, 7, 8, 9, 11)),
    GroupFamily("psl", "psl3_{}", "PSL(3,{})", plane_generators, _each(2, 3, 4, 5)),
    GroupFamily("mathieu", "m{}", "M{}", mathieu, _each(11, 12)),
]
