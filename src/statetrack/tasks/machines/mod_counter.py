"""A counter that starts again at m."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from statetrack.tasks.finite import BinaryTask, FiniteTask


@dataclass(frozen=True, kw_only=True)
class ModCounter(FiniteTask, BinaryTask):
    """The number of ones so far, modulo m: the cyclic group Z_m driven by its generator. With m = 2 it is TXC.

    With m = 5:

        inputs   1 1 0 1 1 1 1
        answers  1 2 2 3 4 0 1
    """

    m: int = 5

    base_name: ClassVar[str] = "mod_counter"

    def check(self) -> None:
        self.check_range("m", 2, 10_000)
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
