"""The largest or the smallest number so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from statetrack.tasks.finite import FiniteTask
from statetrack.tasks.streams.numbers import NUMBERS, VALUES, NumbersTask


@dataclass(frozen=True, kw_only=True)
class ExtremeTask(FiniteTask, NumbersTask):
    """The answer is one of the numbers, and it is all there is to remember."""

    outputs = VALUES
    extreme: ClassVar[Callable[..., int]]

    def start(self) -> int | None:
        return None

    def step(self, state: int | None, symbol: int) -> int:
        return symbol if state is None else self.extreme(state, symbol)


@dataclass(frozen=True, kw_only=True)
class RunningMax(ExtremeTask):
    """The largest number so far.

    inputs   31 7 64 2 64
    answers  31 31 64 64 64
    """

    base_name = "stream.max"
    title = "running maximum"
    instruction = f"{NUMBERS} Answer with the largest integer so far."
    extreme = staticmethod(max)


@dataclass(frozen=True, kw_only=True)
class RunningMin(ExtremeTask):
    """The smallest number so far.

    inputs   31 7 64 2 64
    answers  31 7 7 2 2
    """

    base_name = "stream.min"
    title = "running minimum"
    instruction = f"{NUMBERS} Answer with the smallest integer so far."
    extreme = staticmethod(min)
