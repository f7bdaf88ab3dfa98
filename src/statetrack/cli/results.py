"""`statetrack results`: one row per cell, or one for each thing that a network was tested on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statetrack.cli.output import print_table, say
from statetrack.formatting import fixed, not_ours, plural, short_names, shortened

if TYPE_CHECKING:
    from statetrack.results import Store

SHOWN = ("task", "subject", "protocol", "length", "seed", "status", "accuracy", "floor", "tail_accuracy", "solved")
BROKEN = "broken by"
SHOWN_LONG = ("task", "model", "protocol", "trained", "seed", "of", "tested", "case", "accuracy", "low", "high",
              "floor", "end_accuracy", "solved")  # fmt: skip
SHOWN_BROUGHT = ("trained", "seed", "of", "tested", "accuracy", "low", "high", "floor", "end_accuracy", "solved")
SHARED = 3  # of these columns, and of those of what was asked: what the rows of a group share


def command(
    folder: Annotated[Path, typer.Argument(help="A folder of cells.")],
    csv: Annotated[Path | None, typer.Option("--csv", help="Write a CSV file; - for standard output.")] = None,
    parquet: Annotated[Path | None, typer.Option("--parquet", help="Write a Parquet file.")] = None,
    long: Annotated[
        bool, typer.Option("--long", help="A row for each network and length, stream, case or word it was tested on.")
    ] = False,
) -> None:
    """Print the main numbers, or write those of every cell as CSV or Parquet.

    What was trained has one row per cell. What was asked has one row for all its samples, with its tokens.

    Example: statetrack results demo-results --long --csv demo.csv
    """
    from statetrack.results import Store, plans
    from statetrack.results.long_table import COLUMNS, long_rows
    from statetrack.results.table import columns, rows, save_csv, save_parquet
    from statetrack.verdicts.measurements import tested

    store = Store.existing(folder)
    trained = _trained(store)
    notes = {key: entry.note for key, entry in plans.entries(plans.saved(store)).items()}
    table = long_rows(store.records(), tested, notes) if long else rows(store, notes)
    kinds = COLUMNS if long else dict.fromkeys(columns(table))
    if csv:
        count = save_csv(table, list(kinds), sys.stdout if str(csv) == "-" else csv)
        if str(csv) != "-":
            say(f"{csv}: {plural(count, 'row')}")
    if parquet:
        say(f"{parquet}: {plural(save_parquet(table, kinds, parquet), 'row')}")
    if csv or parquet:
        return
    if long and table:
        _print(SHOWN_LONG, table)
        return
    shown = [print_asked(store), bool(trained)]
    if trained:
        told = [row | {BROKEN: shortened(row.get("words.broken_by", ""), 14)} for row in table if row["key"] in trained]
        _print((*SHOWN, BROKEN), told)
    if not print_brought(store) and not any(shown):
        say(f"{folder} holds no results yet")


def _trained(store: Store) -> set[str]:
    """The keys of what was trained; what is damaged or not ours is named."""
    from statetrack.results import Damage
    from statetrack.results.cell import TRAIN

    trained = set()
    for key, entry in store.entries():
        if isinstance(entry, Damage):
            say(f"damaged, left out: {entry}", file=sys.stderr)
        elif entry.cell.kind == TRAIN:
            trained.add(key)
    if foreign := store.foreign():
        say(not_ours(foreign), file=sys.stderr)
    return trained


def print_asked(store: Store) -> bool:
    """The table of what language models were asked; whether anything was."""
    from statetrack.asking.metrics import overview

    table = overview(store.records())
    if table:
        _print(list(table[0]), table)
    return bool(table)


def print_brought(store: Store) -> bool:
    """The table of weights that were evaluated and not trained here; whether there are any."""
    from statetrack.results import EvaluatedRecord
    from statetrack.results.long_table import long_rows
    from statetrack.verdicts.measurements import tested

    found = {record.cell.key: record for record in store.records() if isinstance(record, EvaluatedRecord)}
    rows = [row | {"weights": found[row["key"]].weights.sha256[:8],
                   BROKEN: shortened(found[row["key"]].broken_by, 14)}
            for row in long_rows(found.values(), tested) if row["solved"] is not None]  # fmt: skip
    if rows:
        say("evaluated, not trained here:")
        _print(("task", "model", "weights", *SHOWN_BROUGHT, BROKEN), rows)
    return bool(rows)


def _print(columns: Sequence[str], rows: list[dict[str, Any]]) -> None:
    called = [column for column in ("task", "subject", "model") if column in columns]
    names = {column: short_names(row[column] for row in rows) for column in called}
    named = [row | {column: names[column][row[column]] for column in names} for row in rows]
    print_table(columns, [[_short(row.get(column)) for column in columns] for row in named], SHARED)


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return fixed(value, 4)
    return f"{value:,}" if isinstance(value, int) and value > 9999 else "" if value is None else str(value)
