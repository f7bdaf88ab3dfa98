"""A search for a word that breaks a network, directed by its state: families of words are not enough.

All letters follow each of the words so far, and of what comes out three kinds stay: words after which the right answer
has the least margin; words whose state is furthest from what it usually is in that state of the task, in one number;
and some at random. A network that is right on a million random steps can be broken by a dozen letters that push one
part of its state after another out of its place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from statetrack.errors import BadInput
from statetrack.models import SequenceModel
from statetrack.models.sequence import State
from statetrack.results.evaluations import BreakingWord
from statetrack.tasks.base import Task
from statetrack.tasks.finite import NOTHING, Automaton, explore
from statetrack.training.breaking import WordTest, shortened
from statetrack.training.words import letters_of

BEAM = "beam"  # the family of the words that are found here
KEPT, RANDOM = 96, 32  # words that stay, of each of the two kinds, and at random
AT_ONCE = 2 * KEPT + RANDOM
ROWS, STEPS = 64, 64  # random words that show what the state usually is
MOST_STEPS = 256
LEAST = 0.3  # of the largest number of a state: smaller ones say little about where it belongs
SHORTENING = 2**16  # tokens
MACHINE_STATES, MACHINE_INPUTS = 4096, 1024  # of a task that is written out for a search


@dataclass(frozen=True)
class Usual:
    """The mean state in every state of the task, flat, and in which numbers it says something."""

    means: NDArray[np.float32]
    counted: NDArray[np.bool_]

    def agreement(self, states: NDArray[np.float32], at: NDArray[np.int64]) -> NDArray[np.float32]:
        """The least of all numbers as a share of what it usually is: 1 as usual, below 0 on the other side."""
        means, counted = self.means[at], self.counted[at]
        shares = np.where(counted, states * means / np.maximum(means * means, 1e-12), 1.0)
        return np.asarray(shares.min(axis=1))


class BeamSearch:
    """One network, its task, and the task's automaton."""

    def __init__(
        self, task: Task, model: SequenceModel, machine: Automaton, seed: int = 0, kept: int = KEPT, drawn: int = RANDOM
    ) -> None:
        self.task, self.model, self.machine, self.kept, self.drawn = task, model, machine, kept, drawn
        self.letters = letters_of(task).astype(np.int64)
        self.device = next((p.device for p in model.parameters()), torch.device("cpu"))
        self.rng = np.random.default_rng(seed)

    @torch.no_grad()
    def usual(self) -> Usual:
        at, state = np.zeros(ROWS, np.int64), self.model.initial_state(ROWS, self.device)
        total = np.zeros((self.machine.states, len(flat(state)[0])), np.float64)
        count = np.zeros(self.machine.states)
        for _ in range(STEPS):
            tokens = self.rng.choice(self.letters, ROWS)
            _, state = self.model.step(torch.from_numpy(tokens).to(self.device), state)
            at = self.machine.steps[at, tokens].astype(np.int64)
            np.add.at(total, at, flat(state))
            np.add.at(count, at, 1)
        means = (total / np.maximum(count, 1)[:, None]).astype(np.float32)
        return Usual(means, np.abs(means) > LEAST * np.abs(means).max(initial=1e-12))

    def search(self, tokens: int) -> list[int] | None:
        """A word that is answered wrong, or None where so many tokens show none."""
        return next(iter(self.wrong(tokens, MOST_STEPS, 1)), None)

    @torch.no_grad()
    def wrong(self, tokens: int, steps: int, most: int) -> list[list[int]]:
        """Words of at most so many steps that are answered wrong, the worst of a step first; none is the beginning of
        another.
        """
        usual, letters = self.usual(), self.letters
        found: list[list[int]] = []
        words = np.zeros((1, 0), np.int64)
        at, state = np.zeros(1, np.int64), self.model.initial_state(1, self.device)
        while tokens > 0 and words.shape[1] < steps and len(words):
            tokens -= len(words) * len(letters)
            parents = np.repeat(np.arange(len(words)), len(letters))
            added = np.tile(letters, len(words))
            logits, state = self.model.step(
                torch.from_numpy(added).to(self.device), tuple(part[parents] for part in state)
            )
            at = self.machine.steps[at[parents], added].astype(np.int64)
            words = np.concatenate([words[parents], added[:, None]], axis=1)
            margins = margins_of(logits, self.machine.answers[at])
            worst = np.argsort(margins, kind="stable")[: np.count_nonzero(margins < 0)]
            found += words[worst[: most - len(found)]].tolist()
            if len(found) == most:
                break
            right = np.flatnonzero(margins >= 0)
            kept = right[self._kept(margins[right], usual.agreement(flat(state)[right], at[right]))]
            words, at, state = words[kept], at[kept], tuple(part[kept] for part in state)
        return found

    def _kept(self, margins: NDArray[np.float32], agreement: NDArray[np.float32]) -> NDArray[np.int64]:
        least = [np.argsort(score, kind="stable")[: self.kept] for score in (margins, agreement)]
        drawn = self.rng.choice(len(margins), min(self.drawn, len(margins)), replace=False)
        return np.unique(np.concatenate([*least, drawn]))


def machine_to_search(task: Task, model: SequenceModel) -> Automaton | None:
    """The task as an automaton that asks only for what the data may ask for, where a beam can search this network: one
    with a state whose rows can be picked, on a task of few states that is asked at every position. Else None.
    """
    if task.ask != "every" or not model.recurrent or not model.state_shapes() or task.inputs > MACHINE_INPUTS:
        return None
    state = model.initial_state(2)
    if [tuple(part.shape) for part in state] != [(2, *shape) for shape in model.state_shapes()]:
        return None  # somebody's own module may have the batch elsewhere
    try:
        machine = explore(task.start(), task.step, task.answer, task.inputs, task.name, MACHINE_STATES)
    except BadInput:  # more states than that
        return None
    return replace(machine, answers=np.where(np.isin(machine.answers, task.never_due), NOTHING, machine.answers))


def flat(state: State) -> NDArray[np.float32]:
    """(rows, numbers)."""
    return torch.cat([part.flatten(1) for part in state], dim=1).float().cpu().numpy()


def margins_of(logits: Tensor, due: NDArray[np.int32]) -> NDArray[np.float32]:
    """By how much the right class is above the others; infinite where nothing is asked, -infinite for no number."""
    scores = logits.float().cpu().numpy()
    rows = np.arange(len(due))
    own = scores[rows, np.maximum(due, 0)]
    scores[rows, np.maximum(due, 0)] = -np.inf
    margins = np.where(np.isnan(own), -np.inf, own - scores.max(axis=1))
    return np.where(due < 0, np.inf, np.nan_to_num(margins, nan=-np.inf, posinf=np.inf, neginf=-np.inf)).astype(
        np.float32
    )


def broken_briefly(task: Task, model: SequenceModel, length: int, tokens: int, seed: int) -> BreakingWord | None:
    """`broken_by_beam` with as narrow a beam as so many tokens allow over the length that it was trained at; None as
    well where the network cannot be searched.
    """
    machine = machine_to_search(task, model)
    if machine is None:
        return None
    room = max(3, tokens // (len(letters_of(task)) * length))
    drawn = min(RANDOM, max(1, room // 7))
    return broken_by_beam(task, model, machine, length, tokens, seed, min(KEPT, (room - drawn) // 2), drawn)


def broken_by_beam(
    task: Task, model: SequenceModel, machine: Automaton, length: int, tokens: int, seed: int = 0,
    kept: int = KEPT, drawn: int = RANDOM,
) -> BreakingWord | None:  # fmt: skip
    """The word that a beam search finds, made short and run alone; None where there is none."""
    word = BeamSearch(task, model.eval(), machine, seed, kept, drawn).search(tokens)
    if word is None:
        return None
    test, pair = WordTest(task, model, length), (tuple(word), (word[-1],))
    found = test.alone(pair, len(word), BEAM)
    return shortened(test, pair, *found, SHORTENING) if found else None
