"""What the streams share: numbers 0..99 come in one by one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from statetrack.formatting import plural
from statetrack.tasks.base import Task
from statetrack.tasks.facts import TaskFacts
from statetrack.tasks.finite import WeightedTask

VALUES = 100
NUMBERS = "Each input is an integer from 0 to 99."  # how the words of a task over numbers begin


@dataclass(frozen=True, kw_only=True)
class NumbersTask(WeightedTask):
    """A task over the numbers 0..99."""

    inputs = VALUES
    numbers = True


@dataclass(frozen=True, kw_only=True)
class MedianTask(Task):
    """An answer that may lie halfway between two numbers: its class is twice its value, 0..198."""

    outputs = 2 * VALUES - 1

    def value(self, classes: ArrayLike) -> NDArray[Any]:
        return np.asarray(classes) / 2


def last_numbers(held: int, reach: int) -> TaskFacts:
    """The facts of a task whose state is the last `held` numbers and whose answer the last `reach` inputs decide."""
    bits = held * math.log2(VALUES)
    text = f"{VALUES}^{held}, the last {plural(held, 'number')}: {bits:.2f} bits"
    return TaskFacts(states=VALUES**held, bits=bits, state_text=text, reach=reach)


def twice_the_median(numbers: Any) -> Any:
    """The two middle numbers of a sorted row, or the two middle rows of a sorted array, added up.

    >>> twice_the_median((3, 5, 8)), twice_the_median((3, 5, 8, 8))
    (10, 13)
    """
    return numbers[(len(numbers) - 1) // 2] + numbers[len(numbers) // 2]
