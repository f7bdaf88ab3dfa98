"""The stabiliser chain of a permutation group, by the method of Schreier and Sims.

H_0 is the group, H_{i+1} is the subgroup of H_i that fixes the point i. Level i holds the orbit of i under H_i and,
for every point of the orbit, one element of H_i that takes i there (a representative). Every element of the group is,
in exactly one way, u_0 ∘ u_1 ∘ ... with one representative u_i per level, so the order is the product of the orbit
lengths.

Worked by hand: S_3 = <(0 1), (0 1 2)>. Level 0: orbit {0, 1, 2}. Level 1, what fixes 0: orbit {1, 2}. Level 2: orbit
{2}. The order is 3 * 2 * 1 = 6; the points whose orbit is longer than one, 0 and 1, are the base.

Schreier's lemma says which elements generate H_{i+1}: u_{s(p)}^-1 ∘ s ∘ u_p for p in the orbit and s a generator of
H_i. The chain is complete when all of them, at all levels, sift down to the identity.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from statetrack.tasks.groups.permutations import Images, identity, inverse, orbits, to_cycles


class Level:
    """The orbit of `point` under the generators of this level, with a representative for each of its points."""

    def __init__(self, point: int, degree: int) -> None:
        self.point = point
        self.generators: list[Images] = []
        self.orbit = [point]
        self.inside = np.zeros(degree, dtype=bool)
        self.inside[point] = True
        self.representatives = np.zeros((degree, degree), dtype=np.uint8)
        self.inverses = np.zeros((degree, degree), dtype=np.uint8)
        self.representatives[point] = self.inverses[point] = identity(degree)
        self.checked = True

    def add(self, generator: Images) -> None:
        """Take one more generator and let the orbit grow. The representatives there were stay as they were."""
        self.generators.append(generator)
        self.checked = False
        grown = len(self.orbit)
        if self.inside[generator[self.orbit]].all():
            return
        for index, point in enumerate(self.orbit):  # the list grows while we walk along it
            for step in self.generators if index >= grown else [generator]:
                reached = int(step[point])
                if not self.inside[reached]:
                    self.inside[reached] = True
                    self.representatives[reached] = step[self.representatives[point]]
                    self.inverses[reached] = inverse(self.representatives[reached])
                    self.orbit.append(reached)

    def schreier_generators(self) -> Images:
        """u_{s(p)}^-1 ∘ s ∘ u_p for every point p of the orbit and every generator s, one per row."""
        reached = [step[self.representatives[self.orbit]] for step in self.generators]
        return self.returned(np.concatenate(reached))

    def returned(self, elements: Images) -> Images:
        """u^-1 ∘ g for every row g, where u is the representative that takes the level's point where g takes it."""
        return self.inverses[elements[:, self.point, None], elements]


class Chain:
    """The group that the generators generate, as its stabiliser chain along 0, 1, 2, ...

    >>> chain = Chain(3, [[1, 0, 2], [1, 2, 0]])
    >>> chain.order, chain.base
    (6, (0, 1))
    """

    def __init__(self, degree: int, generators: Iterable[Images]) -> None:
        self.degree = degree
        self.levels = [Level(point, degree) for point in range(degree)]
        for generator in np.asarray(list(generators), dtype=np.uint8).reshape(-1, degree):
            self._insert(generator, below=0)
        self._complete()

    @property
    def order(self) -> int:
        return math.prod(len(level.orbit) for level in self.levels)

    @property
    def base(self) -> tuple[int, ...]:
        """The points that what fixes all smaller points still moves: an element is known by where it takes these.

        Of two elements, the first point where they differ is always in the base: what comes before fixes every other
        point. So elements sorted by their images of the base are sorted by their whole image arrays.
        """
        return tuple(level.point for level in self._long_levels())

    def contains(self, element: Images) -> bool:
        return self._residue(element[None]) is None

    def add(self, generator: Images) -> bool:
        """Make the group as large as it must be to hold one more element; False when it held it already."""
        if self.contains(generator):
            return False
        self._insert(generator, below=0)
        self._complete()
        return True

    def elements(self) -> Images:
        """All elements, sorted by their image arrays."""
        elements = identity(self.degree)[None]
        for level in self._long_levels():
            # p ∘ u takes the level's point to p[u[point]] = p[orbit point]: sorting by that keeps the whole sorted
            orbit = np.array(level.orbit)
            sorted_by_image = np.argsort(elements[:, orbit], axis=1)
            longer = np.empty((len(elements), len(orbit), self.degree), dtype=np.uint8)
            for place, representative in enumerate(level.representatives[orbit]):
                longer[:, place] = elements[:, representative]
            rows = np.arange(len(elements))[:, None]
            elements = longer[rows, sorted_by_image].reshape(-1, self.degree)
        return elements

    def _long_levels(self) -> list[Level]:
        return [level for level in self.levels if len(level.orbit) > 1]

    def _residue(self, elements: Images) -> Images | None:
        """What is left of the first element found that the chain does not hold; None when it holds them all."""
        for level in self._long_levels():
            outside = ~level.inside[elements[:, level.point]]
            if outside.any():
                return elements[outside.argmax()]
            elements = level.returned(elements)
        left = (elements != identity(self.degree)).any(axis=1)
        return elements[left.argmax()] if left.any() else None

    def _insert(self, element: Images, below: int) -> None:
        """Give the element to the levels from `below` on to which it belongs: it fixes all points before theirs."""
        moved = np.flatnonzero(element != identity(self.degree))
        for level in self.levels[below : moved[0] + 1] if len(moved) else []:
            level.add(element)

    def _bound(self) -> int:
        """The order of the largest group with the same orbits: all permutations of each orbit, or all even ones."""
        generators = self.levels[0].generators
        lengths = np.bincount(orbits(self.degree, generators)).tolist()
        everything = math.prod(math.factorial(length) for length in lengths)
        even = all(sum(len(cycle) - 1 for cycle in to_cycles(g)) % 2 == 0 for g in generators)
        return everything // 2 if even and everything > 1 else everything

    def _complete(self) -> None:
        """Level by level, from the top: sift Schreier generators and take in what is left of them, until nothing is.

        What is taken in belongs to deeper levels only, and what sifts to the identity still does when their orbits
        grow; so a level that is done stays done.
        """
        bound = self._bound()
        for level in self.levels:
            while level.generators and not level.checked and self.order < bound:
                residue = self._residue(level.schreier_generators())
                if residue is None:
                    level.checked = True
                else:
                    self._insert(residue, below=level.point + 1)
