"""`statetrack results`: one row a cell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from statetrack.cli.output import print_table

SHOWN = ("task", "subject", "length", "seed", "protocol", "status", "accuracy", "floor", "tail_accuracy", "solved")


def command(
    folder: Annotated[Path, typer.Argument(help="A folder of cells.")],
    csv: Annotated[Path | None, typer.Option("--csv", help="Write a CSV file; - for the standard output.")] = None,
    parquet: Annotated[Path | None, typer.Option("--parquet", help="Write a Parquet file.")] = None,
) -> None:
    """Print the main numbers of every cell, or write all of them as CSV or Parquet.

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
        print_table(SHOWN, [[_short(row.get(name)) for name in SHOWN] for row in rows(store)])


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4f}" if isinstance(value, float) else "" if value is None else str(value)
