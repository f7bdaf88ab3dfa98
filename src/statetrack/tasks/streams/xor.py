"""The running XOR of numbers."""

from __future__ import annotations

from dataclasses import dataclass

from statetrack.tasks.base import between
from statetrack.tasks.finite import FiniteTask, WeightedTask


@dataclass(frozen=True, kw_only=True)
class RunningXor(FiniteTask, WeightedTask):
    """The bitwise XOR of the numbers so far, each of some `bits`: as many parities side by side.

    Here the answer is the state:

        inputs   5 3 5 127
        answers  5 6 3 124

    5 xor 3 is 101 xor 011 = 110, which is 6.
    """

    bits: int = between(1, 10, default=7)

    base_name = "stream.xor"
    title = "running xor"
    instruction = "Each input is an integer. Answer with the bitwise exclusive or of all integers so far, in decimal."
    numbers = True

    @property
    def inputs(self) -> int:
        return 2**self.bits

    @property
    def outputs(self) -> int:
        return 2**self.bits

    def step(self, state: int, symbol: int) -> int:
        return state ^ symbol
