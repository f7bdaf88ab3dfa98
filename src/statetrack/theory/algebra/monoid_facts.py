"""From a transition table, or from a group, to what is known of its monoid and its circuit class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.formatting import plural
from statetrack.tasks.groups import Group
from statetrack.tasks.groups.permutations import MAX_DEGREE
from statetrack.theory.algebra import circuits, green
from statetrack.theory.algebra.circuits import Circuit
from statetrack.theory.algebra.monoid import LIMIT, Monoid, generate, is_permutation, letter_maps
from statetrack.theory.algebra.structure import Structure, from_permutations, structure


@dataclass(frozen=True)
class MonoidFacts:
    """What is known of a transition monoid. None stands for what is not known.

    `groups` are the groups in it that are not trivial, without repetition, up to isomorphism. Where `complete` is
    False the monoid was not written out beyond the elements `seen`, and `certain` says what holds all the same.
    """

    size: int | None
    complete: bool
    is_group: bool
    aperiodic: bool | None
    quasi_aperiodic: bool | None
    solvable: bool | None
    groups: tuple[Structure, ...]
    certain: tuple[str, ...] = ()
    seen: int | None = None

    def text(self) -> str:
        if not self.complete:
            stopped = "not written out" if self.seen is None else f"stopped after {self.seen} elements"
            return "; ".join((stopped, *(f"certain: {fact}" for fact in self.certain)))
        kind = {True: "aperiodic", False: "not aperiodic", None: "aperiodicity not known"}[self.aperiodic]
        parts = [f"{self.size} elements, {kind}"]
        if self.groups:
            parts.append("groups: " + ", ".join(group.name for group in self.groups))
        if self.quasi_aperiodic and not self.aperiodic:
            parts.append("quasi-aperiodic")
        return "; ".join((*parts, *self.certain))


def of_group(algebra: Structure, single: bool) -> tuple[MonoidFacts, Circuit]:
    """The monoid of a permutation group is the group.

    Words of one length t make a coset of the normal closure of all a^-1 b, for letters a and b: it is trivial when
    there is a `single` letter.
    """
    trivial = algebra.order == 1
    groups = () if trivial else (algebra,)
    facts = MonoidFacts(algebra.order, True, True, trivial, trivial or single, algebra.solvable, groups)
    return facts, _circuit(facts)


def of_automaton(steps: NDArray[Any], limit: int = LIMIT) -> tuple[MonoidFacts, Circuit]:
    """The monoid of the minimal automaton with this table."""
    letters = letter_maps(steps)
    if len(steps) <= MAX_DEGREE and is_permutation(letters).all():
        return of_group(structure(Group.from_generators(letters)), len(letters) == 1)
    monoid = generate(steps, limit)
    facts = _written_out(monoid) if monoid.complete else _stopped(monoid, steps)
    return facts, _circuit(facts)


def _written_out(monoid: Monoid) -> MonoidFacts:
    subgroups = green.subgroups(monoid)
    described = [from_permutations(group.permutations) for group in subgroups]
    by_name = {group.name: group for group in described if group is not None}
    unknown = [group.order for group, facts in zip(subgroups, described) if facts is None]
    certain = tuple(f"a group of order {order} was not looked into" for order in unknown)
    solvable = False if any(not group.solvable for group in by_name.values()) else None if unknown else True
    is_group = bool(is_permutation(monoid.letters).all())
    groups = tuple(sorted(by_name.values(), key=lambda group: -group.order))
    return MonoidFacts(
        len(monoid), True, is_group, not subgroups, green.quasi_aperiodic(subgroups), solvable, groups, certain
    )


def _stopped(monoid: Monoid, steps: NDArray[Any]) -> MonoidFacts:
    """What is certain of a monoid that is too large to be written out."""

    def facts(certain: str, **known: Any) -> MonoidFacts:
        given = {"aperiodic": None, "quasi_aperiodic": None, "solvable": None, "groups": ()} | known
        is_group = bool(is_permutation(monoid.letters).all())
        return MonoidFacts(None, False, is_group, **given, certain=(certain,), seen=len(monoid))

    no_group = {"aperiodic": True, "quasi_aperiodic": True, "solvable": True}
    if (delay := definite_after(steps)) is not None:
        return facts(f"the state depends on the last {plural(delay, 'input')} alone, so it is aperiodic", **no_group)
    if keeps_an_order(steps):
        says = "every letter keeps the order of the states that it does not send to a trap: it is aperiodic"
        return facts(says, **no_group)
    if commuting(monoid.letters):
        return _commutative(monoid, facts)
    group = _largest_seen(monoid)
    if group is None:
        return facts("no group is among the elements seen")
    if group.solvable:
        return facts(f"it holds {group.name}", aperiodic=False, groups=(group,))
    says = f"it holds {group.name}, which is not solvable"
    return facts(says, aperiodic=False, quasi_aperiodic=False, solvable=False, groups=(group,))


def keeps_an_order(steps: NDArray[Any]) -> bool:
    """Whether every letter keeps the order of the states as they are numbered, but for those it sends to a trap.

    A map that keeps an order and permutes some states keeps each of them where it is, so no such monoid holds a
    group.
    """
    traps = np.flatnonzero((steps == np.arange(len(steps))[:, None]).all(axis=1))
    for trap in [-1, *traps.tolist()]:
        if all(_ascending(column[(column != trap) & (np.arange(len(steps)) != trap)]) for column in steps.T):
            return True
    return False


def _ascending(numbers: NDArray[Any]) -> bool:
    return bool((np.diff(numbers) >= 0).all())


def commuting(letters: NDArray[Any], most: int = 64) -> bool:
    """Whether the order of two letters never matters; not looked into for very many letters."""
    return len(letters) <= most and all(np.array_equal(a[b], b[a]) for a in letters for b in letters)


def _commutative(monoid: Monoid, facts: Callable[..., MonoidFacts]) -> MonoidFacts:
    """(ab)^n = a^n b^n: a word cycles only if one of its letters does, and the groups are abelian."""
    cycles = periods(monoid.letters)
    if cycles == (1,):
        says = "letters commute and none cycles: it is aperiodic"
        return facts(says, aperiodic=True, quasi_aperiodic=True, solvable=True)
    neutral = (monoid.letters == np.arange(monoid.letters.shape[1])).all(axis=1).any()
    says = f"letters commute, so its groups are abelian; letters cycle with the periods {', '.join(map(str, cycles))}"
    return facts(says, aperiodic=False, quasi_aperiodic=False if neutral else None, solvable=True)


def _largest_seen(monoid: Monoid) -> Structure | None:
    """The largest group that permuting letters, or elements seen, generate; one that is not solvable comes first."""
    groups = [structure(Group.from_generators(rows)) for rows in green.partial_subgroups(monoid)]
    units = _permutation_letters(monoid)
    groups += [units] if units is not None and units.order > 1 else []
    return max(groups, key=lambda group: (not group.solvable, group.order), default=None)


def _permutation_letters(monoid: Monoid) -> Structure | None:
    """The group that the letters make that permute states, on those of its orbits that are small: an image of it."""
    letters = monoid.letters[is_permutation(monoid.letters)]
    chosen: list[int] = []
    for point in range(letters.shape[1] if len(letters) > 1 else 0):
        if point in chosen:
            continue
        chosen += _orbit(letters, point, MAX_DEGREE - len(chosen))
        if len(chosen) == MAX_DEGREE:
            break
    points = np.array(sorted(chosen), np.int64)
    if not len(points):
        return None
    return structure(Group.from_generators(np.searchsorted(points, letters[:, points])))


def _orbit(letters: NDArray[Any], point: int, most: int) -> list[int]:
    """Where the letters take a point; nothing when that is more than `most` points."""
    orbit = [point]
    for here in orbit:  # grows while it is read
        for there in letters[:, here].tolist():
            if there not in orbit:
                orbit.append(there)
        if len(orbit) > most:
            return []
    return orbit


def definite_after(steps: NDArray[Any]) -> int | None:
    """The least n such that any n inputs decide the state, whatever it was before; None when there is none.

    States are merged that every input takes to the same state, or to merged ones, until nothing changes.
    """
    blocks = np.arange(len(steps))
    for delay in range(len(steps)):
        if blocks.max(initial=0) == 0:
            return delay
        merged = np.unique(blocks[steps], axis=0, return_inverse=True)[1].ravel()
        if merged.max() == blocks.max():
            return None
        blocks = merged
    return None


def periods(letters: NDArray[Any]) -> tuple[int, ...]:
    """The lengths of the cycles that one letter, repeated, makes with the states: all that occur, in ascending order.

    For permutations it is their orders: the state of a group task is the whole permutation.
    """
    letters = np.unique(letters, axis=0)
    if is_permutation(letters).all():
        return tuple(sorted(_orders(letters)))
    return tuple(sorted(set().union(*map(_cycle_lengths, letters))))


def _orders(permutations: NDArray[Any]) -> set[int]:
    """The orders of permutations, all powered together until each has come back."""
    identity = np.arange(permutations.shape[1])
    orders, power, n = set(), permutations, 1
    while len(power):
        back = (power == identity).all(axis=1)
        if back.any():
            orders.add(n)
        permutations = permutations[~back]
        power = np.take_along_axis(permutations, power[~back].astype(np.intp), axis=1)
        n += 1
    return orders


def _cycle_lengths(letter: NDArray[Any]) -> set[int]:
    lengths, seen = set(), np.zeros(len(letter), np.int64)
    for start in range(len(letter)):
        point = start
        step: dict[int, int] = {}
        while not seen[point]:
            seen[point], step[point] = 1, len(step)
            point = int(letter[point])
        if point in step:
            lengths.add(len(step) - step[point])
    return lengths


def _circuit(facts: MonoidFacts) -> Circuit:
    if facts.aperiodic:
        return circuits.STAR_FREE
    if facts.quasi_aperiodic:
        return circuits.QUASI_APERIODIC
    if facts.solvable and facts.quasi_aperiodic is None and facts.aperiodic is False:
        return circuits.SOLVABLE_AT_MOST
    if facts.solvable is None or facts.quasi_aperiodic is None:
        return circuits.unknown("the monoid is too large to be written out, and what is certain does not decide it")
    return circuits.SOLVABLE if facts.solvable else circuits.NOT_SOLVABLE
