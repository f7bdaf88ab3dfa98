"""docs/results.md stands as docs/results/tables.py writes it from the packed cells."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

RESULTS = Path(__file__).parents[1] / "docs" / "results"


def test_the_tables_of_the_results_page_are_those_of_the_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(RESULTS)
    tables = importlib.import_module("tables")
    text = tables.PAGE.read_text()
    assert len(tables.PLACE.findall(text)) >= 7
    assert tables.filled(text) == text
