"""Even pairs: do 01 and 10 occur an even number of times together?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from statetrack.tasks.finite import BITS, BinaryTask, FiniteTask
from statetrack.tasks.plain import NOTHING_YET

Ends = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class EvenPairs(FiniteTask, BinaryTask):
    """0 if the neighbours that differ (01 or 10) are even in number, 1 if they are odd.

    As in neural_networks_chomsky_hierarchy. Every such pair changes the bit, so the answer is x_1 xor x_t, and the
    state is these two. 001110 holds one 01 and one 10:

        inputs   0 0 1 1 1 0
        answers  0 0 1 1 1 0
    """

    base_name = "even_pairs"
    title = "even pairs"
    instruction = (
        f"{BITS} Count the pairs of neighbouring bits that differ. Answer 0 if their number is even, 1 if it is odd."
    )
    outputs = 2

    def start(self) -> Ends | None:
        return None

    def step(self, state: Ends | None, symbol: int) -> Ends:
        first = symbol if state is None else state[0]
        return first, symbol

    def answer(self, state: Ends | None) -> int | None:
        return None if state is None else state[0] ^ state[1]

    def state_text(self, seen: Sequence[int]) -> str:
        ends = self.state_after(seen)
        return NOTHING_YET if ends is None else "first bit {}, newest bit {}".format(*ends)
