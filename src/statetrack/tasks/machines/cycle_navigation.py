"""Cycle navigation: a walk on a circle."""

from __future__ import annotations

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
    inputs = 3

    def step(self, state: int, symbol: int) -> int:
        return (state + symbol - 1) % self.m

    def symbol_text(self, symbol: int) -> str:
        return ("left", "stay", "right")[symbol]
