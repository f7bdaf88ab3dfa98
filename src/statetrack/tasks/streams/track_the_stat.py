"""Track the Stat: the running median or mode of a stream of numbers."""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from statetrack.tasks import native
from statetrack.tasks.base import SPLITS, Batch, Ints, Run, check_window
from statetrack.tasks.facts import TaskFacts
from statetrack.tasks.original import OriginalWords
from statetrack.tasks.streams.numbers import VALUES, MedianTask, NumbersTask, twice_the_median

ORIGINAL = "original"
ABOUT = (
    "You are going to see a sequence of numbers, one number in each message. Answer every message with the {} of all"
    " the numbers that you have seen until then."
)
_BLOCK = 256  # rows at a time: their counts stay in the cache


@dataclass(frozen=True, kw_only=True)
class TrackTheStat(NumbersTask):
    """The stream of both variants. Row i of the split "original" is the original's stream of sample seed `seed` + i."""

    splits = (*SPLITS, ORIGINAL)
    opening = (
        "You will be shown a stream of integers from 0 to 99, one integer a message. Values can come more than once."
        " Only what has been shown counts, and nothing is ever forgotten."
    )

    def rows(self, lengths: NDArray[Any], indices: NDArray[Any], seed: int, split: str) -> Ints:
        if split != ORIGINAL:
            return super().rows(lengths, indices, seed, split)
        longest = int(lengths.max(initial=0))
        rows = np.empty((len(indices), longest), np.int32)
        for row, index in zip(rows, indices.tolist()):
            # The generator draws one number after the other, so a shorter stream is the beginning of a longer one.
            row[:] = np.random.default_rng(seed + index).integers(0, VALUES, size=longest)
        return rows

    def stream(
        self, length: int, count: int, seed: int = 0, split: str = "test", window: int = 4096
    ) -> Iterator[tuple[int, Batch]]:
        if split != ORIGINAL:
            yield from super().stream(length, count, seed, split, window)
            return
        check_window(length, count, seed, window)
        batch = self.sample(length, count, seed, split)
        for begin in range(0, length, window):
            cut = slice(begin, begin + window)
            yield begin, Batch(batch.inputs[:, cut], batch.targets[:, cut], batch.mask[:, cut])

    @property
    def facts(self) -> TaskFacts:
        text = f"unbounded counters: at most log2 C(t+99, 99) bits after t numbers, {histogram_bits(300):.0f} after 300"
        why = f"counts are compared, and on two numbers alone the {self.tag} is a majority"
        return TaskFacts(state_text=text, majority=why, counts=True)


def histogram_bits(turns: int) -> float:
    """log2 C(t + 99, 99): how many bits tell all histograms of t numbers apart.

    >>> round(histogram_bits(300))
    318
    """
    return math.log2(math.comb(turns + VALUES - 1, VALUES - 1))


@dataclass(frozen=True, kw_only=True)
class Median(MedianTask, TrackTheStat):
    """The median of the numbers so far; for an even count the mean of the middle two.

        inputs   85 63 51 26
        answers  85 74 63 57

    After 85 63 the middle two are all there is: 148 / 2 = 74. The state is how often each number came.
    """

    base_name = "track_the_stat.median"
    title = "running median"
    tag = "median"
    example = (12, 7, 30, 7, 55, 41)
    instruction = (
        "Report the running median of all integers shown so far. The median is the middle value once the integers are"
        " put in order. When their count is even there are two middle values, and the median is the arithmetic mean of"
        " these two, which may end in .5."
    )
    original = OriginalWords(
        ABOUT.format("median"),
        "If you have seen an even number of numbers, answer with the arithmetic mean of the two that are in the middle"
        " when all are sorted.",
        ("the only number", "the mean of 7 and 12", "12 is in the middle of 7 12 30",
         "the mean of 7 and 12 in 7 7 12 30", "12 is in the middle of 7 7 12 30 55",
         "the mean of 12 and 30 in 7 7 12 30 41 55"),
        "All numbers shown so far, sorted",
    )  # fmt: skip

    def start(self) -> tuple[int, ...]:
        return ()

    def step(self, state: tuple[int, ...], symbol: int) -> tuple[int, ...]:
        at = bisect.bisect(state, symbol)
        return (*state[:at], symbol, *state[at:])

    def answer(self, state: tuple[int, ...]) -> int | None:
        return twice_the_median(state) if state else None

    def state_text(self, seen: Sequence[int]) -> str:
        """The sorted list, as the original writes it.

        >>> Median().state_text([85, 63, 51])
        '[51, 63, 85]'
        """
        return str(sorted(map(int, seen)))

    def guess(self, seen: Sequence[int], chance: np.random.Generator) -> int:
        """A number shown or, for an even count, the mean of two, drawn with replacement."""
        first, second = (seen[pick] for pick in chance.integers(len(seen), size=2))
        return first + second if len(seen) % 2 == 0 else 2 * first

    def run(self, inputs: Ints, state: Ints | None = None) -> Run:
        upto = np.zeros((len(inputs), VALUES), np.int32) if state is None else state.copy()
        targets = np.empty(inputs.shape, np.int32)
        loop = native.compiled(_medians_loop) if native.available() else _medians
        native.run_blocks(lambda a, b: loop(inputs[a:b], upto[a:b], targets[a:b]), len(inputs), _BLOCK)
        return Run(targets, np.ones(inputs.shape, bool), upto)


def _medians(inputs: Ints, upto: Ints, targets: Ints) -> None:
    """Fill in twice the running medians; upto[row, v] is the count of numbers <= v.

    The number of rank r, counted from 0, is the smallest v with upto[v] > r: the number of v with upto[v] <= r.
    """
    values = np.arange(VALUES)
    for t in range(inputs.shape[1]):
        upto += inputs[:, t, None] <= values
        count = upto[:, -1:]
        targets[:, t] = np.sum(upto <= (count - 1) // 2, axis=1) + np.sum(upto <= count // 2, axis=1)


def _medians_loop(inputs: Ints, upto: Ints, targets: Ints) -> None:
    """`_medians` for numba: the rank is searched by halving."""
    for row in range(inputs.shape[0]):
        for t in range(inputs.shape[1]):
            for value in range(inputs[row, t], upto.shape[1]):
                upto[row, value] += 1
            count = upto[row, -1]
            targets[row, t] = np.searchsorted(upto[row], (count - 1) // 2, side="right") + np.searchsorted(
                upto[row], count // 2, side="right"
            )


class Counts(NamedTuple):
    """How often each number came in every row, and the mode so far (-1 before any number)."""

    counts: Ints
    mode: Ints


@dataclass(frozen=True, kw_only=True)
class Mode(TrackTheStat):
    """The number that came most often so far; among several, the largest.

        inputs   7 3 3 7 5
        answers  7 7 3 7 7

    After 7 3 both came once, and 7 is larger. The state is how often each number came.
    """

    base_name = "track_the_stat.mode"
    title = "running mode"
    tag = "mode"
    example = (4, 9, 4, 9, 61, 61)
    instruction = (
        "Report the running mode of all integers shown so far. The mode is the value that has been shown most often."
        " When several values share the highest count, report the largest of them."
    )
    original = OriginalWords(
        ABOUT.format("mode"),
        "If several numbers are tied, answer with the largest of those.",
        ("the only number", "4 and 9 are tied, and 9 is larger", "4 came twice, 9 once",
         "4 and 9 are tied again", "61 came once, 9 twice", "4, 9 and 61 are tied, and 61 is the largest"),
        "How often each number was shown so far",
    )  # fmt: skip
    outputs = VALUES

    def start(self) -> tuple[int, ...]:
        return (0,) * VALUES

    def step(self, state: tuple[int, ...], symbol: int) -> tuple[int, ...]:
        return (*state[:symbol], state[symbol] + 1, *state[symbol + 1 :])

    def answer(self, state: tuple[int, ...]) -> int | None:
        return max(range(VALUES), key=lambda value: (state[value], value)) if any(state) else None

    def state_text(self, seen: Sequence[int]) -> str:
        """The counts in the order in which the numbers first came, as the original writes them.

        >>> Mode().state_text([7, 3, 7])
        '{7: 2, 3: 1}'
        """
        return str(dict(Counter(map(int, seen))))

    def guess(self, seen: Sequence[int], chance: np.random.Generator) -> int:
        """One of the different numbers shown."""
        different = list(dict.fromkeys(seen))
        return different[chance.integers(len(different))]

    def run(self, inputs: Ints, state: Counts | None = None) -> Run:
        """The next mode is the last one or the new number, whichever has the greater (count, value)."""
        rows = np.arange(len(inputs))
        counts = np.zeros((len(inputs), VALUES), np.int32) if state is None else state.counts.copy()
        mode = np.full(len(inputs), -1, np.int32) if state is None else state.mode
        targets = np.empty(inputs.shape, np.int32)
        for t, number in enumerate(inputs.T):
            counts[rows, number] += 1
            new, old = counts[rows, number], counts[rows, mode]
            mode = np.where((new > old) | ((new == old) & (number > mode)), number, mode)
            targets[:, t] = mode
        return Run(targets, np.ones(inputs.shape, bool), Counts(counts, mode))
