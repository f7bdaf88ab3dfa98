"""`statetrack results`: one row per cell."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statetrack.cli.output import print_table
from statetrack.formatting import fixed, not_ours, plural, short_names, shortened

if TYPE_CHECKING:
    from statetrack.results import Store

SHOWN = ("task", "subject", "protocol", "length", "seed", "status", "accuracy", "floor", "tail_accuracy", "solved")
BROKEN = "broken by"
SHARED = 3  # of these columns, and of those of what was asked: what the rows of a group share


def command(
    folder: Annotated[Path, typer.Argument(help="A folder of cells.")],
    csv: Annotated[Path | None, typer.Option("--csv", help="Write a CSV file; - for standard output.")] = None,
    parquet: Annotated[Path | None, typer.Option("--parquet", help="Write a Parquet file.")] = None,
) -> None:
    """Print the main numbers, or write those of every cell as CSV or Parquet.

    What was trained has one row per cell. What was asked has one row for all its samples, with its tokens.

    Example: statetrack results demo-results --csv demo.csv
    """
    from statetrack.results import Damage, Store, plans
    from statetrack.results.cell import TRAIN
    from statetrack.results.table import rows, write_csv, write_parquet

    store = Store.existing(folder)
    trained = set()
    for key, entry in store.entries():
        if isinstance(entry, Damage):
            print(f"damaged, left out: {entry}", file=sys.stderr)
        elif entry.cell.kind == TRAIN:
            trained.add(key)
    if foreign := store.foreign():
        print(not_ours(foreign), file=sys.stderr)
    notes = {key: entry.note for key, entry in plans.entries(plans.saved(store)).items()}
    if csv:
        count = write_csv(store, sys.stdout if str(csv) == "-" else csv, notes)
        if str(csv) != "-":
            print(f"{csv}: {plural(count, 'row')}")
    if parquet:
        print(f"{parquet}: {plural(write_parquet(store, parquet, notes), 'row')}")
    if not csv and not parquet:
        shown = print_asked(store)
        if trained:
            told = [row | {BROKEN: shortened(row.get("words.broken_by", ""), 14)} for row in rows(store, notes)
                    if row["key"] in trained]  # fmt: skip
            _print((*SHOWN, BROKEN), told)
        elif not shown:
            print(f"{folder} holds no results yet")


def print_asked(store: Store) -> bool:
    """The table of what language models were asked; whether anything was."""
    from statetrack.asking.metrics import overview

    table = overview(store.records())
    if table:
        _print(list(table[0]), table)
    return bool(table)


def _print(columns: Sequence[str], rows: list[dict[str, Any]]) -> None:
    names = {column: short_names(row[column] for row in rows) for column in ("task", "subject")}
    named = [row | {column: names[column][row[column]] for column in names} for row in rows]
    print_table(columns, [[_short(row.get(column)) for column in columns] for row in named], SHARED)


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return fixed(value, 4)
    return f"{value:,}" if isinstance(value, int) and value > 9999 else "" if value is None else str(value)
