"""Variables that are set, copied and swapped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from string import ascii_lowercase

import numpy as np
from numpy.typing import NDArray

from statetrack.tasks.base import Ints, Run, between
from statetrack.tasks.facts import TaskFacts
from statetrack.tasks.stories.orders import Order, OrdersTask


@dataclass(frozen=True, kw_only=True)
class Variables(OrdersTask):
    """The value of one of v variables a, b, c, ..., all 0 at the start, while they are set, copied and swapped.

    The inputs are, in this order: set a to 0, 1, ..., set b to 0, ...; copy a to b, a to c, ..., b to a, ...; swap a
    and b, a and c, b and c, .... With v = 3 and 10 values there are 30 + 6 + 3; 17 is set b to 7, 32 copy b to a, 37
    swap a and c, and 4 set a to 4. The answer is the value of a, which is variable 0 (`query`):

        inputs   17 32 37 4 37
        answers  0 7 0 4 7
    """

    v: int = between(1, len(ascii_lowercase), default=3)
    values: int = between(2, 100, default=10)
    query: int = 0

    base_name = "variables"
    title = "variable tracking"

    def check(self) -> None:
        self.check_range("query", 0, self.v - 1)
        super().check()

    @cached_property
    def orders(self) -> tuple[Order, ...]:
        """Set variable a to the value b, copy a to b, or swap a and b."""
        names = range(self.v)
        return (
            *(("set", name, value) for name in names for value in range(self.values)),
            *(("copy", *pair) for pair in permutations(names, 2)),
            *(("swap", *pair) for pair in combinations(names, 2)),
        )

    @property
    def outputs(self) -> int:
        return self.values

    def start(self) -> tuple[int, ...]:
        return (0,) * self.v

    def step(self, state: tuple[int, ...], symbol: int) -> tuple[int, ...]:
        verb, a, b = self.orders[symbol]
        after = list(state)
        if verb == "set":
            after[a] = b
        elif verb == "copy":
            after[b] = state[a]
        else:
            after[a], after[b] = state[b], state[a]
        return tuple(after)

    def answer(self, state: tuple[int, ...]) -> int:
        return state[self.query]

    @cached_property
    def _sources(self) -> NDArray[np.intp]:
        """Where each variable takes its value from after every input: a variable, or v + value for a constant.

        It is the step itself, made on the names of the variables instead of their values.
        """
        names = tuple(range(self.v))
        after = [list(self.step(names, symbol)) for symbol in range(self.inputs)]
        for row, (verb, a, b) in zip(after, self.orders):
            if verb == "set":
                row[a] = self.v + b
        return np.asarray(after, np.intp)

    def run(self, inputs: Ints, state: Ints | None = None) -> Run:
        """The state is the variables' values, one row each, followed by the constants."""
        memory = self._at_start(len(inputs)) if state is None else state.copy()
        targets = np.empty(inputs.shape, np.int32)
        for t, symbols in enumerate(inputs.T):
            memory[:, : self.v] = np.take_along_axis(memory, self._sources[symbols], axis=1)
            targets[:, t] = memory[:, self.query]
        return Run(targets, np.ones(inputs.shape, bool), memory)

    def _at_start(self, rows: int) -> Ints:
        constants = np.arange(self.values, dtype=np.int32)
        return np.tile(np.concatenate([np.zeros(self.v, np.int32), constants]), (rows, 1))

    def symbol_text(self, symbol: int) -> str:
        verb, a, b = self.orders[symbol]
        if verb == "set":
            return f"set {ascii_lowercase[a]} to {b}"
        return f"{verb} {ascii_lowercase[a]} {'to' if verb == 'copy' else 'and'} {ascii_lowercase[b]}"

    @property
    def instruction(self) -> str:
        names = ", ".join(ascii_lowercase[: self.v])
        return (
            f"There are {self.v} variables ({names}), all 0 at the start. Each input sets a variable to a value, copies"
            " one variable to another ('copy a to b' gives b the value of a), or swaps two of them. Answer with the"
            f" current value of {ascii_lowercase[self.query]}."
        )

    def state_text(self, seen: Sequence[int]) -> str:
        return ", ".join(f"{name}={value}" for name, value in zip(ascii_lowercase, self.state_after(seen)))

    @cached_property
    def facts(self) -> TaskFacts:
        """The values' states are many. The table is of the names: from which variable or constant each variable, and
        each constant, takes its value. These maps multiply in the reverse order."""
        constants = np.tile(np.arange(self.v, self.v + self.values), (self.inputs, 1))
        return TaskFacts(states=self.values**self.v, table=np.hstack([self._sources, constants]).T)
