"""What a state should tell: the task's true state, where the task has few of them, and a running count."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from statetrack.errors import BadInput
from statetrack.tasks.base import Ints, Task
from statetrack.tasks.finite import NOTHING, Automaton, explore
from statetrack.tasks.scan import scan

MOST_STATES = 256  # of a machine that counts as small
MOST_CLASSES = 128  # true states, or answers, that a probe is asked to tell apart


@functools.lru_cache(maxsize=16)
def minimal_machine(task: Task) -> Automaton | None:
    """The task's smallest automaton; None where it has too many states, or no end of them.

    >>> import statetrack as st
    >>> minimal_machine(st.task("fsm")).states, minimal_machine(st.task("rtc"))
    (4, None)
    """
    try:
        whole = explore(task.start(), task.step, task.answer, task.inputs, task.name, most=MOST_STATES)
    except BadInput:
        return None
    return whole.minimised()


@dataclass(frozen=True)
class TrueStates:
    """The true states of a task: those of its smallest automaton, or its answers where that is not small."""

    task: Task
    machine: Automaton | None
    classes: int
    says: str

    @classmethod
    def of(cls, task: Task) -> TrueStates:
        machine = minimal_machine(task)
        if machine is not None and machine.states <= MOST_CLASSES:
            return cls(task, machine, machine.states, "the true state")
        return cls(task, machine, task.outputs, "the answer")

    @property
    def by_state(self) -> bool:
        return self.says == "the true state"

    def states(self, inputs: Ints, targets: Ints) -> NDArray[np.int32]:
        """The true state after every input, (rows, length)."""
        if self.by_state and self.machine is not None:
            return scan(self.machine.steps, inputs, 0)
        return targets

    def label(self, state: int) -> str:
        """A true state as a person would write it: its number, and its answer where states share answers."""
        if not self.by_state or self.machine is None:
            return self.task.answer_text(state)
        answer = int(self.machine.answers[state])
        said = "nothing asked" if answer == NOTHING else self.task.answer_text(answer)
        alone = int((self.machine.answers == answer).sum()) == 1
        return said if alone and answer != NOTHING else f"state {state} ({said})"


def running_count(inputs: Ints, symbols: int) -> NDArray[np.int64]:
    """How many inputs so far lie in the upper half of the alphabet: for bits, the ones.

    >>> running_count(np.array([[1, 0, 1]]), 2).tolist()
    [[1, 1, 2]]
    """
    counts: NDArray[np.int64] = np.cumsum(2 * inputs >= symbols, axis=1)
    return counts


def count_says(symbols: int) -> str:
    return "ones so far" if symbols == 2 else f"inputs of {(symbols + 1) // 2} and above so far"


def asked_everywhere(task: Task) -> Task:
    """The same rows, asked for the answer at every position: what the model would say had the row ended there."""
    return task if task.ask == "every" else task.with_parameters(ask="every")
