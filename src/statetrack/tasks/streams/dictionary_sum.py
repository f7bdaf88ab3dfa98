"""The running sum of the values that a dictionary gives to the keys that come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from statetrack.errors import BadInput
from statetrack.formatting import plural
from statetrack.tasks import draws
from statetrack.tasks.base import Ints, Run, between
from statetrack.tasks.facts import TaskFacts
from statetrack.tasks.finite import WeightedTask

WORDS = """
    acorn album amber anvil apple arrow attic bacon badge basil beach bench berry blade board bread brick broom brush
    cabin camel candy cargo cedar chair chalk cheek chess cigar cliff clock cloud coast cocoa coral crane crown daisy
    diary drill eagle elbow fence fiber flame flute frost ghost glove grape grass hedge honey horse hotel ivory jelly
    kayak kiosk knife ladle lemon lilac linen lunar maple medal melon nurse ocean olive onion opera otter paint panda
    pearl piano pilot plaza plume quilt radio raven river robin salad shark sheep snail spoon stone stool straw table
    tiger torch towel wheat zebra
"""
KEYS = tuple(WORDS.split())
LEAST, MOST = -1_000_000, 1_000_000  # of a value

State = tuple[int, int]  # the sum, and how many keys came since it was asked for


@dataclass(frozen=True, kw_only=True)
class DictionarySum(WeightedTask):
    """The sum of the values of all keys so far, in a dictionary that is told at the start. Long-horizon execution.

    The inputs are `words` keys; their values lie in low..high and are those of the dictionary number `dictionary`.
    A message names `k` keys, and the sum is asked for after each k-th, as long as it lies in -largest..largest. In
    dictionary 0 the keys 0, 1, 4, 5 are acorn -58, album -69, apple 6 and arrow 99. With k = 2:

        task     dictionary_sum[k=2]
        inputs   5 0 4 1
        answers  - 41 - -22
    """

    k: int = between(1, 100_000, default=1)
    words: int = between(2, len(KEYS), default=len(KEYS))
    low: int = between(LEAST, MOST, default=-99)
    high: int = between(LEAST, MOST, default=99)
    dictionary: int = between(0, 2**31, default=0)
    largest: int = between(1, MOST, default=9999)

    base_name = "dictionary_sum"
    title = "long-horizon execution"
    opening = "You will be shown keys of a dictionary, message by message."
    unseen = ("ask", "k", "low", "high", "dictionary", "largest")

    def check(self) -> None:
        if self.low >= self.high:
            raise BadInput(f"dictionary_sum: low={self.low} should be less than high={self.high}")
        super().check()

    @property
    def inputs(self) -> int:
        return self.words

    @property
    def outputs(self) -> int:
        return 2 * self.largest + 1

    @property
    def per_turn(self) -> int:
        return self.k

    @cached_property
    def values(self) -> NDArray[np.int64]:
        """The value of every key; a smaller dictionary is the beginning of a larger one."""
        keys = draws.row_keys("values of dictionary_sum", "train", self.dictionary, 0, 0)
        return self.low + draws.symbols(keys, 0, self.words, self.high - self.low + 1)[0].astype(np.int64)

    def start(self) -> State:
        return 0, 0

    def step(self, state: State, symbol: int) -> State:
        total, since = state
        return total + int(self.values[symbol]), (since + 1) % self.k

    def answer(self, state: State) -> int | None:
        total, since = state
        return total + self.largest if since == 0 and abs(total) <= self.largest else None

    def run(self, inputs: Ints, state: NDArray[np.int64] | None = None) -> Run:
        """The state is a row for each of the inputs: the sum, and how many keys came since it was asked for."""
        before = np.zeros((len(inputs), 2), np.int64) if state is None else state
        totals = before[:, :1] + np.cumsum(self.values[inputs], axis=1)
        since = (before[:, 1:] + np.arange(1, inputs.shape[1] + 1)) % self.k
        asked = (since == 0) & (abs(totals) <= self.largest)
        end = np.column_stack([totals[:, -1], since[:, -1]]) if inputs.shape[1] else before
        return Run(np.where(asked, totals + self.largest, 0).astype(np.int32), asked, end)

    def value(self, classes: ArrayLike) -> NDArray[Any]:
        return np.asarray(classes) - self.largest

    def guess(self, seen: Sequence[int], chance: np.random.Generator) -> int:
        """Any sum that so many keys can come to."""
        low, high = (min(max(len(seen) * end, -self.largest), self.largest) for end in (self.low, self.high))
        return int(chance.integers(low, high + 1)) + self.largest

    # ---- words -------------------------------------------------------------------------------------------------------

    def symbol_text(self, symbol: int) -> str:
        return KEYS[symbol]

    def answer_text(self, answer: int) -> str:
        return str(answer - self.largest)

    @property
    def instruction(self) -> str:
        entries = ", ".join(f"{key} {value}" for key, value in zip(KEYS, self.values.tolist()))
        when = "every key" if self.k == 1 else f"every {plural(self.k, 'key')}"
        return (
            f"The dictionary gives a value to each key: {entries}. A sum starts at 0, and the value of every key that"
            " is shown is added to it. Answer with the sum so far, in digits, with a minus sign where it is negative."
            f" You are asked after {when}, while the sum lies between {-self.largest} and {self.largest}."
        )

    def state_text(self, seen: Sequence[int]) -> str:
        return f"sum so far: {self.state_after(seen)[0]}"

    @property
    def facts(self) -> TaskFacts:
        """Of any bits, put v keys of value w > 0 for each 1 and w keys of value -v for each 0: the sum is 0 where they
        balance. Keys put first move that to any other number of ones, and majority is the OR over those numbers.
        """
        signs = "values of both signs make the sum 0 where two counts balance, and majority is an OR of such questions"
        both = self.values.min() < 0 < self.values.max()
        text = "unbounded counter: the sum so far is one whole number"
        return TaskFacts(state_text=text, majority=signs if both else "", counts=True)
