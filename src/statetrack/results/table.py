"""The wide table: a row for each cell, with what it is, how it ended, and all its numbers; tables as CSV and Parquet.

`results/long_table.py` has a row for each thing that was tested.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from statetrack.errors import need
from statetrack.files import together
from statetrack.results.records import AskedRecord, Record
from statetrack.results.store import Store

LONG = (  # left to the records
    "cell", "rates_tried", "replies", "positions", "outcomes", "changes", "logprobs", "system", "prompts",
    "template",
)  # fmt: skip
FORMULA = ("=", "+", "-", "@", "\t", "\r")
FIRST = ("key", "task", "subject", "length", "seed", "protocol", "note", "status", "reason")
Row = dict[str, Any]
Notes = Mapping[str, str]  # of a sweep on its cells, by key


def rows(store: Store, notes: Notes) -> list[Row]:
    """Sorted by task, subject, length, protocol and seed."""
    table = [_row(record, notes) for record in store.records()]
    return sorted(table, key=lambda row: (row["task"], row["subject"], row["length"], row["protocol"], row["seed"]))


def columns(table: list[Row]) -> list[str]:
    """All columns of all rows: what a cell is, then its numbers in the order in which they first appear."""
    names = dict.fromkeys(FIRST)
    for row in table:
        names |= dict.fromkeys(row)
    return list(names)


def _row(record: Record, notes: Notes) -> Row:
    cell = record.cell
    first = {
        "key": cell.key, "task": cell.task, "subject": cell.subject, "length": cell.length, "seed": cell.seed,
        "protocol": str(cell.protocol.get("name", "")), "note": notes.get(cell.key, ""),
        "status": record.status, "reason": record.reason,
    }  # fmt: skip
    numbers = {key: value for key, value in _flat("", record.flat()) if key not in first}
    if isinstance(record, AskedRecord):
        numbers["answers"] = len(record.episode.outcomes)
        if not record.finished:  # so that a mean over the column does not take it for a result
            numbers["max_length"] = None
    settings = {f"protocol.{key}": value for key, value in _flat("", cell.protocol) if key != "name"}
    return first | numbers | settings


def _flat(prefix: str, mapping: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Scalars by their path; an interval is low and high; short lists become text, curves are left to the records."""
    for key, value in mapping.items():
        name = f"{prefix}{key}"
        if key in LONG or key.endswith("_by_position"):
            continue
        if isinstance(value, dict):
            yield from _flat(f"{name}.", value)
        elif key.endswith("interval") and isinstance(value, list) and len(value) == 2:
            yield from ((f"{name}_low", value[0]), (f"{name}_high", value[1]))
        elif isinstance(value, list):
            yield name, " ".join(map(str, value))
        else:
            yield name, value


def write_csv(store: Store, to: Path | TextIO, notes: Notes) -> int:
    """How many rows were written."""
    table = rows(store, notes)
    return save_csv(table, columns(table), to)


def save_csv(table: Sequence[Row], names: Sequence[str], to: Path | TextIO) -> int:
    """Rows as a CSV file, or into one that is open; how many."""
    if isinstance(to, Path):
        with together(to) as (part,), part.open("w", newline="") as file:
            _csv(table, names, file)
    else:
        _csv(table, names, to)
    return len(table)


def _csv(table: Iterable[Row], names: Sequence[str], file: TextIO) -> None:
    writer = csv.DictWriter(file, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _no_formula(value) for name, value in row.items()} for row in table)


def _no_formula(value: Any) -> Any:
    """A text that a spreadsheet would run as a formula, with the sign before it that makes it a text there."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def write_parquet(store: Store, to: Path, notes: Notes) -> int:
    table = rows(store, notes)
    return save_parquet(table, dict.fromkeys(columns(table)), to)


def save_parquet(table: Sequence[Row], kinds: Mapping[str, type | None], to: Path) -> int:
    """Rows as a Parquet file, a column for each name, of its type where that is known; how many."""
    need("pyarrow", "data", "Parquet")
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}
    made = {}
    for name, kind in kinds.items():
        values = [row.get(name) for row in table]
        made[name] = pa.array(values, types[kind]) if kind else _column(pa, values)
    with together(to) as (part,):
        pq.write_table(pa.table(made), part)
    return len(table)


def _column(pa: Any, values: list[Any]) -> Any:
    """A column of one type; whole numbers beside fractions are fractions, anything beside a text is a text."""
    if any(isinstance(value, str) for value in values):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    if any(isinstance(value, float) for value in values):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array(values)
