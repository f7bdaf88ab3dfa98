"""TXC, the temporal XOR chain."""

from __future__ import annotations

from dataclasses import dataclass

from statetrack.tasks.finite import BITS, BinaryTask, FiniteTask


@dataclass(frozen=True, kw_only=True)
class TXC(FiniteTask, BinaryTask):
    """The parity of the ones so far: y_t = x_1 xor ... xor x_t.

    The state is one bit; a 1 flips it, a 0 leaves it.

        inputs   1 0 1 1 0
        answers  1 1 0 1 1
    """

    base_name = "txc"
    title = "parity"
    instruction = f"{BITS} Answer with the parity of the bits so far: 1 if the number of ones is odd, 0 if it is even."
    outputs = 2

    def step(self, state: int, symbol: int) -> int:
        return state ^ symbol
