"""Search the hard words for one after which a network answers wrong, and make it short.

Where only the end is asked about (ask=end), a word ends at the length trained on or at twice, four times, ... of that,
and only there its answer counts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from statetrack.errors import one_line
from statetrack.models import NO_ANSWER, SequenceModel, answers_of
from statetrack.models.independence import Peeks, piece, watched
from statetrack.models.sequence import State
from statetrack.results.evaluations import BreakingWord, OnWords
from statetrack.tasks.base import Ints, Run, Task
from statetrack.training.evaluate import GENERALISE, TEST_LOGITS, pass_rows, to_ids
from statetrack.training.memory import hand_back, ran_out_of_memory
from statetrack.training.words import Pair, PeriodicWords, Words, hard_words, judged, long_words, powers, shortest

TOKENS = {"cpu": 2**17, "cuda": 2**22}  # of one evaluation
ROWS = 512  # words at most that are run side by side
WINDOW = 64  # steps at first: most networks that fail do so early
CONFIRMED = 8  # of the shortest wrong words, how many are run alone until one is wrong there as well
SHARE = 4  # shortening takes at most this part of the budget

RIGHT = -1
Tick = Callable[[str], None]


@dataclass(frozen=True)
class FirstErrors:
    """For each word the position of its first wrong answer, or RIGHT, with both answers; whether anything was asked."""

    at: NDArray[np.int64]
    expected: NDArray[np.int64]
    given: NDArray[np.int64]
    asked: NDArray[np.bool_]

    @classmethod
    def none(cls, count: int) -> FirstErrors:
        return cls(np.full(count, RIGHT), np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, bool))

    @classmethod
    def joined(cls, parts: Sequence[FirstErrors]) -> FirstErrors:
        names = ("at", "expected", "given", "asked")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def note(self, rows: NDArray[np.intp], wrong: NDArray[np.bool_], said: Ints, due: Ints, begin: int) -> None:
        """Take over what these rows got wrong from the position `begin` on; what was wrong before stays."""
        new = wrong.any(axis=1) & (self.at[rows] == RIGHT)
        first = wrong[new].argmax(axis=1)
        self.at[rows[new]] = begin + first
        self.expected[rows[new]], self.given[rows[new]] = due[new, first], said[new, first]


class WordTest:
    """One network, its task, and the length it was trained at."""

    def __init__(self, task: Task, model: SequenceModel, length: int) -> None:
        self.task, self.model, self.length = task, model, length
        self.device = next((p.device for p in model.parameters()), torch.device("cpu"))
        self.rows = ROWS
        self.watched = watched(model, task.inputs)

    @property
    def most_steps(self) -> int | None:
        """How far it can be run: without a state of constant size as far as rows are tested."""
        positions = getattr(self.model, "positions", None)
        return positions if self.model.recurrent else min(GENERALISE[-1] * self.length, positions or 2**62)

    def first_errors(self, words: Words, steps: int) -> FirstErrors:
        """Where each word is first answered wrong within so many steps. Where memory runs out, fewer are run at a
        time.
        """
        done: list[FirstErrors] = []
        begin = 0
        while begin < len(words):
            window = min(steps, WINDOW) if self.model.recurrent else steps
            rows = min(self.rows, len(words) - begin, pass_rows(self.device, window, self.task.outputs))
            try:
                done.append(self._run(words.take(np.arange(begin, begin + rows)), steps))
                begin += rows
            except (RuntimeError, MemoryError) as error:
                if rows == 1 or not ran_out_of_memory(error):
                    raise
                self.rows = rows // 2
                hand_back(self.device)
        return FirstErrors.joined(done)

    @torch.no_grad()
    def _run(self, words: Words, steps: int) -> FirstErrors:
        """In windows of positions; a word that was wrong is run no further, where the state allows to leave it out."""
        self.model.eval()
        found, rows, machine = FirstErrors.none(len(words)), np.arange(len(words)), None
        state = self.model.initial_state(len(words), self.device) if self.model.recurrent else ()
        begin, end = 0, min(steps, WINDOW) if self.model.recurrent else steps
        while begin < steps:
            inputs = words.symbols(begin, end)
            run = self.task.run(inputs, machine)
            asked, machine = self.asked(run, begin, end), run.state
            said, state = self._answers(inputs[rows], state)
            due = run.targets[rows]
            found.asked[rows] |= asked[rows].any(axis=1)
            found.note(rows, asked[rows] & (said != due), said, due, begin)
            kept = found.at[rows] == RIGHT
            if not kept.any():
                break
            if not kept.all() and self._first_is_batch(state, len(rows)):
                rows, state = rows[kept], tuple(part[torch.from_numpy(kept).to(part.device)] for part in state)
            begin, end = end, min(steps, end + max(1, pass_rows(self.device, len(rows), self.task.outputs)))
        return found

    def _answers(self, inputs: Ints, state: State) -> tuple[Ints, State]:
        ids = to_ids(inputs, self.device)
        before = copy.deepcopy(state) if self.watched else ()
        logits, after = self.model.forward_from(ids, state) if self.model.recurrent else (self.model(ids), ())
        if self.watched:
            self.watched.check(logits, partial(piece, self.model, before) if self.model.recurrent else self.model, ids)
        return answers_of(logits).cpu().numpy(), after

    def _first_is_batch(self, state: State, rows: int) -> bool:
        """Whether words can be taken out of the state: somebody's own module may have the batch elsewhere."""
        shapes = self.model.state_shapes() if self.model.recurrent else []
        return [tuple(part.shape) for part in state] == [(rows, *shape) for shape in shapes]

    def asked(self, run: Run, begin: int, end: int) -> NDArray[np.bool_]:
        """Where the answers at the positions begin..end-1 count."""
        counts = judged(self.task, run)
        if self.task.ask == "end":
            times, rest = np.divmod(np.arange(begin, end) + 1, self.length)
            counts &= (rest == 0) & (times > 0) & (times & (times - 1) == 0)
        return counts

    def alone(self, pair: Pair, tokens: int, family: str) -> tuple[BreakingWord, int] | None:
        """The word up to its first wrong answer, and its tokens, run by itself; None where it is right."""
        found = self.first_errors(PeriodicWords(family, (pair,)), tokens)
        if found.at[0] == RIGHT:
            return None
        tokens, given = int(found.at[0]) + 1, int(found.given[0])
        word = BreakingWord(parts=powers(pair, tokens), family=family, expected=int(found.expected[0]),
                            given=None if given == NO_ANSWER else given)  # fmt: skip
        return word, tokens


def on_words(
    task: Task, model: SequenceModel, length: int, seed: int, budget: int | None = None, tick: Tick = lambda _: None
) -> OnWords:
    """Run a network on hard words, `budget` tokens at most, and keep the shortest that it answers wrong."""
    test = WordTest(task, model, length)
    kind = test.device.type
    tokens = max(length, min(TOKENS[kind], TEST_LOGITS[kind] // task.outputs)) if budget is None else budget
    asked_for = OnWords(seed=seed, budget=tokens)
    try:
        return _searched(test, asked_for, tick)
    except Peeks:
        raise
    except Exception as error:
        return replace(asked_for, reason=one_line(error))


def _searched(test: WordTest, asked_for: OnWords, tick: Tick) -> OnWords:
    words = hard_words(test.task, asked_for.budget, asked_for.seed, test.length, test.most_steps)
    wrong: list[tuple[int, Pair, str]] = []
    tried = tokens = failed = 0
    for each in words.families:
        tick(f"hard words: {each.family}")
        found = test.first_errors(each, words.steps)
        tried += int(found.asked.sum())
        tokens += int(np.where(found.at == RIGHT, words.steps, found.at + 1)[found.asked].sum())
        rows = np.flatnonzero(found.at != RIGHT)
        failed += len(rows)
        early = rows[np.argsort(found.at[rows], kind="stable")[:CONFIRMED]]
        wrong += [(at + 1, each.pair(row, at + 1), each.family) for row, at in zip(early, found.at[early].tolist())]
    breaking = _shortest_alone(test, sorted(wrong)[:CONFIRMED], asked_for.budget // SHARE)
    if breaking is None and tried and test.most_steps is None:
        tick("hard words: for long")
        breaking = _by_long_words(test, asked_for)
        tried, failed = (tried + 1, failed + 1) if breaking else (tried, failed)
    if breaking is None and tried:
        tick("hard words: a beam")
        breaking = _by_beam(test, asked_for)
        tried, failed = (tried + 1, failed + 1) if breaking else (tried, failed)
    return replace(
        asked_for, words=tried, tokens=tokens, longest=words.steps if tried else 0, wrong=failed, breaking=breaking,
    )  # fmt: skip


def _by_long_words(test: WordTest, asked_for: OnWords) -> BreakingWord | None:
    """What a few words show that are run for much longer than the others; a part of the budget once more."""
    words = long_words(test.task, asked_for.seed)
    steps = asked_for.budget // SHARE // max(1, len(words))
    if not len(words) or not steps:
        return None
    found = test.first_errors(words, steps)
    rows = np.flatnonzero(found.at != RIGHT)
    early = rows[np.argsort(found.at[rows], kind="stable")].tolist()
    wrong = [(int(found.at[row]) + 1, words.pair(row, int(found.at[row]) + 1), words.family) for row in early]
    return _shortest_alone(test, wrong, 0)


def _by_beam(test: WordTest, asked_for: OnWords) -> BreakingWord | None:
    """What a short search that is directed by the network's state finds. Like the shortening of a word it may run a
    part of the budget once more.
    """
    from statetrack.training.beams import broken_briefly  # which runs words as this module does

    tokens = asked_for.budget // SHARE
    return broken_briefly(test.task, test.model, test.length, tokens, asked_for.seed)


def _shortest_alone(test: WordTest, wrong: Sequence[tuple[int, Pair, str]], budget: int) -> BreakingWord | None:
    for tokens, pair, family in wrong:
        if (found := test.alone(pair, tokens, family)) is not None:
            return shortened(test, pair, *found, budget)
    return None


def shortened(test: WordTest, pair: Pair, word: BreakingWord, tokens: int, budget: int) -> BreakingWord:
    """Leave out letters of u and of v as long as what is left fails sooner; at most `budget` tokens are run."""
    while tokens > 1:
        tried = smaller(pair, tokens)[: budget // tokens]
        if not tried:
            return word
        budget -= len(tried) * tokens
        found = test.first_errors(PeriodicWords(word.family, tuple(tried)), tokens - 1)
        order = [row for row in np.argsort(found.at, kind="stable").tolist() if found.at[row] != RIGHT]
        for row in order[:CONFIRMED]:
            alone = test.alone(tried[row], int(found.at[row]) + 1, word.family)
            if alone is not None:
                pair, (word, tokens) = tried[row], alone
                break
        else:
            return word
    return word


def smaller(pair: Pair, tokens: int) -> list[Pair]:
    """The same without a part of u, long ones first, or without a letter of v.

    >>> smaller(((1, 2), (0, 3)), 9)
    [((), (0, 3)), ((2,), (0, 3)), ((1,), (0, 3)), ((1, 2), (3,)), ((1, 2), (0,))]
    """
    head, loop = pair[0][:tokens], pair[1]
    found, size = [], len(head)
    while size:
        found += [(head[:begin] + head[begin + size :], loop) for begin in range(0, len(head), size)]
        size //= 2
    if len(loop) > 1:
        found += [(head, loop[:place] + loop[place + 1 :]) for place in range(len(loop))]
    return list(dict.fromkeys(shortest(*each) for each in found))
