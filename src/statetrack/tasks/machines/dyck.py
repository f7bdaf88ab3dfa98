"""Brackets of several kinds, nested up to a depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.errors import BadInput
from statetrack.tasks import draws
from statetrack.tasks.base import Ints
from statetrack.tasks.finite import FiniteTask

OPENING, CLOSING = "([{<", ")]}>"
MAX_STACKS = 100_000
MAX_DEPTH = 1_000

Stack = tuple[int, ...]  # the kinds of the open brackets, the innermost last


@dataclass(frozen=True, kw_only=True)
class Dyck(FiniteTask):
    """Which bracket is open? The input is brackets of some kinds, nested at most `depth` deep.

    The inputs are the opening brackets 0..kinds-1, then the closing ones. The answer is 0 if every bracket is closed,
    1 + the kind of the innermost open one otherwise, and kinds + 1 from the first mistake on: a wrong closing
    bracket, or one more opened than `depth` allows. With the default two kinds, 0 1 2 3 are ( [ ) ], and ( [ ] ) ( ]
    is wrong at its end:

        inputs   0 1 3 2 0 3
        answers  1 2 1 0 1 3

    The data are walks without a mistake: where nothing is open one opens, at full depth one closes, elsewhere one opens
    with probability `p`; a bracket that closes is of a wrong kind with probability `wrong`.
    """

    depth: int = 4
    kinds: int = 2
    p: float = 0.5
    wrong: float = 0.0

    base_name = "dyck"
    title = "nested brackets"

    def check(self) -> None:
        self.check_range("kinds", 1, len(OPENING))
        self.check_range("depth", 1, _deepest(self.kinds))
        self.check_range("p", 0, 1)
        self.check_range("wrong", 0, 1)
        if self.kinds == 1 and self.wrong:
            raise BadInput(f"dyck: wrong={self.wrong} needs kinds of 2 or more; one kind has no wrong closing bracket")
        super().check()

    @property
    def inputs(self) -> int:
        return 2 * self.kinds

    @property
    def outputs(self) -> int:
        return self.kinds + 2

    def start(self) -> Stack | None:
        return ()

    def step(self, state: Stack | None, symbol: int) -> Stack | None:
        if state is None:
            return None  # broken, and so it stays
        if symbol < self.kinds:
            return (*state, symbol) if len(state) < self.depth else None
        return state[:-1] if state and state[-1] == symbol - self.kinds else None

    def answer(self, state: Stack | None) -> int:
        if state is None:
            return self.kinds + 1
        return state[-1] + 1 if state else 0

    @property
    def never_due(self) -> tuple[int, ...]:
        """Nothing is broken where no bracket is wrong."""
        return () if self.wrong else (self.kinds + 1,)

    def draw(self, keys: draws.Keys, start: int, stop: int, state: Any = None) -> Ints:
        """One position after the other, since what may follow depends on what is open."""
        chance, mistake = (draws.fractions(draws.lane(keys, number), start, stop) for number in (0, 1))
        bracket = draws.symbols(draws.lane(keys, 2), start, stop, self.inputs)
        shift = 1 + draws.symbols(draws.lane(keys, 3), start, stop, max(1, self.kinds - 1))
        steps, answers = self.automaton.steps, self.automaton.answers
        states = np.zeros(len(keys), np.int32) if state is None else np.asarray(state)
        drawn = np.empty((len(keys), stop - start), np.int32)
        for t in range(stop - start):
            innermost = answers[states] - 1
            opening = bracket[:, t] % self.kinds
            closing = (innermost + shift[:, t] * (mistake[:, t] < self.wrong)) % self.kinds + self.kinds
            right = np.where(chance[:, t] < self._opening[states], opening, closing)
            drawn[:, t] = np.where(innermost == self.kinds, bracket[:, t], right)  # after a mistake, anything
            states = steps[states, drawn[:, t]]
        return drawn

    def law(self) -> NDArray[np.float64]:
        """An opening bracket with its probability, else one that closes: the right one or, with `wrong`, another."""
        innermost = self.automaton.answers - 1
        law = np.zeros(self.automaton.steps.shape)
        law[:, : self.kinds] = self._opening[:, None] / self.kinds
        for kind in range(self.kinds):
            wrong = self.wrong / max(1, self.kinds - 1)
            law[:, self.kinds + kind] = (1 - self._opening) * np.where(innermost == kind, 1 - self.wrong, wrong)
        law[innermost == self.kinds] = 1 / self.inputs  # after a mistake, anything
        return law

    @cached_property
    def _opening(self) -> NDArray[np.float64]:
        """The probability of an opening bracket in every state of the automaton."""
        full = self.automaton.steps[:, 0] == self._broken
        return np.where(self.automaton.answers == 0, 1.0, np.where(full, 0.0, self.p))

    @cached_property
    def _broken(self) -> int:
        return int(np.argmax(self.automaton.answers == self.kinds + 1))

    def symbol_text(self, symbol: int) -> str:
        return (OPENING[: self.kinds] + CLOSING[: self.kinds])[symbol]

    def answer_text(self, answer: int) -> str:
        return ("balanced", *OPENING[: self.kinds], "broken")[answer]

    @property
    def instruction(self) -> str:
        kinds = " ".join(opening + closing for opening, closing in zip(OPENING[: self.kinds], CLOSING))
        return (
            f"Each input is one bracket, of the kinds {kinds}. Answer with the innermost bracket that is still open,"
            f" with '{self.answer_text(0)}' if none is open, and with '{self.answer_text(self.kinds + 1)}' from the"
            f" first mistake on. A mistake is a closing bracket that does not fit, or more than {self.depth} open at"
            " once."
        )

    def state_text(self, seen: Sequence[int]) -> str:
        stack = self.state_after(seen)
        return "broken" if stack is None else f"open: {' '.join(OPENING[kind] for kind in stack) or 'nothing'}"


def _deepest(kinds: int) -> int:
    """The greatest depth whose stacks, 1 + kinds + kinds**2 + ..., are not too many."""
    depth, stacks = 0, 1
    while depth < MAX_DEPTH and stacks + kinds ** (depth + 1) <= MAX_STACKS:
        depth += 1
        stacks += kinds**depth
    return depth
