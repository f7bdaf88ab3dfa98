"""Say again what came k numbers ago."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from statetrack.tasks.base import Ints, Run, between
from statetrack.tasks.facts import TaskFacts
from statetrack.tasks.plain import plain_text
from statetrack.tasks.streams.numbers import NUMBERS, VALUES, NumbersTask, last_numbers


@dataclass(frozen=True, kw_only=True)
class Echo(NumbersTask):
    """The number of k positions ago, y_t = x_{t-k}; nothing is asked at the first k positions.

    The state is the last k + 1 numbers. With k = 2:

        inputs   85 63 51 26
        answers  - - 85 63
    """

    k: int = between(1, 100, default=2)

    base_name = "stream.echo"
    title = "delayed copy"
    outputs = VALUES

    def start(self) -> tuple[int, ...]:
        return ()

    def step(self, state: tuple[int, ...], symbol: int) -> tuple[int, ...]:
        return (*state, symbol)[-self.k - 1 :]

    def answer(self, state: tuple[int, ...]) -> int | None:
        return state[0] if len(state) > self.k else None

    def run(self, inputs: Ints, state: Ints | None = None) -> Run:
        """`state` holds the numbers before, at most k: together with the inputs they are the answers, k later."""
        before = inputs[:, :0] if state is None else state
        numbers = np.concatenate([before, inputs], axis=1)
        unasked = min(self.k - before.shape[1], inputs.shape[1])
        targets = np.zeros(inputs.shape, np.int32)
        targets[:, unasked:] = numbers[:, : inputs.shape[1] - unasked]
        defined = np.ones(inputs.shape, bool)
        defined[:, :unasked] = False
        return Run(targets, defined, numbers[:, -self.k :])

    @property
    def instruction(self) -> str:
        return (
            f"{NUMBERS} Answer with the integer that was shown {self.k} inputs before the newest one. You are not asked"
            " before there is one."
        )

    def state_text(self, seen: Sequence[int]) -> str:
        return f"last, the newest at the end: {plain_text(self.state_after(seen))}"

    @property
    def facts(self) -> TaskFacts:
        """What has to be kept are the k numbers before the newest, which is an input."""
        return last_numbers(self.k, reach=self.k + 1)
