"""Many records in one table: a row for each task, subject, length and set of rules, with what it cost in tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from statetrack.asking import metrics
from statetrack.asking.rules import FORCED, how
from statetrack.results.cell import Cell
from statetrack.results.records import DONE, AskedRecord, EpisodeRecord, Record


def overview(records: Iterable[Record]) -> list[dict[str, Any]]:
    """A row for all samples of one kind; those that a server cut off are left out, as they are not done.

    Input tokens are those of a server without memory, which receives the whole history at every turn; of them new are
    those that had to be processed.
    """
    groups: dict[str, list[AskedRecord]] = {}
    for record in records:
        if isinstance(record, AskedRecord) and record.status == DONE:
            groups.setdefault(record.cell.siblings, []).append(record)
    rows = [_row(group[0].cell, [record.episode for record in group]) for group in groups.values()]
    return sorted(rows, key=lambda row: (row["task"], row["subject"], row["rules"], row["length"]))


def _row(cell: Cell, episodes: list[EpisodeRecord]) -> dict[str, Any]:
    spent, counted = metrics.tokens(episodes), metrics.results(episodes)
    return {
        "task": cell.task,
        "subject": cell.subject,
        "rules": how(cell.protocol),
        "length": cell.length,
        "episodes": len(episodes),
        "avg_max_length": counted["avg_max_length"] if cell.protocol["way"] == "turns" else None,
        "violation_rate": None if FORCED in cell.protocol else counted["violation_rate"],
        "accuracy": metrics.accuracy(episodes)["accuracy"],
        "input tokens": spent.sent,
        "of them new": spent.new,
        "output tokens": spent.generated,
        "total tokens": spent.sent + spent.generated,
    }
