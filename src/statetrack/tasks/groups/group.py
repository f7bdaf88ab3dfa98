"""A permutation group: its elements with their IDs, products of any length, and its algebra.

An element's ID is its rank when all elements are sorted by their image arrays; the identity is 0. In a listed
sequence the first element acts first: the product of p_1, ..., p_n is p_n ∘ ... ∘ p_2 ∘ p_1.

Worked by hand in S3, whose elements are 0 [0,1,2], 1 [0,2,1], 2 [1,0,2], 3 [1,2,0], 4 [2,0,1], 5 [2,1,0]. First 3,
then 2: 0 -> 1 -> 0, 1 -> 2 -> 2, 2 -> 0 -> 1. That is [0,2,1], the ID 1. The other way round, first 2 and then 3, it
is 5.

>>> from statetrack.tasks.groups import group
>>> s3 = group("s3")
>>> s3.then(3, 2), s3.then(2, 3), s3.product([3, 2, 1]), s3.prefix_products([3, 2, 1]).tolist()
(1, 5, 0, [3, 1, 0])
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from statetrack.errors import BadInput
from statetrack.tasks.groups import algebra, compose, ranks
from statetrack.tasks.groups.chain import Chain
from statetrack.tasks.groups.permutations import Images, checked, cycle_text
from statetrack.tasks.scan import scan

MAX_ELEMENTS = 5_000_000
"""Larger groups have an order and a derived series, but their elements are not written out."""
MAX_TABLE = 1024
"""Groups up to this order multiply through a table of order * order IDs."""

Ids = NDArray[np.int32]


class Group:
    """The group that some permutations generate. Beyond its order, nothing is computed before it is asked for.

    >>> Group.from_generators([[1, 2, 0], [1, 0, 2]])
    Group('<(0 1 2),(0 1)>', order=6, degree=3)
    """

    def __init__(self, generators: Images, name: str) -> None:
        self.name = name
        self.generators = _frozen(generators)
        self.chain = Chain(generators.shape[1], generators)
        self.order = self.chain.order
        self.degree = self.chain.degree
        self.base = self.chain.base

    @classmethod
    def from_generators(cls, generators: Iterable[ArrayLike], name: str | None = None) -> Group:
        """The group of the given image arrays; without a name it is called by its generators."""
        images = checked(generators)
        return cls(images, _written(images) if name is None else name)

    @classmethod
    def commutators(cls, first: Group, second: Group) -> Group:
        """The subgroup [A, B] that all a^-1 ∘ b^-1 ∘ a ∘ b generate, where A or B is a normal subgroup of the other."""
        return cls.from_generators(algebra.commutator_subgroup(first.generators, second.generators))

    def __repr__(self) -> str:
        return f"Group({self.name!r}, order={self.order}, degree={self.degree})"

    # ---- elements and their IDs --------------------------------------------------------------------------------------

    @cached_property
    def elements(self) -> Images:
        """All image arrays in lexicographic order: row i is the element with the ID i."""
        self.check_ids()
        return _frozen(self.chain.elements())

    def check_ids(self) -> None:
        """Refuse a group with more elements than are given IDs."""
        if self.order > MAX_ELEMENTS:
            raise BadInput(f"{self.name} has {self.order} elements; IDs are given in groups of up to {MAX_ELEMENTS}")

    def id_of(self, images: ArrayLike) -> Any:
        """The ID of an image array; of several, one per row, an array of IDs."""
        rows = np.asarray(images)
        if rows.dtype.kind not in "iu" or rows.ndim not in (1, 2) or rows.shape[-1] != self.degree:
            raise BadInput(f"an element of {self.name} is given by {self.degree} whole numbers, its images")
        wanted = np.atleast_2d(rows)
        # sorted image arrays are sorted strings of bytes, in which an ordinary binary search finds a row
        whole = np.dtype((np.void, self.degree))
        keys = np.ascontiguousarray(wanted, dtype=np.uint8).view(whole).reshape(-1)
        ids = np.searchsorted(self.elements.view(whole).reshape(-1), keys)
        ids = np.minimum(ids, self.order - 1)
        is_element = (self.elements[ids] == wanted).all(axis=1)
        if not is_element.all():
            raise BadInput(f"{wanted[is_element.argmin()].tolist()} is not an element of {self.name}")
        return _plain(ids.astype(np.int32).reshape(rows.shape[:-1]))

    def rank(self, base_images: Images) -> Ids:
        """The IDs of elements that take the base's i-th point to base_images[i], an array of any shape."""
        return self._ranks.ids(base_images)

    @cached_property
    def _ranks(self) -> ranks.Ranks:
        orbits = [len(self.chain.levels[point].orbit) for point in self.base]
        return ranks.build(self.elements[:, self.base], orbits)

    # ---- products ----------------------------------------------------------------------------------------------------

    def then(self, first: ArrayLike, second: ArrayLike) -> Any:
        """The ID of `first`, then `second`: second ∘ first. Arrays of IDs are broadcast against each other."""
        a, b = np.broadcast_arrays(self._checked(first), self._checked(second))
        images = [self.elements[b, self.elements[a, point]] for point in self.base]
        return _plain(self.rank(np.array(images, dtype=np.uint8).reshape(len(self.base), *a.shape)))

    def inverse(self, ids: ArrayLike) -> Any:
        """The ID of the inverse, of one element or of each of several."""
        given = self._checked(ids)
        images = self.elements[given.reshape(-1)]
        # the inverse takes a base point to where the element takes to that base point
        origins = np.array([np.nonzero(images == point)[1] for point in self.base], dtype=np.uint8)
        return _plain(self.rank(origins.reshape(len(self.base), *given.shape)))

    def product(self, ids: ArrayLike) -> int:
        """The ID of p_n ∘ ... ∘ p_1 for a sequence of IDs; 0 for none."""
        if np.ndim(ids) != 1:
            raise BadInput(f"a product is of one sequence of IDs, not of an array of shape {np.shape(ids)}")
        prefixes = self.prefix_products(ids)
        return int(prefixes[-1]) if len(prefixes) else 0

    def prefix_products(self, ids: ArrayLike, start: ArrayLike = 0) -> Ids:
        """The ID of p_t ∘ ... ∘ p_1 for every t, of one row (length,) or of many (count, length).

        `start` is the product of what came before, one ID or one per row: so a stream can be taken piece by piece.
        """
        given = self._checked(ids)
        if given.ndim not in (1, 2):
            raise BadInput(f"IDs should have the shape (length,) or (count, length), not {given.shape}")
        rows = np.atleast_2d(given)
        begin = self._checked(start, "start")
        if begin.shape not in ((), (len(rows),)):
            raise BadInput(f"start should be one ID or {len(rows)}, one per row, not of shape {begin.shape}")
        begin = np.broadcast_to(begin, len(rows))
        if self.order <= MAX_TABLE:
            products = scan(self.cayley, rows, begin)
        else:
            products = compose.prefixes(self._padded, self._ranks, rows, self.elements[begin][:, self.base])
        return products.reshape(given.shape)

    @cached_property
    def cayley(self) -> NDArray[np.uint16]:
        """The table with then(a, b) in row a and column b, for groups of up to MAX_TABLE elements."""
        if self.order > MAX_TABLE:
            raise BadInput(f"{self.name} has {self.order} elements; a table is made for groups of up to {MAX_TABLE}")
        everything = np.arange(self.order)
        return _frozen(self.then(everything[:, None], everything).astype(np.uint16))

    @cached_property
    def _padded(self) -> Images:
        return compose.padded(self.elements)

    def _checked(self, ids: ArrayLike, what: str = "ID") -> NDArray[Any]:
        """IDs as an array of integers, or which of them is not of this group and where it stands."""
        given = np.asarray(ids)
        if given.size == 0:
            return given.astype(np.int32)
        if given.dtype.kind not in "iu":
            raise BadInput(f"{what} of {self.name} should be a whole number, not {given.dtype}")
        if given.min() < 0 or given.max() >= self.order:
            place = np.unravel_index(np.argmax((given < 0) | (given >= self.order)), given.shape)
            raise BadInput(f"{what} {given[place]}{_at(place)} is outside 0..{self.order - 1} of {self.name}")
        return given

    # ---- algebra -----------------------------------------------------------------------------------------------------

    @property
    def is_transitive(self) -> bool:
        """Whether some element takes 0 to any other point."""
        return len(self.chain.levels[0].orbit) == self.degree

    @cached_property
    def is_abelian(self) -> bool:
        return algebra.commute(self.generators)

    @cached_property
    def derived_series(self) -> list[Group]:
        """G, its commutator subgroup G', that one's, and so on, down to the trivial group or to one with H' = H."""
        return algebra.descend(self, lambda h: Group.commutators(h, h))

    @property
    def is_solvable(self) -> bool:
        return self.derived_series[-1].order == 1

    @property
    def derived_length(self) -> int | None:
        """Steps from the group down to the trivial one; None for a group that is not solvable."""
        return len(self.derived_series) - 1 if self.is_solvable else None

    @cached_property
    def is_nilpotent(self) -> bool:
        """Whether G, [G, G], [G, [G, G]], ... comes down to the trivial group."""
        return algebra.descend(self, lambda h: Group.commutators(self, h))[-1].order == 1

    @cached_property
    def conjugacy_classes(self) -> Ids:
        """The number of every element's class; classes are counted by their least ID, so the identity's is 0."""
        return _frozen(algebra.conjugacy_classes(self))

    @cached_property
    def centre(self) -> NDArray[np.intp]:
        """The IDs of the elements that commute with all: those that are alone in their class."""
        return _frozen(np.flatnonzero(np.bincount(self.conjugacy_classes)[self.conjugacy_classes] == 1))

    @cached_property
    def element_orders(self) -> Ids:
        """How often every element must be repeated to give the identity."""
        return _frozen(algebra.element_orders(self))

    @property
    def exponent(self) -> int:
        """The least n with p^n = 1 for every element p."""
        return lcm(*np.unique(self.element_orders).tolist())

    @cached_property
    def abelianisation(self) -> algebra.Abelianisation:
        """The cosets of G', which multiply like an abelian group."""
        derived = self.derived_series[:2][-1]
        return algebra.Abelianisation(self, _frozen(algebra.cosets(self, derived.generators)))


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array = array.view()
    array.flags.writeable = False
    return array


def _plain(ids: Ids) -> Any:
    """One ID as a number, several as the array they are."""
    return ids if ids.ndim else int(ids)


def _at(place: tuple[Any, ...]) -> str:
    """Where something stands in one row or in many."""
    if len(place) == 2:
        return f" at row {place[0]}, position {place[1]}"
    return f" at position {', '.join(map(str, place))}" if place else ""


def _written(generators: Images) -> str:
    """Generators as a name of the same group: in cycles, or as image lists where cycles would lose the last point."""
    if (generators[:, -1] == generators.shape[1] - 1).all():
        return f"<{','.join(str(images.tolist()).replace(' ', '') for images in generators)}>"
    return f"<{','.join(map(cycle_text, generators))}>"
