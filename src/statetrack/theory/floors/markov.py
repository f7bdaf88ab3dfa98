"""Which inputs come: the probability of every symbol in every state of a task's automaton.

Most tasks draw every symbol independently, with the shares of `symbol_weights`. Some draw what may follow, and have a
`law` of their own: Dyck's brackets depend on what is open, and modular arithmetic takes numbers and operators in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from statetrack.tasks.base import Task
from statetrack.tasks.finite import FiniteTask

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
    own_law = task.law()
    if own_law is not None:
        return MarkovChain(task.automaton.steps, task.automaton.answers, own_law, False)
    if type(task).draw is not Task.draw:
        return None
    smallest = task.automaton.minimised()
    law = np.broadcast_to(shares(task), smallest.steps.shape)
    return MarkovChain(smallest.steps, smallest.answers, law, True)
