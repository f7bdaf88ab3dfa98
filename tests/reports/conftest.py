"""Folders of results that several tests read, each made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reports import made_records


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tasks, five models, three lengths, three seeds; episodes of two baselines; three diagnoses."""
    folder = tmp_path_factory.mktemp("report") / "small"
    cells = made_records.small_cells()
    made_records.fill(folder, cells)
    made_records.asked(folder, "track_the_stat.median", "random", 12)
    made_records.asked(folder, "track_the_stat.median", "copy-last", 8)
    chosen = [cell for cell in cells if cell.task == "txc" and cell.length == 64 and cell.seed == 0]
    made_records.diagnose(folder, chosen[:3])
    return folder


@pytest.fixture(scope="session")
def design(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The 846 cells of the sweep `design`."""
    folder = tmp_path_factory.mktemp("report") / "design"
    made_records.fill(folder, made_records.design_cells(), "design")
    return folder
