"""How good the forecast of seconds is that `sweep --dry-run` prints: measured over forecast, kind by kind.

python -m benchmarks.time_forecast        on the cells of the sweep design that lie in docs/results
python -m benchmarks.time_forecast DIR    on any folder of trained cells; with each kind of cell

A kind is a task, a model, a length and a protocol. Each is forecast from all others of the folder, as if it had never
run: from the same model on the same task, at other lengths; without that task, from the same model on other tasks; and
without that model, from other models. The history in the settings folder is not looked at. What is printed is the
median factor by which the forecast is off, either way, and the factor within which nine tenths of the kinds are.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np

from statetrack.results import Store, unpack
from statetrack.results.history import Measured
from statetrack.results.plans import PlannedCell
from statetrack.results.records import Record
from statetrack.sweeps.forecast import OTHERS, SAME_MODEL, SAME_TASK, Evidence, seconds_of, took_by
from statetrack.sweeps.kinds import module_for

SHIPPED = Path(__file__).parents[1] / "docs" / "results" / "design.tar.gz"


@dataclass(frozen=True)
class Kind:
    """Cells that differ in their seed alone, and what each took."""

    entry: PlannedCell
    took: list[Measured]

    @property
    def seconds(self) -> float:
        return mean(took.seconds for took in self.took)


def kinds_of(records: Iterable[Record]) -> list[Kind]:
    held: dict[str, list[tuple[Record, Measured]]] = {}
    for record in records:
        if record.finished and (took := took_by(record)) is not None:
            held.setdefault(took.siblings, []).append((record, took))
    return [
        Kind(PlannedCell(same[0][0].cell, module_for(same[0][0].cell), same[0][1].cost), [took for _, took in same])
        for same in held.values()
    ]


WITHOUT: dict[str, Callable[[Measured, Measured], bool]] = {  # what a forecast may not look at
    SAME_TASK: lambda one, other: one.siblings == other.siblings,
    SAME_MODEL: lambda one, other: (one.subject, one.task) == (other.subject, other.task),
    OTHERS: lambda one, other: one.subject == other.subject,
}


def main() -> int:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(place) / "design"
        if len(sys.argv) < 2:
            unpack(SHIPPED, folder)
        found = kinds_of(Store.existing(folder).records())
    ratios: dict[str, list[float]] = {source: [] for source in WITHOUT}
    everything = [took for kind in found for took in kind.took]
    for source, left_out in WITHOUT.items():
        for kind in found:
            first = kind.took[0]
            others = [took for took in everything if not left_out(took, first) and took.device == first.device]
            guess = seconds_of(kind.entry, Evidence(others))
            if guess is not None and guess.source == source:
                ratios[source].append(kind.seconds / guess.value)
                if len(sys.argv) > 1:
                    print(f"{source:30}{kind.entry.cell.task:>8} {kind.entry.cell.subject:28}"
                          f"{kind.entry.cell.length:>6}{guess.value:>10.1f} s{kind.seconds:>10.1f} s"
                          f"{ratios[source][-1]:>8.2f}")  # fmt: skip
    print(f"\n{'from cells':32}{'kinds':>6}{'off by a factor of':>20}{'nine tenths within':>20}")
    for source, each in ratios.items():
        if each:
            off = np.exp(np.quantile(np.abs(np.log(each)), (0.5, 0.9)))
            print(f"{source:32}{len(each):>6}{off[0]:>20.2f}{off[1]:>20.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
