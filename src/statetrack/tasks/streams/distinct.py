"""How many different numbers have come?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from statetrack.tasks.base import Ints, Run
from statetrack.tasks.facts import TaskFacts
from statetrack.tasks.plain import plain_text
from statetrack.tasks.streams.numbers import NUMBERS, VALUES, NumbersTask


@dataclass(frozen=True, kw_only=True)
class Distinct(NumbersTask):
    """The number of different numbers so far: 1..100, as its own class. The state is one bit per number: has it come?

    inputs   5 8 5 5 0
    answers  1 2 2 2 3
    """

    base_name = "stream.distinct"
    title = "distinct count"
    instruction = f"{NUMBERS} Answer with how many different integers have been shown so far."
    facts = TaskFacts(
        states=2**VALUES,
        bits=float(VALUES),
        state_text=f"2^{VALUES}, one bit per number: {VALUES} bits",
        aperiodic=f"sets of numbers under union, 2^{VALUES} elements, aperiodic and commutative",
        elements=2**VALUES,
        counts=True,
    )
    outputs = VALUES + 1

    def start(self) -> frozenset[int]:
        return frozenset()

    def step(self, state: frozenset[int], symbol: int) -> frozenset[int]:
        return state | {symbol}

    def answer(self, state: frozenset[int]) -> int:
        return len(state)

    def state_text(self, seen: Sequence[int]) -> str:
        return f"shown: {plain_text(self.state_after(seen))}"

    def run(self, inputs: Ints, state: NDArray[np.bool_] | None = None) -> Run:
        rows = np.arange(len(inputs))
        seen = np.zeros((len(inputs), VALUES), bool) if state is None else state.copy()
        targets = np.empty(inputs.shape, np.int32)
        count = np.sum(seen, axis=1)
        for t, number in enumerate(inputs.T):
            count += ~seen[rows, number]
            seen[rows, number] = True
            targets[:, t] = count
        return Run(targets, np.ones(inputs.shape, bool), seen)
