"""What the predictions ask about a task."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.tasks.base import Task
from statetrack.tasks.facts import TaskFacts
from statetrack.tasks.finite import FiniteTask
from statetrack.tasks.groups import Group
from statetrack.tasks.groups.permutations import MAX_DEGREE
from statetrack.theory.algebra.answered import Conflicts, conflicts, is_partial
from statetrack.theory.algebra.monoid import is_permutation, letter_maps
from statetrack.theory.algebra.monoid_facts import definite_after
from statetrack.theory.algebra.passport import Passport, passport
from statetrack.theory.algebra.reflections import Reflections, least_reflections, orbits, swaps_needed
from statetrack.theory.algebra.simple_groups import prime_factors
from statetrack.theory.floors.markov import process

MOST_PAIRED = 1000  # states whose pairs are looked at


@dataclass(frozen=True)
class Features:
    """A task with its passport and what follows from it."""

    task: Task

    @cached_property
    def passport(self) -> Passport:
        return passport(self.task)

    @cached_property
    def facts(self) -> TaskFacts:
        return self.task.facts or TaskFacts()

    @property
    def balance(self) -> bool:
        """A running majority."""
        return self.facts.ups is not None

    @property
    def threshold(self) -> bool:
        """The answer is a threshold of a sum over the inputs: RTC, FSM."""
        return self.facts.threshold

    @property
    def rare(self) -> bool:
        """Whether some inputs of the alphabet never come in its data."""
        weights = self.task.symbol_weights
        return weights is not None and 0 in weights

    @property
    def regular(self) -> bool:
        return self.passport.monoid is not None

    @property
    def aperiodic(self) -> bool | None:
        return self.passport.monoid.aperiodic if self.passport.monoid is not None else None

    @property
    def quasi_aperiodic(self) -> bool | None:
        return self.passport.monoid.quasi_aperiodic if self.passport.monoid is not None else None

    @property
    def longest_period(self) -> int:
        """The longest cycle that one repeated input makes."""
        return max(self.passport.periods, default=1)

    @property
    def group_names(self) -> str:
        """The groups that the task holds, in words."""
        return ", ".join(group.name for group in self.passport.monoid.groups) if self.passport.monoid else ""

    @cached_property
    def group_primes(self) -> set[int]:
        """The primes that divide the orders of the groups it holds."""
        groups = self.passport.monoid.groups if self.passport.monoid else ()
        return {p for group in groups for p in prime_factors(group.order)}

    @cached_property
    def twos(self) -> int:
        """How many factors C2 the largest of its groups has."""
        groups = self.passport.monoid.groups if self.passport.monoid else ()
        return max((group.factors.count("C2") for group in groups), default=0)

    @cached_property
    def reach(self) -> int | None:
        """How many last inputs decide the answer; None when no number does."""
        if self.facts.reach is not None:
            return self.facts.reach
        if self.partial:
            return self.conflicts.reach if self.conflicts is not None else None
        if isinstance(self.task, FiniteTask) and self.aperiodic:
            return definite_after(self.task.automaton.minimised().steps)
        return None

    @cached_property
    def unbounded(self) -> bool | None:
        """Whether an endless word keeps some two states apart, so that old inputs matter for ever; None if unknown.

        Where no number of last inputs decides the answer, longer and longer words keep two states apart, and as pairs
        of states are finitely many, an endless one does.
        """
        if self.partial:
            return self.conflicts.lasting if self.conflicts is not None else None
        if self.regular and self.aperiodic is None:
            return None
        return self.reach is None

    @cached_property
    def partial(self) -> bool:
        """Whether some states are not asked about, or some inputs never come in some states."""
        return isinstance(self.task, FiniteTask) and is_partial(self.task.automaton, self.task.law())

    @cached_property
    def conflicts(self) -> Conflicts | None:
        """Which states have to be told apart, for a task that is partial; None where they are too many."""
        return conflicts(self.task.automaton, self.task.law()) if isinstance(self.task, FiniteTask) else None

    @property
    def certain(self) -> bool:
        """Whether what the smallest automaton tells apart for ever has to be told apart."""
        return not self.partial or (self.conflicts is not None and self.conflicts.certain)

    @property
    def flips(self) -> bool:
        """Two states that every input keeps or swaps: parity."""
        return self.passport.states == 2 and self.passport.group is not None

    @property
    def elementary_two(self) -> bool:
        """A group in which every element undoes itself: signs that inputs flip."""
        group = self.passport.group
        return group is not None and group.abelian and max(self.passport.periods, default=1) == 2

    @property
    def representation(self) -> str:
        """In words: the representation by which the least reflections were counted."""
        least = self.reflections
        assert least is not None
        heads = f", each of its parts in one of {least.heads} heads" if least.heads > 1 else ""
        moved = f"a faithful real representation in which every input moves at most {least.each} dimensions"
        return f"{moved}{heads}"

    @cached_property
    def one_class_each(self) -> bool:
        """Whether every state has a class of its own, and is one element of the group that the inputs generate."""
        if self.acting is None or self.acting[0].order != self.passport.states:
            return False
        if not isinstance(self.task, FiniteTask):
            return True
        answers = self.task.automaton.minimised().answers
        return len(np.unique(answers)) == len(answers)

    @property
    def orbits(self) -> int:
        """How many sets of points the inputs move among themselves; 0 where they permute none."""
        return len(orbits(self.acting[0])) if self.acting is not None else 0

    @property
    def points(self) -> int:
        """How many points the inputs permute; 0 where they do not."""
        return self.acting[0].degree if self.acting is not None else 0

    @cached_property
    def flip_flop(self) -> bool:
        """Every input keeps the state or sets it: a memory that is written and held."""
        if not isinstance(self.task, FiniteTask) or not self.aperiodic or self.passport.states is None:
            return False
        letters = letter_maps(self.task.automaton.minimised().steps)
        kept = (letters == np.arange(letters.shape[1])).all(axis=1)
        return bool((kept | (letters == letters[:, :1]).all(axis=1)).all())

    @cached_property
    def forgets(self) -> bool:
        """Whether random inputs soon wipe out the past, so that rows never ask how long a state is held."""
        if not isinstance(self.task, FiniteTask) or self.acting is not None:
            return False
        law = process(self.task)
        return law is not None and law.states <= MOST_PAIRED and law.forgets()

    @cached_property
    def acting(self) -> tuple[Group, NDArray[Any]] | None:
        """The group that the inputs generate by permuting, and their IDs; None where they do not, or of many points."""
        from statetrack.tasks.groups.task import GroupTask

        if isinstance(self.task, GroupTask):
            return self.task.group_object, np.unique(self.task.letters)
        if not isinstance(self.task, FiniteTask):
            return None
        moves = self.facts.moves
        letters = letter_maps(self.task.automaton.minimised().steps) if moves is None else moves
        if letters.shape[1] > MAX_DEGREE or not is_permutation(letters).all():
            return None
        group = Group.from_generators(letters)
        return group, np.asarray(group.id_of(letters)) if group.order <= 10**6 else np.zeros(0, np.int64)

    @cached_property
    def reflections(self) -> Reflections | None:
        """The least number of reflections a token, for a task that is a group."""
        if self.acting is None or not len(self.acting[1]):
            return None
        group, letters = self.acting
        return least_reflections(group, None if len(letters) == group.order else letters)

    @cached_property
    def swaps(self) -> int | None:
        """The most swaps of points that one input is made of, for a task that is a group."""
        if self.acting is None or not len(self.acting[1]):
            return None
        group, letters = self.acting
        return swaps_needed(group, None if len(letters) == group.order else letters)
