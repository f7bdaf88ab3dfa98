"""Cycle navigation: a walk on a circle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from statetrack.tasks.finite import ModuloTask, WeightedTask


@dataclass(frozen=True, kw_only=True)
class CycleNavigation(ModuloTask, WeightedTask):
    """The place on a circle of m places after steps to the left (0), none (1) or to the right (2), from place 0.

    As in neural_networks_chomsky_hierarchy, where m = 5. There the moves are written -1, 0, 1, and
    1 -1 0 -1 -1 ends at -2, which is place 3:

        inputs   2 0 1 0 0
        answers  1 0 0 4 3
    """

    base_name = "cycle_navigation"
    title = "walk on a circle"
    inputs = 3

    def step(self, state: int, symbol: int) -> int:
        return (state + symbol - 1) % self.m

    def symbol_text(self, symbol: int) -> str:
        return ("left", "stay", "right")[symbol]

    @property
    def instruction(self) -> str:
        return (
            f"You stand on a circle of {self.m} places, numbered from 0, at place 0. Each input is a move: 'right' goes"
            " to the next higher number (from the last place to 0), 'left' to the next lower (from 0 to the last"
            " place), 'stay' nowhere. Answer with the number of your place."
        )

    def state_text(self, seen: Sequence[int]) -> str:
        return f"place {self.state_after(seen)}"
