"""The best that can be guessed about the answers of a Markov chain from little: exact sums over all inputs.

If all that a guesser sees at position t is z, its best accuracy there is  sum over z of max over c of P(z, y_t = c).
Every function here gives these sums for t = 1..T, not divided by P(an answer is asked at t), which `asked` gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.tasks.finite import NOTHING
from statetrack.theory.floors.markov import Floats, MarkovChain

COUNT_WORK = 10**9
"""Steps of the sum over all counts of symbols beyond which it is not made."""
SAME = 1e-15  # two laws of the state that differ by less are one


def state_laws(process: MarkovChain, length: int) -> Floats:
    """P(state = q after t inputs), t = 0..length, one row each."""
    laws = np.zeros((length + 1, process.states))
    laws[0, 0] = 1
    targets = process.steps.ravel()
    for t in range(length):
        flow = (laws[t][:, None] * process.law).ravel()
        laws[t + 1] = np.bincount(targets, weights=flow, minlength=process.states)
    return laws


def classes(process: MarkovChain, laws: Floats) -> Floats:
    """P(y_t = c), t = 1..T, one row each; a row adds up to the probability that an answer is asked."""
    asked = process.answers != NOTHING
    count = int(process.answers.max()) + 1
    rows = [np.bincount(process.answers[asked], weights=law[asked], minlength=count) for law in laws[1:]]
    return np.array(rows)


def from_window(process: MarkovChain, laws: Floats, width: int) -> Floats:
    """What (x_{t-width+1}, ..., x_t) and t say. A window that reaches back to the start says everything."""
    ends, probability = _words(process, width)
    words = ends.shape[1]
    answers = process.answers[ends]
    count = int(process.answers.max()) + 1
    asked = answers != NOTHING
    cells = (np.arange(words) * count + np.where(asked, answers, 0)).ravel()
    weight = np.where(asked, probability, 0.0)

    def best(law: Floats) -> float:
        joint = np.bincount(cells, weights=(law[:, None] * weight).ravel(), minlength=words * count)
        return float(joint.reshape(words, count).max(axis=1).sum())

    whole = classes(process, laws[: width + 1]).sum(axis=1)
    return np.concatenate([whole[: width - 1], _along(laws[: len(laws) - width], best)])[: len(laws) - 1]


def _words(process: MarkovChain, width: int) -> tuple[NDArray[Any], Floats]:
    """Where every word of `width` symbols leads from every state, and how probable it is there."""
    ends: NDArray[Any] = np.arange(process.states)[:, None]
    probability = np.ones((process.states, 1))
    for _ in range(width):
        probability = (probability[:, :, None] * process.law[ends]).reshape(process.states, -1)
        ends = process.steps[ends].reshape(process.states, -1)
    return ends, probability


def _along(laws: Floats, best: Callable[[Floats], float]) -> Floats:
    """best(law) for every row; a law that came one or two rows before is not worked out again."""
    values = np.empty(len(laws))
    for t, law in enumerate(laws):
        before = next((s for s in (1, 2) if t >= s and np.abs(law - laws[t - s]).max() < SAME), 0)
        values[t] = values[t - before] if before else best(law)
    return values


def from_counts(process: MarkovChain, length: int) -> Floats | None:
    """What the number of times that each symbol came says; None where there are too many counts to sum over.

    Where symbols commute the counts say everything. Elsewhere joint[c_1, ..., c_{k-1}, q] is the probability of the
    counts of the first k-1 symbols and the state; the last symbol's count is what is left of t.
    """
    if process.commutes():
        return classes(process, state_laws(process, length)).sum(axis=1)
    cells = (length + 1) ** (process.symbols - 1) * process.states
    if cells * process.symbols * length > COUNT_WORK:
        return None
    joint = np.zeros([length + 1] * (process.symbols - 1) + [process.states])
    joint[(0,) * process.symbols] = 1
    sums = np.empty(length)
    for t in range(length):
        joint = _one_more(process, joint)
        sums[t] = _best_in_each(process, joint)
    return sums


def _one_more(process: MarkovChain, joint: Floats) -> Floats:
    after = np.zeros_like(joint)
    for symbol in range(process.symbols):
        moved = joint * process.law[:, symbol]
        if symbol < process.symbols - 1:  # its count goes up by one; no count can reach past the end
            moved = np.roll(moved, 1, axis=symbol)
        np.add.at(np.moveaxis(after, -1, 0), process.steps[:, symbol], np.moveaxis(moved, -1, 0))
    return after


def _best_in_each(process: MarkovChain, joint: Floats) -> float:
    """For all counts the probability of the best answer, added up."""
    asked = np.flatnonzero(process.answers != NOTHING)
    sorted_by_answer = asked[np.argsort(process.answers[asked], kind="stable")]
    begins = np.unique(process.answers[sorted_by_answer], return_index=True)[1]
    by_answer = np.add.reduceat(joint[..., sorted_by_answer], begins, axis=-1)
    return float(by_answer.max(axis=-1).sum())
