"""Which inputs come: the probability of every symbol in every state of a task's automaton.

Most tasks draw every symbol independently, with the shares of `symbol_weights`. Two draw what may follow: Dyck's
brackets depend on what is open, and modular arithmetic takes numbers and operators in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.tasks.base import Task
from statetrack.tasks.finite import NOTHING, Automaton, FiniteTask

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MarkovChain:
    """A Markov chain with answers: from state q the symbol a comes with probability law[q, a], to steps[q, a].

    `independent` says that the symbols do not depend on the state.
    """

    steps: NDArray[np.int32]
    answers: NDArray[np.int32]
    law: Floats
    independent: bool

    @property
    def states(self) -> int:
        return len(self.steps)

    @property
    def symbols(self) -> int:
        return self.steps.shape[1]

    def merged(self) -> MarkovChain:
        """Symbols that lead to the same state from everywhere become one, where symbols are independent.

        Nothing that can be guessed changes: which of two such symbols came says nothing about the state.
        """
        if not self.independent:
            return self
        steps, which = np.unique(self.steps, axis=1, return_inverse=True)
        shares = np.bincount(which.ravel(), weights=self.law[0], minlength=steps.shape[1]).astype(float)
        kept = shares > 0
        law = np.broadcast_to(shares[kept], (self.states, int(kept.sum())))
        return MarkovChain(np.ascontiguousarray(steps[:, kept]), self.answers, law, True)

    def commutes(self) -> bool:
        """Whether the order of the symbols never matters."""
        return all(np.array_equal(a[b], b[a]) for a, b in combinations(self.steps.T, 2))

    def forgets(self) -> bool:
        """Whether inputs as they come wipe out the past: whatever came before, the last ones tell the state in the end.

        So it is where, of any two states that inputs of one length lead to, inputs that may follow the first make one
        state of both, or could not have followed the other.

        >>> import statetrack as st
        >>> [process(st.task(name)).forgets() for name in ("flip_flop", "txc")]
        [True, False]
        """
        comes = self.law > 0
        apart, settled = self._apart(), np.eye(self.states, dtype=bool)
        while not settled[apart].all():
            before = settled.sum()
            for a in range(self.symbols):
                to = self.steps[:, a]
                settled |= comes[:, [a]] & (settled[np.ix_(to, to)] | ~comes[:, a])
            if settled.sum() == before:
                return False
        return True

    def _apart(self) -> NDArray[np.bool_]:
        """The pairs of states that inputs of one length lead to."""
        leads = np.zeros((self.states, self.states), np.float32)
        for a in range(self.symbols):
            comes = self.law[:, a] > 0
            leads[np.flatnonzero(comes), self.steps[comes, a]] = 1
        pairs = np.zeros((self.states, self.states), bool)
        pairs[0, 0] = True
        before = 0
        while before < pairs.sum() < pairs.size:
            before = pairs.sum()
            pairs |= leads.T @ pairs.astype(np.float32) @ leads > 0
        return pairs


def shares(task: Task) -> Floats:
    """The share of every symbol, adding up to one."""
    weights = task.symbol_weights
    given = np.ones(task.inputs) if weights is None else np.asarray(weights, float)
    return given / given.sum()


def process(task: FiniteTask) -> MarkovChain | None:
    """The task's automaton with the law of its inputs; None for a task that draws by a rule unknown here."""
    from statetrack.tasks.machines.dyck import Dyck
    from statetrack.tasks.machines.modular_arithmetic import ModularArithmetic

    automaton = task.automaton
    if isinstance(task, Dyck):
        return MarkovChain(automaton.steps, automaton.answers, _brackets(task, automaton), False)
    if isinstance(task, ModularArithmetic):
        return MarkovChain(automaton.steps, automaton.answers, _terms(task, automaton), False)
    if type(task).draw is not Task.draw:
        return None
    smallest = automaton.minimised()
    law = np.broadcast_to(shares(task), smallest.steps.shape)
    return MarkovChain(smallest.steps, smallest.answers, law, True)


def _brackets(task: Any, automaton: Automaton) -> Floats:
    """Opening with probability p (1 where nothing is open, 0 at full depth), closing right or, with `wrong`, not."""
    kinds, innermost = task.kinds, automaton.answers - 1
    broken = innermost == kinds
    full = np.all(automaton.answers[automaton.steps[:, :kinds]] == kinds + 1, axis=1)
    opening = np.where(innermost < 0, 1.0, np.where(full, 0.0, task.p))
    law = np.zeros(automaton.steps.shape)
    law[:, :kinds] = opening[:, None] / kinds
    for kind in range(kinds):
        wrong = task.wrong / max(1, kinds - 1)
        law[:, kinds + kind] = (1 - opening) * np.where(innermost == kind, 1 - task.wrong, wrong)
    law[broken] = 1 / (2 * kinds)
    return law


def _terms(task: Any, automaton: Automaton) -> Floats:
    """A number where one may stand, an operator after a number."""
    given = np.asarray(task.weights or (1.0,) * task.inputs)
    numbers, operators = given.copy(), given.copy()
    numbers[task.m :] = 0
    operators[: task.m] = 0
    after_number = (automaton.answers != NOTHING)[:, None]
    return np.where(after_number, operators / operators.sum(), numbers / numbers.sum())
