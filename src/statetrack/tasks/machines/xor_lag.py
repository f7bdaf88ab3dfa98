"""XOR with the input of k steps ago."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from statetrack.tasks.base import between
from statetrack.tasks.finite import BITS, BinaryTask, FiniteTask


@dataclass(frozen=True, kw_only=True)
class XorLag(FiniteTask, BinaryTask):
    """y_t = x_t xor x_{t-k}, with zeros before the start.

    The state is the last k + 1 bits, the oldest first: a memory that is written at every step and forgets by itself.
    With k = 1 the answer says whether the input changed:

        inputs   1 0 0 1 1
        answers  1 1 0 1 0
    """

    k: int = between(1, 16, default=1)

    base_name = "xor_lag"
    title = "delayed xor"
    outputs = 2

    def step(self, state: int, symbol: int) -> int:
        return (2 * state + symbol) % 2 ** (self.k + 1)

    def answer(self, state: int) -> int:
        return (state ^ (state >> self.k)) & 1

    @property
    def instruction(self) -> str:
        return (
            f"{BITS} Answer with the exclusive or of the newest bit and the bit {self.k} inputs before it; bits before"
            " the first count as 0."
        )

    def state_text(self, seen: Sequence[int]) -> str:
        return f"last bits: {' '.join(f'{self.state_after(seen):0{self.k + 1}b}')}"
