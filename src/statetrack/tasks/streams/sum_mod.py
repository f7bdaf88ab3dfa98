"""The running sum modulo m."""

from __future__ import annotations

from dataclasses import dataclass

from statetrack.tasks.base import between
from statetrack.tasks.finite import ModuloTask
from statetrack.tasks.streams.numbers import NUMBERS, NumbersTask


@dataclass(frozen=True, kw_only=True)
class SumMod(ModuloTask, NumbersTask):
    """The sum of the numbers so far, modulo m; with m = 10 the last digit.

    inputs   47 8 90 5
    answers  7 5 5 0
    """

    m: int = between(2, 1000, default=10)

    base_name = "stream.sum_mod"
    title = "running sum modulo m"

    @property
    def instruction(self) -> str:
        return f"{NUMBERS} Answer with the sum of all integers so far, modulo {self.m}."
