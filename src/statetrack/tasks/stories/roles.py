"""Jobs that go from person to person: S_n as FactWorld asks it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations

from statetrack.errors import BadInput
from statetrack.tasks.stories.people import PEOPLE, PeopleTask, Round, listed

SWAPS = 0.7  # the share of swaps among all events, as FactWorld draws them
MOST = 6  # people, where every swap and every round is an input


@dataclass(frozen=True, kw_only=True)
class Roles(PeopleTask):
    """Who has which job? Two people swap their jobs, or jobs go round; person i starts with job i.

    The state is a permutation of n jobs, so that it is a word problem of S_n, in two forms that FactWorld has:

    - events=generators: n inputs, the swaps of neighbours 01, 12, 23, ... and the round of all, 0 to 1 to 2 ... to 0.
      With items=all, where the answer is the number of the list of the people who have job 0, 1, 2, ..., it is the
      dense S5 that networks are trained on: the ID of the product of these permutations in S_n.
    - events=all: every swap, and every round of 3 to n people; seven inputs in ten are swaps, and the others are rounds
      of each length equally often. It is what language models are asked, about the job of one person (items=one,
      `query`).

    With the default, n = 5 and the generators, the input 0 swaps the jobs of persons 0 and 1, 1 those of 1 and 2, and 4
    sends all jobs round. The answer is the job of person 0:

        inputs   0 1 4 4
        answers  1 1 4 3
    """

    events: str = "generators"

    base_name = "roles"
    title = "factworld s5"
    fewest = 3
    kind = "job"
    things = ("cook", "pilot", "nurse", "clerk", "judge", "baker", "tutor", "miner")
    having = "is the"

    def check(self) -> None:
        if self.events not in ("generators", "all"):
            raise BadInput(f"roles: events={self.events} should be 'generators' or 'all'")
        super().check()

    @property
    def most(self) -> int:
        return MOST if self.events == "all" else super().most

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        people = range(self.n)
        if self.events == "generators":
            return (*((person, person + 1) for person in people[:-1]), tuple(people))
        longer = (chosen for length in range(3, self.n + 1) for chosen in combinations(people, length))
        return (
            *combinations(people, 2),
            *((first, *others) for first, *rest in longer for others in permutations(rest)),
        )

    @property
    def symbol_weights(self) -> tuple[float, ...] | None:
        """With events=all a swap comes as often as FactWorld draws it, and a round by its length."""
        if self.weights or self.events == "generators":
            return super().symbol_weights
        return tuple(self._share(len(round)) for round in self.rounds)

    def _share(self, length: int) -> float:
        """The share of one round of so many people, of which there are C(n, length) (length - 1)!."""
        of_this_length = SWAPS if length == 2 else (1 - SWAPS) / (self.n - 2)
        return of_this_length / (math.comb(self.n, length) * math.factorial(length - 1))

    def symbol_text(self, symbol: int) -> str:
        names = [PEOPLE[person] for person in self.rounds[symbol]]
        if len(names) == 2:
            return f"{names[0]} and {names[1]} swap jobs"
        return f"jobs go round from {' to '.join([*names, names[0]])}"

    @property
    def instruction(self) -> str:
        return (
            f"There are {self.n} people: {listed(PEOPLE[: self.n])}. Each has one job. At the start"
            f" {self.told(self.start())}. Each input is an event: two people swap their jobs, or jobs go round: the job"
            f" of each person named goes to the one named next. {self.question}"
        )
