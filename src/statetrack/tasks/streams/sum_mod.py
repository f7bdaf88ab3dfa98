"""The running sum modulo m."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from statetrack.tasks.finite import FiniteTask
from statetrack.tasks.streams.numbers import NumbersTask


@dataclass(frozen=True, kw_only=True)
class SumMod(FiniteTask, NumbersTask):
    """The sum of the numbers so far, modulo m. With m = 10 it is the last digit:

    inputs   47 8 90 5
    answers  7 5 5 0
    """

    m: int = 10

    base_name: ClassVar[str] = "stream.sum_mod"

    def check(self) -> None:
        self.check_range("m", 2, 1000)
        super().check()

    @property
    def outputs(self) -> int:
        return self.m

    def start(self) -> int:
        return 0

    def step(self, state: int, symbol: int) -> int:
        return (state + symbol) % self.m

    def answer(self, state: int) -> int:
        return state
