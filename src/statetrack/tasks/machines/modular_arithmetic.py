"""Modular arithmetic: the value of a sum of products, as far as it has been read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from statetrack.tasks import draws
from statetrack.tasks.base import Ints, between
from statetrack.tasks.finite import NOTHING, FiniteTask, WeightedTask, check_weights

OPERATORS = "+-*"


class Reading(NamedTuple):
    """Where the reader stands: the sum of the finished terms, and the term being read, both modulo m.

    After an operator, `term` is what the next number is multiplied with: 1 after +, -1 after -, the term so far after
    *.
    """

    total: int
    term: int
    complete: bool  # a number was read last


@dataclass(frozen=True, kw_only=True)
class ModularArithmetic(FiniteTask, WeightedTask):
    """The value modulo m of an expression of numbers and + - *, where * binds stronger than + and -.

    As in neural_networks_chomsky_hierarchy, where m = 5. The inputs are the numbers 0..m-1, then + - * as m, m+1, m+2
    (there is no blank symbol). Numbers stand at the first, third, ... position, operators between them. There is an
    answer after every number and none after an operator, so that a row that is asked at its end has to be of odd
    length. 1 + 2 * 3 - 4 is read as 1, then 1 + 2 = 3, then 1 + 6 = 2, then 3:

        inputs   1 5 2 7 3 6 4
        answers  1 - 3 - 2 - 3

    A number after a number, or an operator where a number should stand, breaks the expression: no answer from then on.
    `weights` are the shares of the numbers among numbers, then of the operators among operators.
    """

    m: int = between(2, 50, default=5)

    base_name = "modular_arithmetic"
    title = "modular arithmetic"

    def check(self) -> None:
        super().check()
        check_weights(self.weights[: self.m], self.m, f"{self.label}: numbers")
        check_weights(self.weights[self.m :], len(OPERATORS), f"{self.label}: operators")

    @property
    def inputs(self) -> int:
        return self.m + len(OPERATORS)

    @property
    def outputs(self) -> int:
        return self.m

    def start(self) -> Reading | None:
        return Reading(total=0, term=1, complete=False)

    def step(self, state: Reading | None, symbol: int) -> Reading | None:
        if state is None or state.complete == (symbol < self.m):
            return None  # broken
        total, term, _ = state
        if symbol < self.m:
            return Reading(total, term * symbol % self.m, complete=True)
        operator = OPERATORS[symbol - self.m]
        if operator == "*":
            return Reading(total, term, complete=False)
        return Reading((total + term) % self.m, 1 if operator == "+" else self.m - 1, complete=False)

    def answer(self, state: Reading | None) -> int | None:
        return (state.total + state.term) % self.m if state is not None and state.complete else None

    @property
    def symbol_weights(self) -> tuple[float, ...] | None:
        """Half of a long row are numbers and half are operators."""
        shares = self.weights or (1.0,) * self.inputs
        numbers, operators = sum(shares[: self.m]), sum(shares[self.m :])
        return tuple(share / (numbers if i < self.m else operators) for i, share in enumerate(shares))

    def draw(self, keys: draws.Keys, start: int, stop: int, state: Any = None) -> Ints:
        def drawn(count: int, weights: tuple[float, ...]) -> Ints:
            return draws.symbols(keys, start, stop, count, draws.thresholds(weights))

        numbers = drawn(self.m, self.weights[: self.m])
        operators = self.m + drawn(len(OPERATORS), self.weights[self.m :])
        return np.where(np.arange(start, stop) % 2 == 0, numbers, operators)

    def law(self) -> NDArray[np.float64]:
        """A number where one may stand, an operator after a number."""
        shares = np.asarray(self.weights or (1.0,) * self.inputs)
        numbers, operators = shares.copy(), shares.copy()
        numbers[self.m :] = 0
        operators[: self.m] = 0
        after_number = (self.automaton.answers != NOTHING)[:, None]
        return np.where(after_number, operators / operators.sum(), numbers / numbers.sum())

    def symbol_text(self, symbol: int) -> str:
        return str(symbol) if symbol < self.m else OPERATORS[symbol - self.m]

    @property
    def instruction(self) -> str:
        return (
            "Each input is the next piece of an expression of numbers and the operators + - *, where * binds stronger"
            f" than + and -. Answer with the value so far, modulo {self.m} (never negative). You are asked after"
            " numbers only."
        )

    def state_text(self, seen: Sequence[int]) -> str:
        state = self.state_after(seen)
        if state is None:
            return "broken"
        term = f"last term {state.term}" if state.complete else f"next number counts {state.term} times"
        return f"sum of the terms before {state.total}, {term}"
