"""Models of one size: the width at which a model has as many parameters as is asked for, within 2 %.

A line of the catalogue names the option that is a model's width. All else stays as it is: layers, heads, the numbers of
a head, and so the state of E88. Where widths come in steps (heads divide them, layers multiply what a step adds) and
none is near enough, the option that the line calls `finer` moves as well, as little as it can: the feed-forward width
of a transformer, the state of Mamba-2.

>>> matched("gru", 120, 120, Match(100_000)), matched("transformer-rope", 60, 60, Match(100_000))
('gru[hidden=103]', 'transformer-rope[dim=48,feed=146]')
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from statetrack import spec
from statetrack.errors import BadInput, shortened
from statetrack.models.build import read_options, trusted_model
from statetrack.models.catalogue import entry
from statetrack.models.sequence import SequenceModel

NEAR = 0.02  # of what is asked for
UNITS = {"k": 1_000, "m": 1_000_000}
MOST = 10**8  # parameters
MOST_WIDTH = 2**16
TRIED = 512  # widths, to find the first that a model can have
KEYS = ("parameters", "width", "task")


@dataclass(frozen=True)
class Match:
    """What is asked for: so many parameters on a task (by default the one that is trained), by the option `width` (by
    default that of the catalogue).
    """

    parameters: int
    width: str = ""
    task: str = ""

    @classmethod
    def read(cls, given: Any) -> Match:
        """
        >>> Match.read("parameters=100k"), Match.read({"parameters": "1.5m", "task": "a5"})
        (Match(parameters=100000, width='', task=''), Match(parameters=1500000, width='', task='a5'))
        """
        if isinstance(given, str) and "=" in given:
            given = spec.parse(f"match[{given}]")[1]
        if not isinstance(given, dict) or "parameters" not in given or any(key not in KEYS for key in given):
            raise BadInput(
                f"match {shortened(given)} should say parameters=100k, and may say width=OPTION and task=TASK"
            )
        for key in KEYS[1:]:
            if not isinstance(given.get(key, ""), str):
                raise BadInput(f"match: {key}={shortened(given[key], quoted=False)} should be text")
        return cls(read_count(given["parameters"]), given.get("width", ""), given.get("task", ""))


def read_count(given: Any) -> int:
    """
    >>> read_count("100k"), read_count("1.5M"), read_count(4096)
    (100000, 1500000, 4096)
    """
    text = str(given).strip().lower().replace("_", "")
    number, unit = (text[:-1], UNITS[text[-1]]) if text[-1:] in UNITS else (text, 1)
    try:
        count = math.nan if isinstance(given, bool) else round(float(number) * unit, 6)
    except (ValueError, OverflowError):
        count = math.nan
    if not 1 <= count <= MOST or count != int(count):
        raise BadInput(f"parameters={shortened(given, quoted=False)} should be a number such as 100k, 1.5m or 4096")
    return int(count)


@dataclass(frozen=True)
class Candidate:
    """A model that comes near what is asked for; `moved` is by which part of itself the finer option changed."""

    count: int
    wanted: int
    width: int
    text: str
    moved: float = 0.0

    @property
    def off(self) -> float:
        return abs(self.count - self.wanted) / self.wanted


@cache
def matched(text: str, inputs: int, outputs: int, match: Match) -> str:
    """The model's text with the width that is nearest to so many parameters for this alphabet; of two the smaller."""
    name, options = read_options(text)
    line = entry(name)
    width = match.width or line.width
    if not width:
        raise BadInput(f"{name} does not say which of its options is its width; say it beside them: width=...")
    for key in (width, line.finer):
        if key and key in options:
            raise BadInput(f"{text} gives {key}, which is for match to choose; leave one of the two out")

    @cache
    def sized(wide: int, finer: int | None = None) -> SequenceModel:
        more = {} if finer is None else {line.finer: finer}
        return hollow(name, inputs, outputs, options | {width: wide} | more)

    wanted = match.parameters
    step = first_width(sized, text, width)
    below = last_below(lambda count: sized(count * step).parameter_count, wanted, MOST_WIDTH // step)
    near = [
        Candidate(sized(wide).parameter_count, wanted, wide, str(sized(wide).text))
        for wide in (below * step, (below + 1) * step)
        if 0 < wide <= MOST_WIDTH
    ]
    best = min(near, key=lambda each: each.off)
    if best.off > NEAR and line.finer:
        moved = [found for each in near if (found := moved_finer(sized, each)) is not None and found.off <= NEAR]
        best = min(moved, key=lambda each: each.moved, default=best)
    if best.off > NEAR:
        said = " and ".join(f"{each.count:,} at {width}={each.width}" for each in near)
        raise BadInput(f"{text} has no {width} with {wanted:,} parameters, within {NEAR:.0%}; nearest: {said}")
    return best.text


def hollow(name: str, inputs: int, outputs: int, options: dict[str, Any]) -> SequenceModel:
    """The model, with shapes and no numbers where it is one of ours: code of others is built as it is."""
    if not entry(name).at.startswith("statetrack."):
        return trusted_model(name, inputs=inputs, outputs=outputs, seed=0, **options)
    with torch.device("meta"):
        return trusted_model(name, inputs=inputs, outputs=outputs, seed=0, **options)


def first_width(sized: Callable[[int], SequenceModel], text: str, width: str) -> int:
    """The least width that the model can have. The others are its multiples: heads divide them."""
    refusal: BadInput | None = None
    for wide in range(1, TRIED + 1):
        try:
            sized(wide)
        except BadInput as error:
            refusal = refusal or error
        else:
            return wide
    raise BadInput(f"{text} has no {width} up to {TRIED}: {refusal}")


def last_below(count: Callable[[int], int], wanted: int, most: int) -> int:
    """The largest number up to `most` with a count of at most `wanted`, of counts that grow; 0 where 1 has more.

    A count is a parabola of the width wherever layers are matrices, so that it is nearly always looked up at once. No
    model is built that has more than some times what is wanted.
    """
    guess = min(parabola([count(1), count(2), count(3)], wanted), most)
    low, high = guess, guess + 1
    while low > 0 and count(low) > wanted:
        low, high = low // 2, low
    while high <= most and count(high) <= wanted:
        low, high = high, min(2 * high, most + 1)
    return low + bisect.bisect_right(range(low + 1, high), wanted, key=count)


def parabola(first: list[int], wanted: int) -> int:
    """Where the parabola through its values at 1, 2 and 3 reaches a number.

    >>> parabola([6, 11, 18], 102), parabola([2, 4, 6], 101)
    (9, 50)
    """
    one, two, three = first
    bend = (three - 2 * two + one) / 2
    slope = two - one - 3 * bend
    root = math.sqrt(max(0.0, slope**2 - 4 * bend * (one - slope - bend - wanted)))
    if bend > 0:
        return max(1, int((root - slope) / (2 * bend)))
    return max(1, int((wanted - one) / slope + 1)) if slope > 0 else 1


def moved_finer(sized: Callable[..., SequenceModel], near: Candidate) -> Candidate | None:
    """The same width with the finer option moved. What one of it adds is the same everywhere."""
    least, more = (sized(near.width, finer).parameter_count for finer in (1, 2))
    usual = 1 + (near.count - least) / (more - least)
    value = 1 + round((near.wanted - least) / (more - least))
    if value < 1:
        return None
    made = sized(near.width, value)
    return Candidate(made.parameter_count, near.wanted, near.width, str(made.text), abs(value / usual - 1))
