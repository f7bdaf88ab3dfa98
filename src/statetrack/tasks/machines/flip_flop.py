"""The flip-flop: one symbol that is written or kept."""

from __future__ import annotations

from dataclasses import dataclass

from statetrack.tasks.base import between
from statetrack.tasks.finite import FiniteTask, WeightedTask

HOLD = 0


@dataclass(frozen=True, kw_only=True)
class FlipFlop(FiniteTask, WeightedTask):
    """The bit that was last written, 0 before any write. Inputs: 0 holds, 1 sets the bit to 0, 2 sets it to 1.

        inputs   0 2 0 0 1 0
        answers  0 1 1 1 0 0

    Rare writes make it a task of long memory: `flip_flop[weights=[98,1,1]]` holds 98 times out of 100. With
    `symbols=N` one of N symbols is kept, and input s + 1 writes symbol s.
    """

    base_name = "flip_flop"
    title = "flip-flop"
    symbols: int = between(2, 10_000, default=2)

    @property
    def inputs(self) -> int:
        return self.symbols + 1

    @property
    def outputs(self) -> int:
        return self.symbols

    def step(self, state: int, symbol: int) -> int:
        return state if symbol == HOLD else symbol - 1

    def symbol_text(self, symbol: int) -> str:
        return "hold" if symbol == HOLD else f"set {symbol - 1}"

    @property
    def instruction(self) -> str:
        if self.symbols == 2:
            what, writes = "bit", "'set 0', 'set 1'"
        else:
            what, writes = f"number from 0 to {self.symbols - 1}", f"'set 0' to 'set {self.symbols - 1}'"
        return (
            f"A memory holds one {what}, 0 at the start. Each input sets it ({writes}) or leaves it ('hold'). Answer"
            f" with the {what.partition(' ')[0]} that it holds now."
        )
