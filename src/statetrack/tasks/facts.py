"""What a task tells theory about itself: plain data, from which theory makes passports, floors and predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskFacts:
    """What is known of a task by argument. A task gives what holds for it; the rest stays as it is here: not known.

    A finite automaton, or a group, needs none of this: its algebra is worked out from its table of steps.

    states       how many states there are; None where they have no bound or were not counted
    bits         how many bits tell the states apart
    state_text   both in words
    majority     why it is as hard as taking a majority
    aperiodic    why no word cycles through its states
    elements     how many elements its transition monoid has
    reach        how many last inputs decide the answer
    counts       whether the answer follows from how often each symbol came, in whatever order
    threshold    whether the answer is a threshold of a sum over the inputs
    ups          for a running majority, of each input whether it goes up
    moves        for inputs that permute points, and together generate all permutations of them: a row for each input
                 with the place that it takes every point to
    table        a table of steps, one row per state, with the task's own transition monoid or that monoid reversed,
                 where it is much smaller than the automaton's
    """

    states: int | None = None
    bits: float | None = None
    state_text: str = ""
    majority: str = ""
    aperiodic: str = ""
    elements: int | None = None
    reach: int | None = None
    counts: bool = False
    threshold: bool = False
    ups: NDArray[np.bool_] | None = None
    moves: NDArray[np.intp] | None = None
    table: NDArray[Any] | None = None
