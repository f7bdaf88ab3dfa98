"""Floors of group tasks, by algebra.

The product after t inputs is a random walk on the group. If every element comes equally often, the product is uniform
from the first input on and independent of the last t-1 inputs, so every strategy that sees fewer than all inputs
scores 1/|G|. For other inputs, with P_s the law of the walk after s steps: a window w leaves P_{t-w} unknown,
whatever is seen, so its best guess scores max P_{t-w}.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from statetrack.tasks.groups.task import GroupTask
from statetrack.theory.floors import guessing
from statetrack.theory.floors.markov import MarkovChain

if TYPE_CHECKING:
    from statetrack.theory.floors.strategies import Floor, FloorMaker

MOVES = 5 * 10**6
"""Elements times letters of the walks that are followed."""


def gather(maker: FloorMaker, task: GroupTask) -> Iterator[Floor]:
    """The floors of a group task."""
    group, length = task.group_object, maker.length
    yield maker.floor("uniform", np.full(length, 1 / group.order))
    if task.over == "elements" and len(set(task.weights)) <= 1:
        yield from _uniform(maker, task)
    elif group.order * len(task.letters) <= MOVES:
        yield from _walk(maker, task)
    else:
        maker.notes.append("constant and others: too many elements and weights to follow the walk")


def _uniform(maker: FloorMaker, task: GroupTask) -> Iterator[Floor]:
    group, length = task.group_object, maker.length
    guess = np.full(length, 1 / group.order)
    seen = np.where(np.arange(length) < 1, 1.0, guess)
    derived = group.derived_series[1].order if len(group.derived_series) > 1 else group.order
    yield maker.floor("constant", guess)
    yield maker.floor("position", guess)
    yield maker.floor("input", seen)
    if maker.window > 1:
        yield maker.window_floor(maker.window, np.where(np.arange(length) < maker.window, 1.0, guess))
    yield maker.floor("last element", seen)
    yield maker.floor("abelianisation", np.full(length, 1 / derived))
    yield from _counts(maker, task)


def _counts(maker: FloorMaker, task: GroupTask) -> Iterator[Floor]:
    if task.group_object.is_abelian:
        yield maker.floor("counts", np.ones(maker.length))
    else:
        maker.notes.append("counts: at least what the abelianisation gives, for counts decide the coset of G'")


def _walk(maker: FloorMaker, task: GroupTask) -> Iterator[Floor]:
    process = _process(task)
    laws = guessing.state_laws(process, maker.length)
    cosets = task.group_object.abelianisation.cosets
    most = laws.max(axis=1)
    yield maker.floor("constant", maker.constant(laws[1:]))
    yield maker.floor("position", most[1:])
    yield maker.floor("input", most[:-1])
    if maker.window > 1:
        unseen = np.maximum(np.arange(1, maker.length + 1) - maker.window, 0)
        yield maker.window_floor(maker.window, most[unseen])
    yield maker.floor("last element", laws[:-1, 0])
    within = [sum(law[cosets == coset].max() for coset in range(int(cosets.max()) + 1)) for law in laws[1:]]
    yield maker.floor("abelianisation", np.array(within))
    counted = guessing.from_counts(process, maker.length)
    if counted is None:
        yield from _counts(maker, task)
    else:
        yield maker.floor("counts", counted)


def _process(task: GroupTask) -> MarkovChain:
    """The walk as a process whose symbols are the letters."""
    order = task.group_object.order
    everyone = np.arange(order)
    steps = np.column_stack([task.group_object.then(everyone, letter) for letter in task.letters.tolist()])
    shares = np.asarray(task.weights or (1.0,) * len(task.letters))
    law = np.broadcast_to(shares / shares.sum(), steps.shape)
    return MarkovChain(steps.astype(np.int32), everyone.astype(np.int32), law, True).merged()
