"""How long the rest may take, from the cost of what is left and the seconds that finished cells took.

A cell's cost is how much work it is at most (`kinds.cost`). The cells of one subject take about the same seconds for a
unit of it. From subject to subject the seconds grow more slowly than the cost, as small models leave a machine idle.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

LEAST_CELLS = 3
LEAST_SHARE = 1 / 20  # of the cost, done and left together
POWER = 0.75  # of the cost; with 1, the demo at three quarters of its time gave a third of what was left


def _numbers() -> defaultdict[str, float]:
    return defaultdict(float)


@dataclass
class CostBySubject:
    """Cells by their subject: the sums of their costs, and of cost^POWER."""

    costs: defaultdict[str, float] = field(default_factory=_numbers)
    weights: defaultdict[str, float] = field(default_factory=_numbers)

    def add(self, subject: str, cost: float) -> None:
        self.costs[subject] += cost
        self.weights[subject] += cost**POWER

    def take(self, subject: str, cost: float) -> None:
        self.costs[subject] -= cost
        self.weights[subject] -= cost**POWER

    @property
    def cost(self) -> float:
        return sum(self.costs.values())


@dataclass
class Pace:
    """The seconds of what is done: by subject where one was measured, else over all.

    >>> pace, left = Pace(), CostBySubject()
    >>> for _ in range(3): pace.add("mlp", cost=2.0, seconds=1.0)
    >>> left.add("mlp", 4.0); left.add("gru", 2.0)
    >>> pace.seconds_left(left, workers=2)
    1.5
    """

    done: CostBySubject = field(default_factory=CostBySubject)
    seconds: defaultdict[str, float] = field(default_factory=_numbers)
    cells: int = 0

    def add(self, subject: str, cost: float, seconds: float) -> None:
        self.cells += 1
        self.done.add(subject, cost)
        self.seconds[subject] += seconds

    def seconds_left(self, left: CostBySubject, workers: int) -> float | None:
        """Until the rest is done; None while too little is done to tell.

        What is done first is what was quick. So every worker should have finished about one cell, and cells of some
        weight, before a word is said.
        """
        if left.cost <= 0:
            return 0.0
        if self.cells < max(LEAST_CELLS, workers) or self.done.cost < LEAST_SHARE * (self.done.cost + left.cost):
            return None
        return max(0.0, sum(self._guess(subject, left) for subject in left.costs)) / max(1, workers)

    def _guess(self, subject: str, left: CostBySubject) -> float:
        if self.done.costs[subject]:
            return left.costs[subject] * self.seconds[subject] / self.done.costs[subject]
        return left.weights[subject] * sum(self.seconds.values()) / sum(self.done.weights.values())


def duration(seconds: float | None) -> str:
    """
    >>> duration(59), duration(3600), duration(None)
    ('59 s', '60 min', 'not known yet')
    """
    if seconds is None:
        return "not known yet"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 2 * 3600 else f"{seconds / 3600:.1f} h"
