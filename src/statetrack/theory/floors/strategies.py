"""What the laziest strategies score on a task: the floors that a measured accuracy stands on.

    constant        one answer, always
    position        the best answer for each position: the majority there
    input           the best answer for each (x_t, t)
    window          the best answer for each (x_{t-w+1}, ..., x_t, t)
    counts          the best answer from how often each symbol came, in whatever order
    uniform, last element, abelianisation      for groups: 1/|G|; copy x_t; know the coset of G' and guess within it
    linear logit    for parity: the best threshold of a weighted sum of the inputs

>>> import statetrack as st
>>> round(floors(st.task("txc"), 64)["linear logit"].average, 3)
0.592
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from statetrack.errors import BadInput
from statetrack.formatting import fixed, plural
from statetrack.tasks.base import Task, check_size
from statetrack.tasks.facts import TaskFacts
from statetrack.tasks.finite import FiniteTask
from statetrack.theory.floors import guessing, majority, simulation
from statetrack.theory.floors.markov import Floats, MarkovChain, process, shares

WINDOW_WORK = 3 * 10**8
"""Steps of a sum over windows beyond which a narrower window is taken."""

SAYS = {
    "constant": "the best single answer",
    "position": "the best answer for each position",
    "input": "the best answer for each (x_t, t)",
    "counts": "the best answer from the counts of the symbols",
    "uniform": "a guess among all elements",
    "last element": "the last input repeated",
    "abelianisation": "the coset of the commutator subgroup known, a guess within it",
    "linear logit": "the best threshold of a weighted sum of the inputs",
}
SUMS = ("counts", "abelianisation", "linear logit")
"""What takes in every input and forgets only their order: no guess, and where that does not matter, all there is."""


@dataclass(frozen=True)
class Floor:
    """One strategy's accuracy: by position (NaN where nothing is asked) and over all answers that are asked.

    Where it was simulated, `exact` is False and [low, high] is a 95 % interval of the average over n rows.
    """

    name: str
    says: str
    by_position: Floats
    average: float
    exact: bool = True
    low: float | None = None
    high: float | None = None
    rows: int | None = None

    @property
    def guess(self) -> bool:
        """Whether it remembers at most the last inputs."""
        return self.name not in SUMS

    def to_dict(self) -> dict[str, Any]:
        keys = ("name", "says", "guess", "average", "exact", "low", "high", "rows")
        plain = {key: getattr(self, key) for key in keys}
        return {**plain, "by_position": [None if math.isnan(value) else value for value in self.by_position.tolist()]}

    def text(self) -> str:
        line = f"{self.name:15} {fixed(self.average)}  {self.says}"
        if self.low is not None and self.high is not None:
            line += f"  [{fixed(self.low)}, {fixed(self.high)}], simulated on {self.rows} rows"
        return line


@dataclass(frozen=True)
class Floors:
    """The floors of one task at one length, and what is not known."""

    task: str
    length: int
    floors: tuple[Floor, ...]
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Floor:
        for floor in self.floors:
            if floor.name == name:
                return floor
        raise BadInput(f"{self.task} has no floor {name!r}; it has {', '.join(floor.name for floor in self.floors)}")

    @property
    def names(self) -> list[str]:
        return [floor.name for floor in self.floors]

    def to_dict(self) -> dict[str, Any]:
        told = [floor.to_dict() for floor in self.floors]
        return {"task": self.task, "length": self.length, "floors": told, "notes": list(self.notes)}

    def text(self) -> str:
        """A line for each floor: guesses, then what is none."""
        guesses = [floor.text() for floor in self.floors if floor.guess]
        sums = [floor.text() for floor in self.floors if not floor.guess]
        heading = ["not guesses, for they keep a count or a sum of all inputs:"] if sums else []
        return "\n".join([*guesses, *heading, *sums, *(f"note: {note}" for note in self.notes)])


def floors(task: Task, length: int, window: int = 4) -> Floors:
    """The floors of a task for sequences of this length, asked where the task asks; `window` is the widest taken."""
    check_size(length, 1, 0, 0)
    if window < 1:
        raise BadInput(f"window {window} should be at least 1")
    return FloorMaker(task, length, window).made()


@functools.lru_cache(maxsize=256)
def position_floor(task: Task, length: int) -> Floor:
    """What the best answer for each position scores. The other floors, some of them costly, are not made."""
    return next(floor for floor in FloorMaker(task, length, window=1).gather() if floor.name == "position")


@functools.lru_cache(maxsize=1024)
def end_floor(task: Task, length: int, positions: int) -> float | None:
    """What the best answer for each position scores over the last ones; None where nothing is asked there.

    >>> import statetrack as st
    >>> round(end_floor(st.task("txc"), 64, 32), 3), round(end_floor(st.task("fsm"), 64, 32), 3)
    (0.5, 1.0)
    """
    by_position = position_floor(task, length).by_position[-positions:]
    known = by_position[np.isfinite(by_position)]
    return float(known.mean()) if len(known) else None


class FloorMaker:
    """Gathers the floors of one task."""

    def __init__(self, task: Task, length: int, window: int) -> None:
        self.task, self.length, self.window = task, length, min(window, length)
        self.facts = task.facts or TaskFacts()
        self.notes: list[str] = []

    def made(self) -> Floors:
        return Floors(self.task.name, self.length, tuple(self.gather()), tuple(self.notes))

    def gather(self) -> Iterator[Floor]:
        from statetrack.tasks.groups.task import GroupTask

        if isinstance(self.task, GroupTask):
            from statetrack.theory.floors import groups

            yield from groups.gather(self, self.task)
        elif self.facts.ups is not None:
            yield from self.of_balance(float(shares(self.task)[self.facts.ups].sum()))
        elif isinstance(self.task, FiniteTask) and (chain := process(self.task)) is not None:
            yield from self.of_process(chain.merged())
        else:
            yield from self.simulated()

    def floor(self, name: str, right: Floats, asked: Floats | float = 1.0, says: str = "") -> Floor:
        """A floor from P(asked and right) and P(asked) at every position."""
        asked = np.broadcast_to(asked, right.shape).astype(float)
        if self.task.ask == "end":
            asked = np.where(np.arange(len(asked)) == len(asked) - 1, asked, 0.0)
        by_position = np.divide(right, asked, out=np.full(len(right), np.nan), where=asked > 0)
        by_position = np.minimum(by_position, 1.0)  # sums of probabilities may end at 1 + 1e-16
        total = asked.sum()
        average = float((by_position[asked > 0] * asked[asked > 0]).sum() / total) if total else float("nan")
        return Floor(name, says or SAYS[name], by_position, average)

    def window_floor(self, width: int, right: Floats, asked: Floats | float = 1.0) -> Floor:
        return self.floor("window", right, asked, f"the best answer for each (last {plural(width, 'input')}, t)")

    def constant(self, by_class: Floats) -> Floats:
        """P(asked and right) of the best single answer, from P(y_t = c), for the positions that are asked."""
        counted = by_class[-1:] if self.task.ask == "end" else by_class
        return by_class[:, int(counted.sum(axis=0).argmax())]

    def of_process(self, chain: MarkovChain) -> Iterator[Floor]:
        laws = guessing.state_laws(chain, self.length)
        by_class = guessing.classes(chain, laws)
        asked = by_class.sum(axis=1)
        yield self.floor("constant", self.constant(by_class), asked)
        yield self.floor("position", by_class.max(axis=1), asked)
        if chain.states * chain.symbols * self.length > WINDOW_WORK:
            self.notes.append("input, window: too many states and symbols to sum over")
        else:
            yield self.floor("input", guessing.from_window(chain, laws, 1), asked)
            if (width := self.affordable(chain)) > 1:
                yield self.window_floor(width, guessing.from_window(chain, laws, width), asked)
        counts = guessing.from_counts(chain, self.length)
        if counts is None:
            self.notes.append("counts: too many counts of symbols to sum over at this length")
        else:
            yield self.floor("counts", counts, asked)
        yield from self.of_parity(chain)

    def affordable(self, chain: MarkovChain) -> int:
        width = self.window
        while width > 1 and chain.states * chain.symbols**width * self.length > WINDOW_WORK:
            width -= 1
        return width

    def of_parity(self, chain: MarkovChain) -> Iterator[Floor]:
        """Two states that one of two equally frequent symbols swaps and the other keeps."""
        swaps = chain.states == 2 and sorted(chain.steps.T.tolist()) == [[0, 1], [1, 0]]
        if not swaps or not np.array_equal(chain.answers, [0, 1]):
            return
        if np.allclose(chain.law, 0.5):
            yield self.floor("linear logit", linear_logit(self.length))
        else:
            self.notes.append("linear logit: known for equally frequent zeros and ones only")

    def of_balance(self, p: float) -> Iterator[Floor]:
        one = majority.answer_one(self.length, p)
        by_class = np.column_stack([1 - one, one])
        yield self.floor("constant", self.constant(by_class))
        yield self.floor("position", by_class.max(axis=1))
        yield self.floor("input", majority.from_window(self.length, p, 1))
        if self.window > 1:
            yield self.window_floor(self.window, majority.from_window(self.length, p, self.window))
        yield self.floor("counts", np.ones(self.length))

    def simulated(self) -> Iterator[Floor]:
        self.notes.append("simulated: each answer was chosen on one half of the rows and scored on the other")
        for name, scored in simulation.strategies(self.task, self.length).items():
            low, high = scored.interval
            says = SAYS[name] if name != "input" else "the better of position and x_t, for x_t positions by doubling"
            yield Floor(name, says, scored.by_position, scored.average, False, low, high, scored.rows)
        self.notes.append("window: not given, the windows are too many to simulate")
        if self.facts.counts:
            yield self.floor("counts", np.ones(self.length), says="the answer is a function of the counts")
        else:
            self.notes.append("counts: not given, the counts are too many to simulate")


def linear_logit(length: int) -> Floats:
    """The best accuracy of sign(w x + b) on t = 1..length fair bits' parity: 1/2 + C(t-1, floor((t-1)/2)) / 2^t."""
    values, central = [], 1.0  # C(s, floor(s/2)) / 2^s for s = t - 1
    for s in range(length):
        values.append(0.5 + central / 2)
        central *= (s + 1) / (s + 2) if s % 2 == 0 else 1.0
    return np.array(values)
