"""The task: a lamp with buttons."""

from collections.abc import Sequence
from dataclasses import dataclass

from statetrack.tasks.finite import FiniteTask

PRESS, CUT, MEND = range(3)


@dataclass(frozen=True, kw_only=True)
class Lamp(FiniteTask):
    """Whether a lamp is lit: button 0 toggles it, button 1 breaks it, button 2 mends it, and then it is off.

    inputs   0 0 0 1 0 2 0
    answers  1 0 1 0 0 0 1
    """

    base_name = "lamp"
    inputs = 3
    outputs = 2
    title = "the lamp"
    instruction = "A lamp is dark. Press switches it, cut breaks it, mend repairs it if it is broken. Is it lit?"

    def start(self) -> str:
        return "off"

    def step(self, state: str, button: int) -> str:
        if button == CUT or (state == "broken" and button == PRESS):
            return "broken"
        if button == MEND:
            return "off" if state == "broken" else state
        return "on" if state == "off" else "off"

    def answer(self, state: str) -> int:
        return int(state == "on")

    def symbol_text(self, symbol: int) -> str:
        return ("press", "cut", "mend")[symbol]

    def answer_text(self, answer: int) -> str:
        return ("dark", "lit")[answer]

    def state_text(self, seen: Sequence[int]) -> str:
        return f"the lamp is {self.state_after(seen)}"
