"""docs/results.md stands as docs/results/tables.py writes it from the packed cells."""

from __future__ import annotations

import re

from docs.results import tables


def test_the_tables_of_the_results_page_are_those_of_the_cells() -> None:
    text = tables.PAGE.read_text()
    assert len(tables.PLACE.findall(text)) >= 7
    assert tables.filled(text) == text


def test_no_verdict_is_written_by_hand() -> None:
    """What is confirmed, refuted or undecided stands in tables that the verdict function fills, and nowhere else."""
    text = tables.PAGE.read_text()
    by_hand = tables.PLACE.sub("", text)
    assert not re.findall(r"[^\n]*(?:onfirm|efut|ndecided|\| False|\| True|False for|True for)[^\n]*", by_hand)
    assert {"rules", "sentences", "tally"} <= {key for _, _, key, _ in tables.PLACE.findall(text)}


def test_three_seeds_decide_no_rate_and_the_page_says_so() -> None:
    assert "Three seeds decide no rate" in tables.PAGE.read_text()
    for archive in ("design", "length-generalisation"):
        given = {row[0]: row for row in tables.tally(archive).rows if row[1] == "rules 2"}
        for kind in ("theory: weights", "theory: training"):
            assert given[kind][2:4] == [0, 0]
        assert {len(found) for _, found in tables.alike(archive, "task", "subject", "length", "protocol")} <= {1, 3}
