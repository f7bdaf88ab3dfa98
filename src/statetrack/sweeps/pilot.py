"""What a pilot says of learning rates: for each model the best of those that were tried, and whether it lies inside.

A rate's score is its mean accuracy on validation data over the tasks and seeds of the pilot; a run that diverged counts
as 0. Rates within `TIE` of the best are tied, and the smallest of them is chosen. It lies inside where a smaller and a
larger one were tried as well; otherwise the grid has to be extended, and the next rate is named.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from statetrack.errors import BadInput
from statetrack.formatting import plural
from statetrack.models.catalogue import without_width
from statetrack.results import TrainingRecord
from statetrack.results.records import Record
from statetrack.sweeps.rates import RATES

TIE = 0.005
STEPS = (1, 2, 3, 5)  # rates are these times a power of ten
Run = tuple[str, int, int]  # task, length, seed


@dataclass(frozen=True)
class Pilot:
    """One model's rates from the smallest on, each with its score."""

    model: str
    scores: dict[float, float]
    runs: int  # that each score is a mean over
    left_out: tuple[float, ...] = ()  # rates that were not tried in all of them

    @property
    def best(self) -> float:
        most = max(self.scores.values())
        return min(rate for rate, score in self.scores.items() if score >= most - TIE)

    @property
    def edge(self) -> str:
        """Of what the best rate is the last, if it is."""
        ordered = sorted(self.scores)
        below, above = self.best == ordered[0], self.best == ordered[-1]
        return (
            "only one tried" if below and above else "the smallest tried" if below else "the largest" if above else ""
        )

    @property
    def inside(self) -> bool:
        return not self.edge

    @property
    def missing(self) -> list[float]:
        """The next rates to try, so that the best may come to lie inside.

        >>> Pilot("gru", {1e-3: 0.9, 3e-3: 0.99}, 2).missing, Pilot("gru", {1e-3: 0.9}, 2).missing
        ([0.01], [0.0003, 0.003])
        """
        ordered = sorted(self.scores)
        factor = min((b / a for a, b in itertools.pairwise(ordered)), default=3.0)
        wanted = []
        if self.best == ordered[0]:
            wanted.append(rounded(self.best / factor))
        if self.best == ordered[-1]:
            wanted.append(rounded(self.best * factor))
        return wanted


def rounded(rate: float) -> float:
    """The nearest of 1, 2, 3 and 5 times a power of ten.

    >>> rounded(9e-5), rounded(4.1e-3)
    (0.0001, 0.005)
    """
    power = math.floor(math.log10(rate))
    near = [float(f"{step}e{power + more}") for more in (0, 1) for step in STEPS]
    return min(near, key=lambda each: abs(math.log(each / rate)))


def pilots(records: Iterable[Record]) -> list[Pilot]:
    """Those of all models that were trained, by name."""
    tried: dict[str, dict[float, dict[Run, float]]] = {}
    ways: dict[str, set[str]] = {}
    for record in records:
        if isinstance(record, TrainingRecord):
            cell = record.cell
            name = without_width(cell.subject)
            ways.setdefault(name, set()).add(str({key: each for key, each in cell.protocol.items() if key != RATES}))
            for each in record.training.rates_tried:
                score = 0.0 if each.diverged_at is not None else each.validation_accuracy or 0.0
                scores = tried.setdefault(name, {}).setdefault(each.rate, {})
                scores[cell.task, cell.length, cell.seed] = score
    for name, own in ways.items():
        if len(own) > 1:
            raise BadInput(
                f"{name} was trained in {plural(len(own), 'way')} that differ in more than the rate; a pilot has one"
            )
    return [_pilot(name, tried[name]) for name in sorted(tried)]


def _pilot(name: str, by_rate: dict[float, dict[Run, float]]) -> Pilot:
    every = set().union(*by_rate.values())
    whole = {rate: fmean(scores.values()) for rate, scores in sorted(by_rate.items()) if set(scores) == every}
    if not whole:
        raise BadInput(
            f"{name}: no rate was tried on all tasks and seeds of its pilot, of which there are {len(every)}"
        )
    return Pilot(name, whole, len(every), tuple(rate for rate in sorted(by_rate) if rate not in whole))


def written(found: Iterable[Pilot], where: str) -> str:
    """The rates as YAML, with what they were chosen from."""
    lines = [f"# by `statetrack rates {where}`: the smallest rate within {TIE} of the best score", f"{RATES}:"]
    for each in found:
        scores = ", ".join(f"{rate:g} {score:.4f}" for rate, score in each.scores.items())
        edge = f"; {each.edge}" if each.edge else ""
        lines.append(f"  {json.dumps(each.model)}: {each.best:g}  # {scores}{edge}")
    return "\n".join(lines) + "\n"
