"""Which states the data tell apart, for tasks in which some words never come or some states are not asked about.

The smallest automaton also tells states apart by words that never come (a bracket that cannot stand there) and by
whether anything is asked. Two states have to be told apart only if some word that comes in both leads to two different
answers: they are *in conflict*.

>>> import statetrack as st
>>> conflicts(st.task("dyck[kinds=1,depth=1]").automaton, st.task("dyck[kinds=1,depth=1]").law())
Conflicts(lasting=False, reach=1, certain=True)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.tasks.finite import NOTHING, Automaton

Pairs = NDArray[np.bool_]
LARGEST = 1000
"""States whose pairs are looked at."""


@dataclass(frozen=True)
class Conflicts:
    """What has to be told apart.

    lasting   whether an endless word keeps some two states in conflict
    reach     how many last inputs decide the answer; None when no number does
    certain   whether all states that an endless word keeps apart are in conflict, so that what the smallest automaton
              cycles through has to be told apart
    """

    lasting: bool
    reach: int | None
    certain: bool


def is_partial(automaton: Automaton, law: NDArray[Any] | None) -> bool:
    """Whether some states are not asked about, or some inputs never come in some states."""
    return bool((automaton.answers == NOTHING).any()) or (law is not None and not (law > 0).all())


def conflicts(automaton: Automaton, law: NDArray[Any] | None) -> Conflicts | None:
    """None for an automaton with too many states."""
    come = np.ones(automaton.steps.shape, bool) if law is None else law > 0
    kept = _reached(automaton.steps, come)
    if len(kept) > LARGEST:
        return None
    number = np.full(automaton.states, -1)
    number[kept] = np.arange(len(kept))
    come = come[kept]
    steps = np.where(come, number[automaton.steps[kept]], 0)
    answers = automaton.answers[kept]
    asked = answers != NOTHING
    now = asked[:, None] & asked[None, :] & (answers[:, None] != answers[None, :])

    def before(pairs: Pairs) -> Pairs:
        """The pairs that some input that comes in both takes to one of these."""
        found = np.zeros_like(pairs)
        for symbol in range(steps.shape[1]):
            both = come[:, None, symbol] & come[None, :, symbol]
            found |= both & pairs[np.ix_(steps[:, symbol], steps[:, symbol])]
        return found

    conflict = _settled(now, lambda pairs: pairs | before(pairs))
    lasting = bool(_settled(conflict, lambda pairs: pairs & before(pairs)).any())
    apart = _settled(~np.eye(len(kept), dtype=bool), lambda pairs: pairs & before(pairs))
    return Conflicts(lasting, None if lasting else _reach(now, before), not (apart & ~conflict).any())


def _reached(steps: NDArray[Any], come: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The states that words lead to which come."""
    seen = np.zeros(len(steps), bool)
    new = np.array([0])
    while len(new):
        seen[new] = True
        following = np.unique(steps[new][come[new]])
        new = following[~seen[following]]
    return np.flatnonzero(seen)


def _settled(pairs: Pairs, change: Callable[[Pairs], Pairs]) -> Pairs:
    """What is left, or gathered, when nothing changes any more."""
    while True:
        after = change(pairs)
        if np.array_equal(after, pairs):
            return pairs
        pairs = after


def _reach(now: Pairs, before: Callable[[Pairs], Pairs]) -> int:
    """The least n such that no n inputs lead two states to different answers; there is one, as none last."""
    inputs = 0
    while now.any():
        now, inputs = before(now), inputs + 1
    return inputs
