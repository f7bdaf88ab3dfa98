"""`statetrack results`: one row a cell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statetrack.cli.output import print_table

if TYPE_CHECKING:
    from statetrack.sweep import Store

SHOWN = ("task", "subject", "length", "seed", "protocol", "status", "accuracy", "floor", "tail_accuracy", "solved")


def command(
    folder: Annotated[Path, typer.Argument(help="A folder of cells.")],
    csv: Annotated[Path | None, typer.Option("--csv", help="Write a CSV file; - for the standard output.")] = None,
    parquet: Annotated[Path | None, typer.Option("--parquet", help="Write a Parquet file.")] = None,
) -> None:
    """Print the main numbers, or write those of every cell as CSV or Parquet.

    What was trained has a row a cell. What was asked has a row for all its samples, with its tokens.

    Example: statetrack results demo-results --csv demo.csv
    """
    from statetrack.sweep import Store
    from statetrack.sweep.table import rows, write_csv, write_parquet

    store = Store.existing(folder)
    for damage in store.damaged():
        print(f"damaged, left out: {damage}", file=sys.stderr)
    if csv:
        count = write_csv(store, sys.stdout if str(csv) == "-" else csv)
        if str(csv) != "-":
            print(f"{csv}: {count} rows")
    if parquet:
        print(f"{parquet}: {write_parquet(store, parquet)} rows")
    if not csv and not parquet:
        print_asked(store)
        trained = [row for row in rows(store) if row["protocol"] != "ask"]
        if trained:
            print_table(SHOWN, [[_short(row.get(name)) for name in SHOWN] for row in trained])


def print_asked(store: Store) -> None:
    """The table of what language models were asked, if anything was."""
    from statetrack.ask.overview import COLUMNS, overview

    found = overview(store.records())
    if found:
        print_table(COLUMNS, [[_short(row[name]) for name in COLUMNS] for row in found])


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) and value > 9999 else "" if value is None else str(value)
