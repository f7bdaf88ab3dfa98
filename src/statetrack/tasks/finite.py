"""Tasks whose machine has few states: the table of its steps is written out once, and rows run through it at speed."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.errors import BadInput
from statetrack.tasks.base import Ints, Run, Task, between
from statetrack.tasks.scan import scan

MAX_STATES = 1_000_000
BITS = "Each input is a bit, 0 or 1."  # how the words of a task over {0, 1} begin
NOTHING = -1  # the answer of a state in which nothing is asked


@dataclass(frozen=True)
class Automaton:
    """States 0..n-1, 0 the start; `steps[state, symbol]` is the next state, `answers[state]` a class or NOTHING."""

    steps: NDArray[np.int32]
    answers: NDArray[np.int32]

    @property
    def states(self) -> int:
        return len(self.steps)

    def minimised(self) -> Automaton:
        """The smallest automaton with the same answers: Moore's refinement of states by answer, then by where they go.

        Unreachable states must be gone already, as they are after `explore`.
        """
        blocks = _numbered(self.answers[:, None])
        while True:
            finer = _numbered(np.column_stack([blocks, blocks[self.steps]]))
            if finer.max() == blocks.max():
                break
            blocks = finer
        kept = np.unique(blocks, return_index=True)[1]  # one state of each block
        return Automaton(blocks[self.steps[kept]], self.answers[kept])


def _numbered(rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """Equal rows get equal numbers, counted by first appearance, so that the start keeps the number 0."""
    _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[which.ravel()]


def explore(
    start: Hashable, step: Callable[[Any, int], Hashable], answer: Callable[[Any], int | None], symbols: int, name: str,
    most: int = MAX_STATES,
) -> Automaton:  # fmt: skip
    """Write out the machine's table by following every symbol from the start, states numbered as they are met."""
    numbers: dict[Hashable, int] = {start: 0}
    states, steps = [start], []
    for state in states:  # grows while it is read
        row = []
        for symbol in range(symbols):
            following = step(state, symbol)
            if following not in numbers:
                if len(states) >= most:
                    raise BadInput(f"{name} has more than {most} states")
                numbers[following] = len(states)
                states.append(following)
            row.append(numbers[following])
        steps.append(row)
    answers = [NOTHING if (given := answer(state)) is None else given for state in states]
    return Automaton(np.asarray(steps, np.int32).reshape(len(states), symbols), np.asarray(answers, np.int32))


@dataclass(frozen=True, kw_only=True)
class FiniteTask(Task):
    """A task that is a finite automaton. Unless a task overrides `run`, its states are the automaton's numbers."""

    @cached_property
    def automaton(self) -> Automaton:
        """The machine's table, as it was written down (not minimised)."""
        return explore(self.start(), self.step, self.answer, self.inputs, self.name)

    def law(self) -> NDArray[np.float64] | None:
        """The probability of every symbol in every state of the automaton; None where it is the same in all of them."""
        return None

    def run(self, inputs: Ints, state: Any = None) -> Run:
        begin = np.zeros(len(inputs), np.int32) if state is None else np.asarray(state, np.int32)
        states = scan(self.automaton.steps, inputs, begin)
        answers = self.automaton.answers[states]
        defined = answers != NOTHING
        return Run(np.where(defined, answers, 0), defined, states[:, -1] if inputs.shape[1] else begin)


@dataclass(frozen=True, kw_only=True)
class TableTask(FiniteTask):
    """A task that is given as an automaton: the table comes first, and its numbers are the states."""

    def step(self, state: int, symbol: int) -> int:
        return int(self.automaton.steps[state, symbol])

    def answer(self, state: int) -> int | None:
        answer = int(self.automaton.answers[state])
        return None if answer == NOTHING else answer


@dataclass(frozen=True, kw_only=True)
class ModuloTask(FiniteTask):
    """A place on a circle of `m` places, from place 0; an input moves on by as many as its number says."""

    m: int = between(2, 10_000, default=5)

    @property
    def outputs(self) -> int:
        return self.m

    def step(self, state: int, symbol: int) -> int:
        return (state + symbol) % self.m


@dataclass(frozen=True, kw_only=True)
class BinaryTask(Task):
    """A task over {0, 1}; `p` is the rate of ones in the data."""

    p: float = 0.5
    inputs = 2

    def check(self) -> None:
        super().check()
        self.check_range("p", 0, 1)

    @property
    def symbol_weights(self) -> tuple[float, ...] | None:
        return None if self.p == 0.5 else (1 - self.p, self.p)


@dataclass(frozen=True, kw_only=True)
class WeightedTask(Task):
    """A task over several symbols; `weights` are their shares in the data, one per symbol (empty: equal shares)."""

    weights: tuple[float, ...] = ()

    def check(self) -> None:
        super().check()
        check_weights(self.weights, self.inputs, self.label)

    @property
    def symbol_weights(self) -> tuple[float, ...] | None:
        return self.weights or None


def check_weights(weights: tuple[float, ...], symbols: int, name: str) -> None:
    """Weights must be one for each symbol, finite, not negative and not all zero."""
    if not weights:
        return
    if len(weights) != symbols:
        raise BadInput(f"{name}: {len(weights)} weights are given for {symbols} input symbols")
    if not all(weight >= 0 for weight in weights) or not 0 < sum(weights) < float("inf"):
        raise BadInput(f"{name}: weights should be finite, not negative and not all zero")
