"""docs/results.md stands as docs/results/tables.py writes it from the packed cells."""

from __future__ import annotations

import importlib.util
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "docs" / "results"


def test_the_tables_of_the_results_page_are_those_of_the_cells() -> None:
    spec = importlib.util.spec_from_file_location("tables", RESULTS / "tables.py")
    assert spec is not None and spec.loader is not None
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    text = tables.PAGE.read_text()
    assert len(tables.PLACE.findall(text)) >= 7
    assert tables.filled(text) == text
