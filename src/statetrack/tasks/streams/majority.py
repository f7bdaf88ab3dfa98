"""Are most of the numbers large?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from statetrack.tasks.machines.rtc import MajorityTask
from statetrack.tasks.streams.numbers import NUMBERS, VALUES, NumbersTask


@dataclass(frozen=True, kw_only=True)
class Majority(MajorityTask, NumbersTask):
    """1 while at least half of the numbers so far are 50 or more: RTC over numbers.

    inputs   50 49 12 99 3
    answers  1 1 0 1 0
    """

    base_name = "stream.majority"
    title = "majority of large numbers"
    instruction = f"{NUMBERS} Answer 1 if at least half of the integers so far are 50 or more, else 0."
    balance_of = "large minus small"

    def ups(self, symbols: ArrayLike) -> NDArray[np.bool_]:
        return np.asarray(symbols) >= VALUES // 2
