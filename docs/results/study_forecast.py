"""What the study's sweeps will take on an H200, from the cells kept here: python docs/results/study_forecast.py

The archives were measured with several workers on one card and slower kernels, and hold few models of the study's
sizes. So this is rough: `python -m benchmarks.time_forecast` says by how much for cells of other models.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from statetrack.cli import main
from statetrack.cli.output import print_table, say
from statetrack.results import Store
from statetrack.results.cell import TRAIN
from statetrack.sweeps import read, shipped
from statetrack.sweeps.forecast import Where, forecast

HERE = Path(__file__).parent
ARCHIVES = ("design.tar.gz", "length-generalisation.tar.gz")
CARD = Where("NVIDIA H200", gpu=True, workers=8, sharing=8, together=8)
STUDY, PILOTED = "study-", "study-ladder"
ANY_RATE = 1e-3  # seconds do not depend on it


def sweeps() -> list[str]:
    return [name for name in shipped() if name.startswith(STUDY)]


def table(store: Store, names: list[str]) -> list[list[str]]:
    """A row for each sweep: its cells, those that the archives hold, and minutes with eight workers on one card."""
    rows = []
    for name in names:
        sweep = read(name, rates=ANY_RATE if name == PILOTED else None)
        assert all(cell.kind == TRAIN for cell in sweep.cells)
        ahead = forecast(sweep, store, CARD)
        there = sum(kind.there for kind in ahead.kinds)
        assert ahead.clock is not None
        rows.append(
            [name, f"{len(sweep.cells):,}", str(there), f"{ahead.seconds / 60:,.0f}", f"{ahead.clock / 60:,.0f}"]
        )
    return rows


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for archive in ARCHIVES:
            if main(["unpack", str(HERE / archive), folder]):
                sys.exit(1)
        print_table(
            ["sweep", "cells", "there", "minutes of work", "with 8 workers"], table(Store(Path(folder)), sweeps())
        )
        say("of cells that are like none in the archives, scaled by their cost")
