"""What a permutation group is: its composition factors, and its name where it has one.

Worked by hand: S4 > A4 > V4 > C2 > 1, each normal in the one before, with nothing in between; the quotients have the
orders 2, 3, 2, 2. A solvable group's factors are the primes of its order. What is left of another one at the end of
its derived series is perfect, and there a largest normal subgroup is looked for among the normal closures of its
conjugacy classes.

>>> from statetrack.tasks.groups import group
>>> structure(group("s5")).factors, structure(group("s4")).name
(('C2', 'A5'), 'S4')
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.tasks.groups import Group, group, usual_name
from statetrack.tasks.groups.chain import Chain
from statetrack.tasks.groups.group import MAX_ELEMENTS
from statetrack.tasks.groups.permutations import Images, inverse, to_cycles
from statetrack.theory.algebra.simple_groups import prime_factors, simple_name


@dataclass(frozen=True)
class Structure:
    """The algebra of a group. `derived_length` is None where it is not solvable; `factors` are its composition factors.

    `isomorphic` are the catalogue's names for the same group.
    """

    name: str
    order: int
    abelian: bool
    solvable: bool
    derived_length: int | None
    simple: bool
    factors: tuple[str, ...]
    isomorphic: tuple[str, ...]

    def text(self) -> str:
        """One line: order, factors, solvable or not."""
        length = f"solvable, derived length {self.derived_length}" if self.solvable else "not solvable"
        kind = "abelian" if self.abelian else length
        simple = ", simple" if self.simple else ""
        name = self.name if self.name.endswith(f"order {self.order}") else f"{self.name}, order {self.order}"
        return f"{name}, {kind}{simple}; composition factors {grouped(self.factors)}"


def grouped(factors: tuple[str, ...]) -> str:
    """Equal factors together.

    >>> grouped(("C2", "C2", "C3"))
    'C2^2, C3'
    """
    counts = Counter(factors)
    return ", ".join(name if count == 1 else f"{name}^{count}" for name, count in counts.items()) or "none"


def structure(the_group: Group) -> Structure:
    """The algebra of a group."""
    return _structure(the_group.degree, the_group.generators.tobytes(), the_group.name)


@lru_cache(maxsize=1024)
def _structure(degree: int, generators: bytes, name: str) -> Structure:
    from statetrack.theory.algebra.isomorphism import catalogue_names

    images = np.frombuffer(generators, np.uint8).reshape(-1, degree)
    the_group = Group.from_generators(_needed(images), name)
    factors, names = composition_factors(the_group), catalogue_names(the_group)
    simple = len(factors) == 1
    return Structure(
        _name(the_group, names, factors),
        the_group.order,
        the_group.is_abelian,
        the_group.is_solvable,
        the_group.derived_length,
        simple,
        factors,
        names,
    )


def symmetric(n: int) -> Structure:
    """S_n, for any n: beyond S_9 it is known without being built.

    >>> symmetric(100).factors
    ('C2', 'A100')
    """
    if n < 10:
        return structure(Group.from_generators([[1, 0, *range(2, n)], [*range(1, n), 0]], f"s{n}"))
    return Structure(f"S{n}", math.factorial(n), False, False, None, False, ("C2", f"A{n}"), ())


def _needed(generators: Images) -> Images:
    """The generators without those that the ones before them generate."""
    chain = Chain(generators.shape[1], [])
    kept = [row for row in generators if chain.add(row)]
    return np.stack(kept or [generators[0]])


def _name(the_group: Group, names: tuple[str, ...], factors: tuple[str, ...]) -> str:
    if the_group.order == 1:
        return "trivial"
    if the_group.is_abelian and the_group.order <= MAX_ELEMENTS:
        return abelian_name(abelian_factors(the_group.element_orders))
    if names:
        return usual_name(names[0])
    if len(factors) == 1:
        return factors[0]
    n = moved_points(the_group)
    return f"S{n}" if the_group.order == math.factorial(n) else f"a group of order {the_group.order}"


def moved_points(the_group: Group) -> int:
    """How many points some element moves."""
    return int((the_group.generators != np.arange(the_group.degree)).any(axis=0).sum())


def abelian_factors(element_orders: NDArray[Any]) -> list[int]:
    """The d_1, d_2, ... of an abelian group C_{d_1} x C_{d_2} x ..., each dividing the next, from its elements' orders.

    The elements x with x^(p^i) = 1 are p^(s_i) many, and s_i - s_{i-1} factors are divisible by p^i.

    >>> abelian_factors(np.array([1, 2, 2, 2, 4, 4, 4, 4]))
    [2, 4]
    """
    count = len(element_orders)
    factors = np.ones(count.bit_length(), np.int64)
    for p in set(prime_factors(count)):
        before, power = 0, p
        while True:
            logarithm = round(math.log(int((power % element_orders == 0).sum()), p))
            if logarithm == before:
                break
            factors[: logarithm - before] *= p
            before, power = logarithm, power * p
    return sorted(int(factor) for factor in factors if factor > 1)


def abelian_name(factors: list[int]) -> str:
    """C2 x C4."""
    return " x ".join(f"C{factor}" for factor in factors) or "trivial"


def composition_factors(the_group: Group) -> tuple[str, ...]:
    """The names of the simple groups that it is made of, the cyclic ones first."""
    names: list[str] = []
    rest: Group | None = the_group
    while rest is not None and rest.order > 1:
        perfect = rest.derived_series[-1]
        names += [f"C{p}" for p in prime_factors(rest.order // perfect.order)]
        rest = None
        if perfect.order > 1:
            name, rest = _top_factor(perfect)
            names.append(name)
    return tuple(sorted(names, key=lambda name: (not _cyclic(name), len(name), name)))


def _cyclic(name: str) -> bool:
    return name[0] == "C" and name[1:].isdigit()


def _top_factor(perfect: Group) -> tuple[str, Group | None]:
    """The simple quotient by a largest normal subgroup of a perfect group, and that subgroup."""
    n = moved_points(perfect)
    if n >= 5 and perfect.order == math.factorial(n) // 2:
        return f"A{n}", None
    if perfect.order > MAX_ELEMENTS:
        return f"a perfect group of order {perfect.order}, not taken apart", None
    normal = _largest_normal(perfect)
    below = Group.from_generators(normal) if len(normal) else None
    order = perfect.order // (below.order if below else 1)
    inside = below.chain if below else Chain(perfect.degree, [])
    largest = max(_order_above(perfect.elements[x], inside) for x in _representatives(perfect))
    return simple_name(order, largest), below


def _representatives(the_group: Group) -> list[int]:
    """The least ID of every conjugacy class."""
    return np.unique(the_group.conjugacy_classes, return_index=True)[1].tolist()


def _order_above(element: Images, inside: Chain) -> int:
    """The least n for which the n-th power lies in a normal subgroup: the order of the coset."""
    power, n = element, 1
    while not inside.contains(power):
        power, n = element[power], n + 1
    return n


def _largest_normal(the_group: Group) -> Images:
    """Generators of a normal subgroup that no larger one but the whole group contains.

    A normal subgroup that is not trivial holds an element of prime order, so if the normal closure of each of these
    is the whole group, it is simple. Otherwise classes are added one by one, as long as they do not bring in
    everything: what was refused once would be refused again later, when the subgroup has grown.
    """
    kept: list[Images] = []
    candidates = [x for x in _representatives(the_group) if x]
    prime = [x for x in candidates if len(prime_factors(int(the_group.element_orders[x]))) == 1]
    if all(_closure(the_group, [the_group.elements[x]]) is None for x in _without_powers(the_group, prime)):
        return np.zeros((0, the_group.degree), np.uint8)
    for x in candidates:
        if _closure(the_group, [*kept, the_group.elements[x]]) is not None:
            kept.append(the_group.elements[x])
    generators = _closure(the_group, kept)
    assert generators is not None  # the last one kept was kept because this is so
    return np.stack(generators)


def _without_powers(the_group: Group, ids: list[int]) -> list[int]:
    """One element of each set whose members' powers are conjugate: they have the same normal closure."""
    seen: set[int] = set()
    chosen = []
    for x in ids:
        if int(the_group.conjugacy_classes[x]) in seen:
            continue
        chosen.append(x)
        power = x
        while power:
            seen.add(int(the_group.conjugacy_classes[power]))
            power = the_group.then(power, x)
    return chosen


def _closure(the_group: Group, elements: list[Images]) -> list[Images] | None:
    """Generators of the smallest normal subgroup that holds the elements; None when it is the whole group."""
    chain = Chain(the_group.degree, [])
    waiting, generators = list(elements), []
    for element in waiting:  # grows while it is read
        if chain.add(element):
            generators.append(element)
            if chain.order == the_group.order:
                return None
            waiting.extend(g[element[inverse(g)]] for g in the_group.generators)
    return generators


def from_permutations(permutations: NDArray[Any]) -> Structure | None:
    """The group whose elements are all given, one per row; None where it acts on too many points to be looked at."""
    reduced = _on_few_points(permutations)
    if reduced is not None:
        return structure(Group.from_generators(reduced))
    if len(permutations) <= 2048 and _all_commute(permutations):
        return _abelian_structure(abelian_factors(np.array([_order(row) for row in permutations])))
    return None


def _order(permutation: NDArray[Any]) -> int:
    return math.lcm(*map(len, to_cycles(permutation)))


def _on_few_points(permutations: NDArray[Any], most: int = 255) -> Images | None:
    """The same group on some of its orbits, on which no two elements agree, if they have few points together."""
    chosen: list[int] = []
    for point in range(permutations.shape[1]):
        if point in chosen:
            continue
        orbit = np.unique(permutations[:, point]).tolist()
        if len(chosen) + len(orbit) > most:
            continue
        chosen += orbit
        if len(np.unique(permutations[:, chosen], axis=0)) == len(permutations):
            points = np.array(sorted(chosen))
            return np.searchsorted(points, permutations[:, points]).astype(np.uint8)
    return None


def _all_commute(permutations: NDArray[Any]) -> bool:
    """Whether it is abelian: every element commutes with the few that generate it, found by what they reach."""
    generators: list[NDArray[Any]] = []
    reached = {np.arange(permutations.shape[1], dtype=permutations.dtype).tobytes()}
    for row in permutations:
        if row.tobytes() in reached:
            continue
        if any(not np.array_equal(row[other], other[row]) for other in generators):
            return False
        generators.append(row)
        reached = _with_powers(reached, row)
    return True


def _with_powers(reached: set[bytes], row: NDArray[Any]) -> set[bytes]:
    """The products of what was reached with the powers of one more element that commutes with all of it."""
    larger, edge = set(reached), reached
    while edge:
        edge = {row[np.frombuffer(key, row.dtype)].tobytes() for key in edge} - larger
        larger |= edge
    return larger


def _abelian_structure(factors: list[int]) -> Structure:
    from statetrack.theory.algebra.isomorphism import names_of_order

    order = math.prod(factors)
    primes = tuple(f"C{p}" for p in prime_factors(order))
    abelian = [name for name in names_of_order(order) if group(name).is_abelian]
    same = [name for name in abelian if abelian_factors(group(name).element_orders) == factors]
    return Structure(abelian_name(factors), order, True, True, 1, len(primes) == 1, primes, tuple(same))
