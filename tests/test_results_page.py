"""docs/results.md stands as docs/results/tables.py writes it from the packed cells."""

from __future__ import annotations

from docs.results import tables


def test_the_tables_of_the_results_page_are_those_of_the_cells() -> None:
    text = tables.PAGE.read_text()
    assert len(tables.PLACE.findall(text)) >= 7
    assert tables.filled(text) == text
