"""FSM, the finite-state chain A -> B -> C -> D."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from statetrack.tasks.base import between
from statetrack.tasks.facts import TaskFacts
from statetrack.tasks.finite import BITS, BinaryTask, FiniteTask


@dataclass(frozen=True, kw_only=True)
class FSM(FiniteTask, BinaryTask):
    """Have k ones been seen? A 1 moves on along a chain of k + 1 states, a 0 stays, the last state absorbs.

    With k = 3 the states are A, B, C, D, and the answer is 1 in D:

        inputs   1 0 1 1 0
        answers  0 0 0 1 1

    At p = 1/2 it is nearly constant: always answering 1 is wrong at 5 positions on average, whatever the length.
    A small p, such as 3 / length, makes it a task.
    """

    k: int = between(1, 10_000, default=3)

    base_name = "fsm"
    title = "saturating counter"
    facts = TaskFacts(threshold=True)
    outputs = 2

    def step(self, state: int, symbol: int) -> int:
        return min(state + symbol, self.k)

    def answer(self, state: int) -> int:
        return int(state == self.k)

    @property
    def instruction(self) -> str:
        return f"{BITS} Answer 1 as soon as at least {self.k} ones have been shown, and ever after; before that, 0."

    def state_text(self, seen: Sequence[int]) -> str:
        ones = self.state_after(seen)
        return f"ones: {ones}{' or more' if ones == self.k else ''}"
