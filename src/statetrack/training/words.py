"""Words that random rows hardly ever show: one event and then silence, u v v v ..., long runs, rare events.

A word is over the letters that the data use (a composition over generators has those alone). All are given in windows
of positions, so that long ones need no memory.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from statetrack.results.evaluations import Power
from statetrack.tasks import draws
from statetrack.tasks.base import Ints, Run, Task

STEPS = 4096  # of a word, or
TIMES = 8  # as many times the length trained on, whichever is more
FEWEST = 256  # words that a budget is for: below that they are shorter, down to `TIMES` the length
HEAD, LOOP = 3, 4  # letters at most of u and of v in u v v v ...
ALL = 4  # letters up to which these words are listed
SILENT = 4  # symbols that are taken for silence
TRIED = 128  # symbols at most that are looked at for it
RUNS = (8, 32, 128, 512)  # steps that a symbol is held
RATES = (1 / 16, 1 / 64, 1 / 256)  # of events
PROBE = 64  # positions by which it is seen whether a word is asked about for good
MOST = 4096  # words of a search
DRAWN = 2**15  # words u v v v ... at most that are looked at, where most leave what the data show

LONG = 8  # words at most that are run for much longer than all others

EVENT, PERIODIC, HELD, RARE = "one event, then silence", "u v^k", "long runs", "rare events"

Letters = tuple[int, ...]
Pair = tuple[Letters, Letters]  # (u, v) stands for u v v v ...


class Words(Protocol):
    """Words of one family, without end."""

    @property
    def family(self) -> str: ...

    def __len__(self) -> int: ...

    def symbols(self, begin: int, end: int) -> Ints:
        """The symbols at the positions begin..end-1 of every word."""

    def take(self, chosen: Sequence[int] | NDArray[np.intp]) -> Words: ...

    def pair(self, row: int, tokens: int) -> Pair:
        """A word u v v v ... with the same beginning as one of these."""


@dataclass(frozen=True)
class PeriodicWords:
    """u v v v ...

    >>> PeriodicWords(PERIODIC, (((1,), (0,)), ((), (0, 1)))).symbols(0, 5).tolist()
    [[1, 0, 0, 0, 0], [0, 1, 0, 1, 0]]
    """

    family: str
    pairs: tuple[Pair, ...]

    def __len__(self) -> int:
        return len(self.pairs)

    def symbols(self, begin: int, end: int) -> Ints:
        heads, loops = ([pair[side] for pair in self.pairs] for side in (0, 1))
        before = np.array([len(head) for head in heads])[:, None]
        period = np.array([len(loop) for loop in loops])[:, None]
        places = np.arange(begin, end)[None, :] - before
        inside = np.take_along_axis(_padded(loops), places % period, axis=1)
        if begin >= before.max():
            return inside
        width = before.max()
        return np.where(places < 0, np.take_along_axis(_padded(heads), (places + before).clip(0, width - 1), 1), inside)

    def take(self, chosen: Sequence[int] | NDArray[np.intp]) -> PeriodicWords:
        return PeriodicWords(self.family, tuple(self.pairs[row] for row in chosen))

    def pair(self, row: int, tokens: int) -> Pair:
        return self.pairs[row]


def _padded(letters: list[Letters]) -> Ints:
    width = max(1, max(map(len, letters)))
    return np.array([[*each, *[0] * (width - len(each))] for each in letters], np.int32)


@dataclass(frozen=True)
class DrawnWords:
    """Letters drawn place by place, whatever the window: `held` for a number of steps each, or of rare events.

    `silent` symbols are what stands between events; `rates` of events are 1 where there are no such symbols.
    """

    family: str
    letters: Ints
    keys: draws.Keys
    held: NDArray[np.intp]
    silent: Ints
    rates: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.keys)

    def symbols(self, begin: int, end: int) -> Ints:
        out = np.empty((len(self), end - begin), np.int32)
        for steps in np.unique(self.held):
            rows = self.held == steps
            first, last = begin // steps, -(-end // steps)
            drawn = self.letters[draws.symbols(self.keys[rows], first, last, len(self.letters))]
            chance = draws.fractions(draws.lane(self.keys[rows], 0), first, last)
            blocks = np.where(chance < self.rates[rows, None], drawn, self.silent[rows, None])
            out[rows] = np.repeat(blocks, steps, axis=1)[:, begin - first * steps :][:, : end - begin]
        return out

    def take(self, chosen: Sequence[int] | NDArray[np.intp]) -> DrawnWords:
        rows = np.asarray(chosen, np.intp)
        return DrawnWords(self.family, self.letters, self.keys[rows], self.held[rows], self.silent[rows],
                          self.rates[rows])  # fmt: skip

    def pair(self, row: int, tokens: int) -> Pair:
        symbols = self.take([row]).symbols(0, tokens)[0].tolist()
        return shortest(tuple(symbols[:-1]), tuple(symbols[-1:]))


def shortest(u: Letters, v: Letters) -> Pair:
    """
    >>> shortest((1, 0), (1, 0, 1, 0)), shortest((1, 0, 0), (0,))
    (((), (1, 0)), ((1,), (0,)))
    """
    for period in range(1, len(v) + 1):
        if len(v) % period == 0 and v == v[:period] * (len(v) // period):
            v = v[:period]
            break
    while u and u[-1] == v[-1]:
        u, v = u[:-1], v[-1:] + v[:-1]
    return u, v


def powers(pair: Pair, tokens: int) -> tuple[Power, ...]:
    """The beginning of u v v v ..., with repeats as powers.

    >>> powers(((1, 1), (0, 1)), 7)
    (Power(symbols=[1], times=2), Power(symbols=[0, 1], times=2), Power(symbols=[0], times=1))
    """
    head, loop = pair[0][:tokens], pair[1]
    times, rest = divmod(tokens - len(head), len(loop))
    if times > 1:
        return (*_runs(head), Power(list(loop), times), *_runs(loop[:rest]))
    return _runs((head + 2 * loop)[:tokens])


def _runs(symbols: Letters) -> tuple[Power, ...]:
    return tuple(Power([symbol], len(list(same))) for symbol, same in itertools.groupby(symbols))


@dataclass(frozen=True)
class HardWords:
    """Families of words, and how many steps each word is run."""

    families: tuple[Words, ...]
    steps: int

    def __len__(self) -> int:
        return sum(map(len, self.families))


def hard_words(task: Task, budget_tokens: int, seed: int, length: int, most: int | None = None) -> HardWords:
    """Words of every family within the budget, for a network that was trained at `length`; `most` are the steps that
    it can make.

    Of u v v v ... (|u| <= 3, |v| <= 4) there are all where the letters are few and the budget is not small, else a
    sample: what is drawn depends on task, seed and place alone. Words of which nothing is asked after a while, and
    those that leave what the data can show (`Task.never_due`), are left out.
    """
    steps = max(TIMES * length, min(STEPS, budget_tokens // FEWEST))
    steps = max(1, min(steps, budget_tokens, most or steps))
    room = max(1, min(MOST, budget_tokens // steps))
    silence = silent_symbols(task, seed)
    eighth = room // 8
    periodic = _periodic(task, silence, room - 2 * eighth, seed)
    left = room - sum(map(len, periodic))
    drawn = [_held(task, left // 2, seed, steps), _rare(task, silence, left - left // 2, seed)]
    families: list[Words] = [*periodic, *drawn]
    kept = [each.take(np.flatnonzero(stays_asked(task, each))) for each in families if len(each)]
    return HardWords(tuple(each for each in kept if len(each)), steps)


def long_words(task: Task, seed: int) -> PeriodicWords:
    """A few words to be run for long: one event, then silence of each kind. What drifts slowly is wrong late."""
    letters, silence = letters_of(task).tolist(), silent_symbols(task, seed)
    pairs = [((event,), (rest,)) for rest, event in itertools.product(silence, letters) if event != rest]
    words = PeriodicWords(EVENT, tuple(pairs[:: max(1, len(pairs) // LONG)][:LONG]))
    return words.take(np.flatnonzero(stays_asked(task, words))) if len(words) else words


def letters_of(task: Task) -> Ints:
    """The symbols that the data use."""
    weights = task.symbol_weights
    return np.arange(task.inputs, dtype=np.int32) if weights is None else np.flatnonzero(weights).astype(np.int32)


def judged(task: Task, run: Run) -> NDArray[np.bool_]:
    """Where an answer is defined and is one that the data may ask for."""
    return run.defined & ~np.isin(run.targets, task.never_due)


def stays_asked(task: Task, words: Words) -> NDArray[np.bool_]:
    """Which words still ask for something after a while. One that breaks an expression, or a bracket, does not."""
    late = judged(task, task.run(words.symbols(0, PROBE)))[:, PROBE // 2 :]
    return np.asarray(late.any(axis=1))


@functools.lru_cache(maxsize=64)
def silent_symbols(task: Task, seed: int) -> Letters:
    """The letters that leave most of the states as they are, of states that a row comes through; any letter where all
    of them change every state.
    """
    row = task.sample(PROBE // 2, 1, seed, "validation").inputs[0].tolist()
    states = [task.start()]
    for symbol in row[:-1]:
        states.append(task.step(states[-1], symbol))
    some = letters_of(task)[:TRIED].tolist()
    still = {letter: sum(task.step(state, letter) == state for state in states[::2]) for letter in some}
    best = sorted(still, key=lambda letter: -still[letter])
    return tuple(letter for letter in best if still[letter])[:SILENT] or (best[0],)


def _periodic(task: Task, silence: Letters, room: int, seed: int) -> list[PeriodicWords]:
    """One event, then silence; and u v v v ..., all or some."""
    letters = letters_of(task)
    events = [((event,), (rest,)) for event, rest in itertools.product(letters.tolist(), silence) if event != rest]
    if len(events) > room // 2:
        keys = draws.row_keys(task.name, "events", seed, 0, np.arange(len(events)))
        events = [events[place] for place in sorted(np.argsort(keys, kind="stable")[: room // 2].tolist())]
    others = _all_pairs(len(letters)) if len(letters) <= ALL else ()
    if not 0 < len(others) <= room - len(events):
        pairs = _some_pairs(task, letters, room - len(events), seed)
    else:
        pairs = [(tuple(letters[list(u)].tolist()), tuple(letters[list(v)].tolist())) for u, v in others]
    apart = dict.fromkeys(pairs)
    for pair in events:
        apart.pop(pair, None)
    return [PeriodicWords(EVENT, tuple(events)), PeriodicWords(PERIODIC, tuple(apart))]


@functools.cache
def _all_pairs(letters: int) -> tuple[Pair, ...]:
    """Every word u v v v ... once, with the shortest u and v that stand for it."""
    words = {n: list(itertools.product(range(letters), repeat=n)) for n in range(max(HEAD, LOOP) + 1)}
    heads = [u for n in range(HEAD + 1) for u in words[n]]
    loops = [v for n in range(1, LOOP + 1) for v in words[n] if shortest((), v) == ((), v)]
    return tuple((u, v) for u in heads for v in loops if not u or u[-1] != v[-1])


def _some_pairs(task: Task, letters: Ints, room: int, seed: int) -> list[Pair]:
    """Drawn, each once. Where a word must follow a law, most that are drawn do not, and more are."""
    found: dict[Pair, None] = {}
    for begin in range(0, max(room, DRAWN), room):
        keys = draws.row_keys(task.name, "periodic words", seed, 0, np.arange(begin, begin + room))
        drawn = letters[draws.symbols(keys, 0, HEAD + LOOP, len(letters))].tolist()
        sizes = draws.symbols(draws.lane(keys, 0), 0, 2, 12)
        pairs = [(tuple(row[:u]), tuple(row[HEAD : HEAD + 1 + v])) for row, u, v in
                 zip(drawn, (sizes[:, 0] % (HEAD + 1)).tolist(), (sizes[:, 1] % LOOP).tolist())]  # fmt: skip
        some = PeriodicWords(PERIODIC, tuple(pairs))
        found |= dict.fromkeys(shortest(*pairs[row]) for row in np.flatnonzero(stays_asked(task, some)))
        if len(found) >= room:
            break
    return list(found)[:room]


def _held(task: Task, count: int, seed: int, steps: int) -> DrawnWords:
    lengths = [each for each in RUNS if each <= steps // 2] or [1]
    keys = draws.row_keys(task.name, "held words", seed, 0, np.arange(count))
    held = np.resize(np.asarray(lengths, np.intp), count)
    return DrawnWords(HELD, letters_of(task), keys, held, np.zeros(count, np.int32), np.ones(count))


def _rare(task: Task, silence: Letters, count: int, seed: int) -> DrawnWords:
    keys = draws.row_keys(task.name, "rare words", seed, 0, np.arange(count))
    both = list(itertools.product(silence, RATES))
    silent, rates = (np.resize([pair[side] for pair in both], count) for side in (0, 1))
    return DrawnWords(RARE, letters_of(task), keys, np.ones(count, np.intp), silent.astype(np.int32), rates)
