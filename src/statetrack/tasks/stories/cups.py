"""Cups that are swapped: where is the ball?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

from statetrack.errors import BadInput
from statetrack.tasks.facts import TaskFacts
from statetrack.tasks.finite import Automaton, FiniteTask, WeightedTask
from statetrack.tasks.stories.arrangements import Arrangement, arrangement, ranks


@dataclass(frozen=True, kw_only=True)
class Cups(FiniteTask, WeightedTask):
    """What lies under n cups, swapped two at a time: the group S_n, told as the shell game.

    The inputs are the pairs of cups 01, 02, ..., 12, .... With items=one the answer is the cup with the ball, which
    starts under cup 0. With n = 5 the input 1 swaps cups 0 and 2, 4 swaps 1 and 2, and 0 swaps 0 and 1:

        inputs   1 4 0 0
        answers  2 1 0 1

    With items=all every cup hides an item of its own, and the answer is the number of the whole arrangement, the list
    of the cups of items 0, 1, 2, ..., in lexicographic order: the ID of the product of the swaps in S_n.
    """

    n: int = 5
    items: str = "one"

    base_name = "cups"
    title = "shell game"

    def check(self) -> None:
        if self.items not in ("one", "all"):
            raise BadInput(f"cups: items={self.items} should be 'one' or 'all'")
        self.check_range("n", 2, 8 if self.items == "all" else 100)
        super().check()

    @cached_property
    def swaps(self) -> tuple[tuple[int, int], ...]:
        """The two cups that every input swaps."""
        return tuple(combinations(range(self.n), 2))

    @property
    def inputs(self) -> int:
        return len(self.swaps)

    @property
    def outputs(self) -> int:
        return self.n if self.items == "one" else math.factorial(self.n)

    def start(self) -> Arrangement:
        return (0,) if self.items == "one" else tuple(range(self.n))

    def step(self, state: Arrangement, symbol: int) -> Arrangement:
        a, b = self.swaps[symbol]
        return tuple({a: b, b: a}.get(cup, cup) for cup in state)

    def answer(self, state: Arrangement) -> int:
        return state[0] if self.items == "one" else int(ranks(np.array([state]))[0])

    @cached_property
    def automaton(self) -> Automaton:
        """With all items the states are all arrangements in order, so that a state's number is its answer."""
        if self.items == "one":
            return super().automaton
        arrangements = np.array(list(permutations(range(self.n))))
        swapped = [_transposition(self.n, *pair)[arrangements] for pair in self.swaps]
        steps = np.column_stack([ranks(after) for after in swapped])
        return Automaton(steps.astype(np.int32), np.arange(len(arrangements), dtype=np.int32))

    def symbol_text(self, symbol: int) -> str:
        return "swap cups {} and {}".format(*self.swaps[symbol])

    def answer_text(self, answer: int) -> str:
        if self.items == "one":
            return f"cup {answer}"
        return " ".join(map(str, arrangement(answer, self.n)))

    @property
    def instruction(self) -> str:
        about = f"There are {self.n} cups in a row, numbered from 0. Each input swaps what lies under two cups."
        if self.items == "one":
            return f"{about} A ball starts under cup 0. Answer with the cup that the ball is under now."
        return (
            f"{about} Item i starts under cup i. Answer with the cups of items 0, 1, 2, ... in this order, separated by"
            " single spaces."
        )

    def state_text(self, seen: Sequence[int]) -> str:
        cups = self.state_after(seen)
        if self.items == "one":
            return f"ball under cup {cups[0]}"
        return ", ".join(f"item {item} under cup {cup}" for item, cup in enumerate(cups))

    @cached_property
    def facts(self) -> TaskFacts:
        """All swaps of two cups together generate S_n."""
        moves = np.stack([_transposition(self.n, *pair) for pair in self.swaps])
        return TaskFacts(states=self.outputs, moves=moves)


def _transposition(n: int, a: int, b: int) -> NDArray[np.intp]:
    swapped = np.arange(n)
    swapped[[a, b]] = b, a
    return swapped
