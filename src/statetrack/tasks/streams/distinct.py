"""How many different numbers have come?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from statetrack.tasks.base import Ints, Run
from statetrack.tasks.streams.numbers import VALUES, NumbersTask


@dataclass(frozen=True, kw_only=True)
class Distinct(NumbersTask):
    """The number of different numbers so far: 1..100, as its own class. The state is one bit a number: has it come?

    inputs   5 8 5 5 0
    answers  1 2 2 2 3
    """

    base_name = "stream.distinct"
    outputs = VALUES + 1

    def start(self) -> frozenset[int]:
        return frozenset()

    def step(self, state: frozenset[int], symbol: int) -> frozenset[int]:
        return state | {symbol}

    def answer(self, state: frozenset[int]) -> int:
        return len(state)

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
