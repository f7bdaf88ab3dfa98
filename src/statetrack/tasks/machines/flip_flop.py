"""The flip-flop: one bit that is written or kept."""

from __future__ import annotations

from dataclasses import dataclass

from statetrack.tasks.finite import FiniteTask, WeightedTask

HOLD, SET_0, SET_1 = 0, 1, 2


@dataclass(frozen=True, kw_only=True)
class FlipFlop(FiniteTask, WeightedTask):
    """The bit that was last written, 0 before any write. Inputs: 0 holds, 1 sets the bit to 0, 2 sets it to 1.

        inputs   0 2 0 0 1 0
        answers  0 1 1 1 0 0

    Rare writes make it a task of long memory: `flip_flop[weights=[98,1,1]]` holds 98 times out of 100.
    """

    base_name = "flip_flop"
    title = "flip-flop"
    instruction = (
        "A memory holds one bit, 0 at the start. Each input sets it ('set 0', 'set 1') or leaves it ('hold'). Answer"
        " with the bit that it holds now."
    )
    inputs = 3
    outputs = 2

    def step(self, state: int, symbol: int) -> int:
        return state if symbol == HOLD else int(symbol == SET_1)

    def symbol_text(self, symbol: int) -> str:
        return ("hold", "set 0", "set 1")[symbol]
