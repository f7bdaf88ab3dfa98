"""TXC, the temporal XOR chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from statetrack.tasks.finite import BinaryTask, FiniteTask


@dataclass(frozen=True, kw_only=True)
class TXC(FiniteTask, BinaryTask):
    """The parity of the ones so far: y_t = x_1 xor ... xor x_t.

    The state is one bit; a 1 flips it, a 0 leaves it.

        inputs   1 0 1 1 0
        answers  1 1 0 1 1
    """

    base_name: ClassVar[str] = "txc"

    @property
    def outputs(self) -> int:
        return 2

    def start(self) -> int:
        return 0

    def step(self, state: int, symbol: int) -> int:
        return state ^ symbol

    def answer(self, state: int) -> int:
        return state
