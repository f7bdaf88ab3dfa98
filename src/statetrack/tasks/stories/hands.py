"""Objects that people swap: who holds what?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from statetrack.tasks.stories.people import PEOPLE, PeopleTask, Round, listed


@dataclass(frozen=True, kw_only=True)
class Hands(PeopleTask):
    """Which object is in a person's hands? At every input two people swap what they hold.

    The inputs are the pairs of people 01, 02, ..., 12, ...; person i starts with object i. With n = 5 the input 0 swaps
    what persons 0 and 1 hold, 4 what 1 and 2 hold, and 1 what 0 and 2 hold. The answer is the object of person 0
    (`query`):

        inputs   0 4 1 0
        answers  1 1 0 2

    Two people who have swapped may swap again with others, so the objects of all people have to be remembered. With
    items=all the answer is the number of the whole arrangement, the list of the people who hold object 0, 1, 2, ..., in
    lexicographic order.
    """

    base_name = "hands"
    title = "tracking shuffled objects"
    kind = "object"
    things = ("ball", "coin", "drum", "fork", "key", "lamp", "map", "rope")
    having = "holds the"

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        return tuple(combinations(range(self.n), 2))

    def symbol_text(self, symbol: int) -> str:
        a, b = self.rounds[symbol]
        return f"{PEOPLE[a]} and {PEOPLE[b]} swap"

    @property
    def instruction(self) -> str:
        return (
            f"There are {self.n} people: {listed(PEOPLE[: self.n])}. Each holds one object. At the start"
            f" {self.told(self.start())}. Each input names two people, who swap what they hold. {self.question}"
        )
