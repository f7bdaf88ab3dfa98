"""RTC, the running threshold count, and what it shares with `stream.majority`: a balance of ups and downs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from statetrack.tasks.base import Ints, Run, Task
from statetrack.tasks.facts import TaskFacts
from statetrack.tasks.finite import BITS, BinaryTask


@dataclass(frozen=True, kw_only=True)
class MajorityTask(Task):
    """The answer is 1 while at least half of the inputs so far went up.

    The state is the balance s_t = s_{t-1} + 1 for an input that goes up, s_{t-1} - 1 for another: one whole number
    without a bound, so no finite automaton does it.
    """

    outputs = 2
    balance_of: ClassVar[str] = "ups minus downs"

    @abstractmethod
    def ups(self, symbols: ArrayLike) -> NDArray[np.bool_]:
        """Which inputs go up."""

    def step(self, state: int, symbol: int) -> int:
        return state + (1 if self.ups(symbol) else -1)

    def answer(self, state: int) -> int:
        return int(state >= 0)

    def run(self, inputs: Ints, state: NDArray[np.int64] | None = None) -> Run:
        before = np.zeros(len(inputs), np.int64) if state is None else state
        balance = before[:, None] + np.cumsum(np.where(self.ups(inputs), 1, -1), axis=1)
        end = balance[:, -1] if inputs.shape[1] else before
        return Run((balance >= 0).astype(np.int32), np.ones(inputs.shape, bool), end)

    def state_text(self, seen: Sequence[int]) -> str:
        return f"{self.balance_of}: {self.state_after(seen)}"

    @cached_property
    def facts(self) -> TaskFacts:
        return TaskFacts(
            state_text="unbounded counter: the balance after T inputs is one of T + 1 values, log2(T + 1) bits",
            majority="it is the running majority",
            threshold=True,
            ups=self.ups(np.arange(self.inputs)),
        )


@dataclass(frozen=True, kw_only=True)
class RTC(MajorityTask, BinaryTask):
    """Are at least half of the bits so far ones? y_t = 1 iff the ones among x_1..x_t are at least ceil(t/2).

    That is sum(2x - 1) >= 0: a 1 adds one to the balance, a 0 takes one away.

        inputs   1 0 0 1 0
        answers  1 1 0 1 0

    After 1 0 0 there is one 1 and ceil(3/2) = 2 are needed; after 1 0 0 1 there are two and two are needed.
    """

    base_name = "rtc"
    title = "running majority"
    instruction = f"{BITS} Answer 1 if at least half of the bits so far are ones, else 0."
    balance_of = "ones minus zeros"

    def ups(self, symbols: ArrayLike) -> NDArray[np.bool_]:
        return np.asarray(symbols) == 1
