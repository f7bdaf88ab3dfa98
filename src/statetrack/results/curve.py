"""How a training went, check by check, as a record keeps it: a few hundred points at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

MOST_POINTS = 256


@dataclass(frozen=True)
class Curve:
    """A column for each thing that is known of a check on validation data, a place in it for each check.

    `updates` counts the updates of the weights until then, `lengths` is the length of the stage. `loss` and
    `gradient_norm` are means over the updates since the check before, the norm that of the gradient before it is
    clipped; None where it was not a finite number, or where a run of an earlier version had not kept it. `accuracy` is
    that on validation rows of the stage's length.
    """

    updates: list[int]
    lengths: list[int]
    loss: list[float]
    accuracy: list[float]
    gradient_norm: list[float | None]

    def problem(self) -> str | None:
        """What its numbers cannot be, beyond their types."""
        if len({len(getattr(self, field.name)) for field in fields(self)}) != 1:
            return "the columns of its curve differ in length"
        if any(after <= before for before, after in zip(self.updates, self.updates[1:])):
            return "the updates of its curve do not grow"
        return None


def kept(lengths: Sequence[int], accuracy: Sequence[float], most: int = MOST_POINTS) -> list[int]:
    """The places of a curve that are kept where it has more than `most` points: the first, the last, the best, those
    on both sides of every change of the length, and of the rest as many as there is room for, evenly spread. What is
    kept is what was measured; nothing is averaged.

    >>> kept([4] * 6 + [8] * 6, [0.5] * 12, most=9)
    [0, 1, 3, 5, 6, 7, 8, 10, 11]
    >>> kept([4, 8], [0.5, 0.5])
    [0, 1]
    """
    count = len(lengths)
    if count <= most:
        return list(range(count))
    changes = [place for place in range(1, count) if lengths[place] != lengths[place - 1]]
    marked = {0, count - 1, int(np.argmax(accuracy)), *changes, *(place - 1 for place in changes)}
    rest = [place for place in range(count) if place not in marked]
    spread = np.linspace(0, len(rest) - 1, max(0, most - len(marked))).round().astype(int)
    return sorted({*marked, *(rest[place] for place in spread)})
