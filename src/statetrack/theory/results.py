"""Results as the verdict reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from statetrack.errors import BadInput

SURE_LOW = 0.98
"""A run is surely solved when its interval lies above this: 256 rows without an error have the Wilson bound .985."""
SOLVED = 0.99
SEEDS = 3
FAR = 8
WITNESS_STEPS = 10_000


@dataclass(frozen=True)
class Result:
    """One measured accuracy with its 95 % interval [low, high], its n, and the floor of its task at this length.

    `trained` is the length that the network was trained on; if it is not given, the seed's shortest length stands in.
    `witness` marks weights that were set by hand.
    """

    model: str
    task: str
    length: int
    seed: int
    accuracy: float
    n: int
    low: float
    high: float
    floor: float
    solved: bool
    witness: bool = False
    trained: int | None = None
    metric: str = "accuracy"

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Result:
        """From a plain record; what it holds besides is left aside."""
        known = {field.name for field in fields(cls)}
        required = [field.name for field in fields(cls) if field.default is MISSING]
        for name in required:
            if name not in record:
                raise BadInput(f"a result has no {name!r}; it should have {', '.join(required)}")
        result = cls(**{name: value for name, value in record.items() if name in known})
        if not 0 <= result.low <= result.high <= 1:
            raise BadInput(
                f"the interval [{result.low}, {result.high}] of a result should lie in 0..1, low before high"
            )
        return result

    @property
    def trained_on(self) -> int:
        return self.trained if self.trained is not None else self.length

    @property
    def surely_solved(self) -> bool:
        """A floor that is nearly 1 makes nearly everybody look good: the interval must lie above it, unless it is 1."""
        return self.solved and self.low >= SURE_LOW and (self.low > self.floor or self.floor >= 1)

    @property
    def surely_not_solved(self) -> bool:
        return not self.solved and self.high < SOLVED

    @property
    def state(self) -> str:
        return "solved" if self.surely_solved else "not solved" if self.surely_not_solved else "unclear"


def by_seed(records: Iterable[Result]) -> dict[int, list[Result]]:
    """The records of each seed."""
    seeds: dict[int, list[Result]] = {}
    for record in records:
        seeds.setdefault(record.seed, []).append(record)
    return seeds


def most(flags: list[bool]) -> bool:
    """Whether more than half are true."""
    return 2 * sum(flags) > len(flags)
