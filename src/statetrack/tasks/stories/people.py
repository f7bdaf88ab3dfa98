"""What stories of people share: each has one thing, and an input says how things go from person to person."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import ClassVar

import numpy as np

from statetrack.errors import BadInput
from statetrack.tasks.facts import TaskFacts
from statetrack.tasks.finite import Automaton, FiniteTask, WeightedTask
from statetrack.tasks.stories.arrangements import Arrangement, arrangement, ranks

PEOPLE = ("Ann", "Ben", "Cleo", "Dora", "Emil", "Fay", "Gus", "Hana")
Round = tuple[int, ...]  # of people: what the first has goes to the second, ..., what the last has to the first


@dataclass(frozen=True, kw_only=True)
class PeopleTask(FiniteTask, WeightedTask):
    """Each of n people has one thing, person i thing i at the start. An input moves things along a round of people.

    The state is who has what: for each thing the person who has it. The answer is what the person `query` has
    (items=one), or the number of the whole state in lexicographic order (items=all).
    """

    n: int = 5
    items: str = "one"
    query: int = 0

    unseen = ("ask", "items", "query")
    fewest: ClassVar[int] = 2
    kind: ClassVar[str]  # what a thing is called: an object
    things: ClassVar[tuple[str, ...]]
    having: ClassVar[str]  # what stands between a person and a thing: "holds the"

    def check(self) -> None:
        if self.items not in ("one", "all"):
            raise BadInput(f"{self.label}: items={self.items} should be 'one' or 'all'")
        self.check_range("n", self.fewest, self.most)
        self.check_range("query", 0, self.n - 1)
        super().check()

    @property
    def most(self) -> int:
        """How many people there may be."""
        return len(PEOPLE)

    @property
    @abstractmethod
    def rounds(self) -> tuple[Round, ...]:
        """What can happen, a round for each input; one of two people is a swap."""

    @property
    def inputs(self) -> int:
        return len(self.rounds)

    @property
    def outputs(self) -> int:
        return self.n if self.items == "one" else math.factorial(self.n)

    @cached_property
    def moves(self) -> tuple[Arrangement, ...]:
        """For each input, the person to whom it gives what each person has."""
        given = [dict(zip(round, (*round[1:], round[0]))) for round in self.rounds]
        return tuple(tuple(each.get(person, person) for person in range(self.n)) for each in given)

    def start(self) -> Arrangement:
        return tuple(range(self.n))

    def step(self, state: Arrangement, symbol: int) -> Arrangement:
        move = self.moves[symbol]
        return tuple(move[person] for person in state)

    def answer(self, state: Arrangement) -> int:
        return state.index(self.query) if self.items == "one" else int(ranks(np.array([state]))[0])

    @cached_property
    def automaton(self) -> Automaton:
        """The states are all arrangements in lexicographic order."""
        states = np.array(list(permutations(range(self.n))))
        steps = np.column_stack([ranks(np.array(move)[states]) for move in self.moves])
        answers = np.argmax(states == self.query, axis=1) if self.items == "one" else np.arange(len(states))
        return Automaton(steps.astype(np.int32), answers.astype(np.int32))

    @cached_property
    def facts(self) -> TaskFacts:
        """The inputs together generate S_n, and every arrangement can come to matter for any one person."""
        return TaskFacts(states=math.factorial(self.n), moves=np.array(self.moves))

    # ---- words -------------------------------------------------------------------------------------------------------

    def answer_text(self, answer: int) -> str:
        if self.items == "one":
            return self.things[answer]
        return " ".join(PEOPLE[person] for person in arrangement(answer, self.n))

    def state_text(self, seen: Sequence[int]) -> str:
        return self.told(self.state_after(seen))

    def told(self, state: Arrangement) -> str:
        """Who has what, person by person."""
        things = [self.things[state.index(person)] for person in range(self.n)]
        return ", ".join(f"{name} {self.having} {thing}" for name, thing in zip(PEOPLE, things))

    @property
    def question(self) -> str:
        """What the answer is."""
        if self.items == "one":
            return f"Answer with the {self.kind} that {PEOPLE[self.query]} has now, in one word."
        return (
            f"Answer with the people who have the {self.kind}s {listed(self.things[: self.n])} now: their names in this"
            " order, separated by single spaces."
        )


def listed(names: Sequence[str]) -> str:
    """
    >>> listed(("Ann", "Ben", "Cleo"))
    'Ann, Ben and Cleo'
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
