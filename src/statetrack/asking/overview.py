"""Many records in one table: a row for each task, subject, length and set of rules, with what it cost in tokens."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from statetrack.asking import metrics
from statetrack.asking.rules import Rules

COLUMNS = ("task", "subject", "rules", "length", "episodes", "avg_max_length", "violation_rate", "accuracy",
           "input tokens", "of them new", "output tokens", "total tokens")  # fmt: skip


def is_asked(record: dict[str, Any]) -> bool:
    """Whether a record of a folder is an episode's."""
    return record["cell"]["protocol"].get("name") == "ask" and "outcomes" in record


def overview(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for all samples of one kind; those that a server cut off are left out, as they are not done.

    Input tokens are those of a server without memory, which receives the whole history at every turn; of them new are
    those that had to be processed.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        if is_asked(record) and record["status"] == "done":
            groups.setdefault(json.dumps(record["cell"] | {"seed": 0}, sort_keys=True), []).append(record)
    rows = [_row(group) for group in groups.values()]
    return sorted(rows, key=lambda row: (row["task"], row["subject"], row["rules"], row["length"]))


def _row(records: list[dict[str, Any]]) -> dict[str, Any]:
    cell = records[0]["cell"]
    given = {key: value for key, value in cell["protocol"].items() if key not in ("name", "teacher_forced")}
    rules, forced = Rules(**given), "teacher_forced" in cell["protocol"]
    spent, counted = metrics.tokens(records), metrics.results(records)
    by_turns = rules.way == "turns"
    return {
        "task": cell["task"],
        "subject": cell["subject"],
        "rules": ", ".join(filter(None, [rules.changed, "teacher-forced" if forced else ""])),
        "length": cell["length"],
        "episodes": len(records),
        "avg_max_length": counted["avg_max_length"] if by_turns else None,
        "violation_rate": None if forced else counted["violation_rate"],
        "accuracy": metrics.accuracy(records)["accuracy"],
        "input tokens": spent.sent,
        "of them new": spent.new,
        "output tokens": spent.generated,
        "total tokens": spent.sent + spent.generated,
    }
