"""The median of the last k numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from statetrack.tasks.base import Ints, Run, between
from statetrack.tasks.facts import TaskFacts
from statetrack.tasks.plain import plain_text
from statetrack.tasks.streams.numbers import NUMBERS, MedianTask, NumbersTask, last_numbers, twice_the_median


@dataclass(frozen=True, kw_only=True)
class WindowMedian(MedianTask, NumbersTask):
    """The median of the last k numbers, of all while there are fewer. The state is those numbers.

    With k = 5 the 85 has left the window at the sixth number, and the middle of 63 51 26 30 4 is 30:

        inputs   85 63 51 26 30 4
        answers  85 74 63 57 51 30
    """

    k: int = between(1, 100, default=5)

    base_name = "stream.window_median"
    title = "sliding median"

    def start(self) -> tuple[int, ...]:
        return ()

    def step(self, state: tuple[int, ...], symbol: int) -> tuple[int, ...]:
        return (*state, symbol)[-self.k :]

    def answer(self, state: tuple[int, ...]) -> int | None:
        return twice_the_median(tuple(sorted(state))) if state else None

    def run(self, inputs: Ints, state: Ints | None = None) -> Run:
        before = inputs[:, :0] if state is None else state
        numbers = np.concatenate([before, inputs], axis=1)
        targets = np.empty(inputs.shape, np.int32)
        for t in range(inputs.shape[1]):
            end = before.shape[1] + t + 1
            window = np.sort(numbers[:, max(0, end - self.k) : end], axis=1)
            targets[:, t] = twice_the_median(window.T)
        return Run(targets, np.ones(inputs.shape, bool), numbers[:, -self.k :])

    @property
    def instruction(self) -> str:
        return (
            f"{NUMBERS} Answer with the median of the last {self.k} integers (of all, while there are fewer). For an"
            " even count it is the mean of the middle two."
        )

    def state_text(self, seen: Sequence[int]) -> str:
        return f"last, the newest at the end: {plain_text(self.state_after(seen))}"

    @property
    def facts(self) -> TaskFacts:
        return last_numbers(self.k, reach=self.k)
