"""How far a model gets with depth: the largest T that all seeds solve at each depth D, beside T = 2^D and T = c D.

>>> law = DepthLaw("mamba2", {4: 16, 8: 32, 16: 64, 32: 128})
>>> round(law.per_layer, 3), round(law.slope, 3)
(4.0, 1.0)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import log2

import numpy as np

from statetrack.results.evaluations import SOLVED
from statetrack.verdicts.documents import AccuracyTest
from statetrack.verdicts.measurements import Measurement, as_designed, grouped
from statetrack.verdicts.networks import Network, networks
from statetrack.verdicts.outcomes import CONFIRMED, REFUTED, Verdict, undecided
from statetrack.verdicts.rates import USUALLY, rate

DEPTH = re.compile(r"(?P<stem>.+)-(?P<layers>\d+)l(?P<ending>(?:-[a-z]+)*)")
OCTAVES = 1  # below the longest length that 2^D grants, in which the law is put to the test


@dataclass(frozen=True)
class DepthLaw:
    """By depth the largest T that all seeds solved. `per_layer` is c of the best T = c D, and `slope` the exponent s of
    the best T = c D^s, both fitted to log T over the depths that solved something.
    """

    model: str
    reach: dict[int, int]

    @property
    def known(self) -> dict[int, int]:
        return {layers: length for layers, length in self.reach.items() if length}

    @property
    def per_layer(self) -> float:
        return float(2 ** np.mean([log2(length / layers) for layers, length in self.known.items()]))

    @property
    def slope(self) -> float:
        depths, lengths = ([log2(value) for value in side] for side in (self.known, self.known.values()))
        return float(np.polyfit(depths, lengths, 1)[0])

    @property
    def text(self) -> str:
        steps = ", ".join(f"{layers} layers {length:,}" for layers, length in self.reach.items())
        return f"the largest T solved by all seeds: {steps}; {self.fits}"

    @property
    def fits(self) -> str:
        return f"best as c D: {self.per_layer:.1f} D, as a power: D^{round(self.slope, 2) + 0.0:.2f}"


def split(model: str) -> tuple[str, int] | None:
    """A model without its depth, and the depth.

    >>> split("mamba2-4l-neg"), split("gru")
    (('mamba2-neg', 4), None)
    """
    found = DEPTH.fullmatch(model.lower())
    return (found["stem"] + found["ending"], int(found["layers"])) if found else None


def by_depth(records: Iterable[Measurement], task: str) -> dict[str, dict[int, list[Network]]]:
    """The networks on a task, each at the length that it was trained on, by model and depth."""
    found = [one for one in networks(as_designed(records)) if one.first.task == task]
    placed = [(place, one) for one in found if (place := split(one.first.model))]
    stems = grouped(placed, lambda pair: pair[0][0])
    return {
        stem: {layers: [one for _, one in same] for layers, same in sorted(grouped(held, lambda p: p[0][1]).items())}
        for stem, held in stems.items()
    }


def laws(records: Iterable[Measurement], task: str) -> list[DepthLaw]:
    """Of every model of which three depths or more solve some length with all seeds, and one of them not the longest
    that tells: through two points any law passes, and where nobody stops nothing is learned of where one does.
    """
    found = []
    for stem, depths in by_depth(records, task).items():
        told = [one.trained for same in depths.values() for one in same if _solved(one) is not None]
        law = DepthLaw(stem, {layers: _reach(same) for layers, same in depths.items()})
        if len(law.known) > 2 and min(law.known.values()) < max(told):
            found.append(law)
    return found


def _reach(found: list[Network]) -> int:
    lengths = grouped(found, lambda one: one.trained)
    return max((length for length, same in lengths.items() if all(map(_solved, same))), default=0)


def judge(test: AccuracyTest, records: list[Measurement]) -> Verdict:
    """T = 2^D, at every depth of the model that a test names: solved up to there, and not beyond.

    Put to the test where it says most: the lengths within an octave below the longest that it grants and that was
    tested, over all depths together. No excuse counts: the document speaks of its own protocol, with its early stop.
    """
    place = split(test.model)
    assert place is not None
    depths = by_depth(records, test.task).get(place[0], {})
    seeds = len({one.first.seed for same in depths.values() for one in same})
    if len(depths) < 2:
        return undecided(f"fewer than two depths were trained on {test.task}", seeds)
    below, beyond = [], []
    for layers, same in depths.items():
        granted = [one for one in same if one.trained <= 2**layers]
        longest = max((one.trained for one in granted), default=0)
        below += [_solved(one) for one in granted if one.trained * 2**OCTAVES >= longest]
        beyond += [_solved(one) for one in same if one.trained > 2**layers]
    inside, outside = rate(below), rate(beyond)
    law = DepthLaw(place[0], {layers: _reach(same) for layers, same in depths.items()})
    seen = law.text if len(law.known) > 1 else "no two depths solve a length with all seeds"
    why = f"near 2^D solved {inside.yes} of {inside.of}, beyond it {outside.yes} of {outside.of}; {seen}"
    if inside.seldom or outside.word == USUALLY:
        return Verdict(REFUTED, why, seeds)
    if inside.word == USUALLY and outside.seldom:
        return Verdict(CONFIRMED, why, seeds)
    return undecided(why, seeds)


def _solved(one: Network) -> bool | None:
    """As tables count it. Open where a guess is right at the end of a row, or a run took no step or diverged."""
    own = one.own
    if own is None or own.end_floor >= SOLVED or (own.excuse and not own.solved):
        return None
    return own.solved
