"""How long the rows of a data set are: one length, several in turn, or drawn from a range.

>>> Lengths.read("3,5,9").longest, Lengths.read("3..1024")
(9, Lengths(text='3..1024', choices=(3, 1024), drawn=True))
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from statetrack.errors import BadInput
from statetrack.tasks import draws
from statetrack.tasks.base import MAX_LENGTH, Task


@dataclass(frozen=True)
class Lengths:
    """`choices` are taken in turn by the rows 0, 1, 2, ...; when `drawn`, they are the ends of a range."""

    text: str
    choices: tuple[int, ...]
    drawn: bool = False

    @classmethod
    def read(cls, text: str) -> Self:
        """Lengths from '500', '64,128,256' or '3..1024'."""
        tidy = text.replace(" ", "")
        if not re.fullmatch(r"[+-]?\d+(,[+-]?\d+)*|[+-]?\d+\.\.[+-]?\d+", tidy):
            raise BadInput(f"length {text!r} should be a number, a list such as 64,128 or a range such as 3..1024")
        drawn = ".." in tidy
        choices = tuple(int(part) for part in tidy.split(".." if drawn else ","))
        for length in choices:
            if not 1 <= length <= MAX_LENGTH:
                raise BadInput(f"length {length} should lie in 1..{MAX_LENGTH}")
        if drawn and choices[0] > choices[1]:
            raise BadInput(f"length {text!r}: the range should start at its smaller end")
        return cls(tidy, choices, drawn)

    @property
    def longest(self) -> int:
        return max(self.choices)

    def of(self, task: Task, seed: int, split: str, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """The length of each row. A drawn one depends on (task, split, seed, row) alone, like everything in the row."""
        if not self.drawn:
            return np.asarray(self.choices, np.int64)[indices % len(self.choices)]
        low, high = self.choices
        label = f"lengths of {task.with_parameters(ask='every').name}"
        keys = draws.row_keys(label, split, seed, 0, indices)
        return low + draws.symbols(keys, 0, 1, high - low + 1)[:, 0].astype(np.int64)
