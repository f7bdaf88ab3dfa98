"""A counter that starts again at m."""

from __future__ import annotations

from dataclasses import dataclass

from statetrack.tasks.finite import BITS, BinaryTask, ModuloTask


@dataclass(frozen=True, kw_only=True)
class ModCounter(ModuloTask, BinaryTask):
    """The number of ones so far, modulo m: the cyclic group Z_m driven by its generator. With m = 2 it is TXC.

    With m = 5:

        inputs   1 1 0 1 1 1 1
        answers  1 2 2 3 4 0 1
    """

    base_name = "mod_counter"
    title = "modular counter"

    @property
    def instruction(self) -> str:
        return f"{BITS} Answer with the number of ones so far, modulo {self.m}."
