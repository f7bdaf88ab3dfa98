"""`statetrack results`: one row per cell, or one for each thing that a network was tested on."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statetrack.cli.external import name_left_out, of_others, print_external
from statetrack.cli.output import print_table, say
from statetrack.errors import BadInput
from statetrack.formatting import fixed, plural, shortened

if TYPE_CHECKING:
    from statetrack.asking.external import External
    from statetrack.results import Store

SIZE = "size"  # its parameters, and the numbers in its state
SHOWN = ("task", "subject", "protocol", SIZE, "length", "seed", "status", "accuracy", "floor", "tail_accuracy",
         "solved")  # fmt: skip
BROKEN, FOR_EVER = "broken by", "for ever"
SHOWN_LONG = ("task", "model", "protocol", "trained", "seed", "of", "tested", "case", "accuracy", "low", "high",
              "floor", "end_accuracy", "solved")  # fmt: skip
SHOWN_BROUGHT = ("trained", "seed", "of", "tested", "accuracy", "low", "high", "floor", "end_accuracy", "solved")
SHARED = 3  # of these columns, and of those of what was asked: what the rows of a group share


def command(
    folder: Annotated[Path, typer.Argument(help="A folder of cells, or of logs of other programs; or one such log.")],
    csv: Annotated[Path | None, typer.Option("--csv", help="Write a CSV file; - for standard output.")] = None,
    parquet: Annotated[Path | None, typer.Option("--parquet", help="Write a Parquet file.")] = None,
    long: Annotated[
        bool, typer.Option("--long", help="A row for each network and length, stream, case or word it was tested on.")
    ] = False,
) -> None:
    """Print the main numbers, or write those of every cell as CSV or Parquet.

    What was trained has one row per cell. What was asked has one row for all its samples, with its tokens. Results of
    lm-evaluation-harness and logs of Inspect are read, too: accuracies by length, in order.

    Example: statetrack results demo-results --long --csv demo.csv
    """
    from statetrack.asking import external
    from statetrack.reports.folder import protocols_told_apart
    from statetrack.results import Store, plans
    from statetrack.results.long_table import COLUMNS, long_rows
    from statetrack.results.table import columns, rows
    from statetrack.verdicts.measurements import tested

    if folder.is_file():
        _of_a_file(folder, csv, parquet, long)
        return
    store, found = Store.existing(folder), external.read(folder)
    trained = _trained(store, found)
    notes = {key: entry.note for key, entry in plans.entries(plans.saved(store)).items()}
    long = long or (bool(csv or parquet) and bool(found) and not any(store.records()))  # they have no wide table
    table = long_rows(store.records(), tested, notes) + of_others(found) if long else rows(store, notes)
    kinds = COLUMNS if long else dict.fromkeys(columns(table))
    if csv or parquet:
        _write(table, kinds, csv, parquet)
        return
    if long and table:
        _print(SHOWN_LONG, [row | _floor(row) for row in table])
        return
    protocols = protocols_told_apart(record.cell for record in store.records() if record.cell.key in trained)
    table = [row | {"protocol": protocols.get(row["key"]), SIZE: _size(row)} for row in table]
    shown = [print_asked(store), bool(trained), print_external(found)]
    if trained:
        told = [row | {BROKEN: shortened(row.get("words.broken_by", ""), 14), FOR_EVER: row.get("for_ever.standing")}
                for row in table if row["key"] in trained]  # fmt: skip
        _print((*SHOWN, BROKEN, *([FOR_EVER] if any(row[FOR_EVER] for row in told) else [])), told, SHARED + 1)
    if not print_brought(store) and not any(shown):
        say(f"{folder} holds no results yet")


def _write(table: list[dict[str, Any]], kinds: Mapping[str, Any], csv: Path | None, parquet: Path | None) -> None:
    from statetrack.results.table import save_csv, save_parquet

    if csv:
        count = save_csv(table, list(kinds), sys.stdout if str(csv) == "-" else csv)
        if str(csv) != "-":
            say(f"{csv}: {plural(count, 'row')}")
    if parquet:
        say(f"{parquet}: {plural(save_parquet(table, kinds, parquet), 'row')}")


def _of_a_file(path: Path, csv: Path | None, parquet: Path | None, long: bool) -> None:
    """The results of a harness, or a log: always as the long table where it is written."""
    from statetrack.asking import external
    from statetrack.results.long_table import COLUMNS

    found = external.read(path)
    if not found:
        raise BadInput(str(found.left_out[0]))
    if csv or parquet:
        _write(of_others(found), COLUMNS, csv, parquet)
    elif long:
        _print(SHOWN_LONG, of_others(found))
    else:
        print_external(found)
        name_left_out(found)


def _trained(store: Store, found: External) -> set[str]:
    """The keys of what was trained; what is damaged or not ours is named."""
    from statetrack.results import Damage
    from statetrack.results.cell import TRAIN

    trained = set()
    for key, entry in store.entries():
        if isinstance(entry, Damage):
            say(f"damaged, left out: {entry}", file=sys.stderr)
        elif entry.cell.kind == TRAIN:
            trained.add(key)
    name_left_out(found, store.foreign())
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
    rows = [row | _floor(row) | {"weights": found[row["key"]].weights.sha256[:8],
                   BROKEN: shortened(found[row["key"]].broken_by, 14)}
            for row in long_rows(found.values(), tested) if row["solved"] is not None]  # fmt: skip
    if rows:
        say("evaluated, not trained here:")
        _print(("task", "model", "weights", *SHOWN_BROUGHT, BROKEN), rows)
    return bool(rows)


def _floor(row: dict[str, Any]) -> dict[str, Any]:
    """The floor beside the accuracy that is shown: of a stream both are of the last positions before the mark."""
    return {"floor": row["end_floor"] if row["of"] == "stream" else row["floor"]}


def _size(row: dict[str, Any]) -> str:
    """
    >>> _size({"parameters": 9098, "state_size": 256}), _size({})
    ('9,098 parameters, state 256', '')
    """
    if row.get("parameters") is None:
        return ""
    state = row.get("state_size")
    return plural(row["parameters"], "parameter") + ("" if state is None else f", state {state:,}")


def _print(columns: Sequence[str], rows: list[dict[str, Any]], shared: int = SHARED) -> None:
    from statetrack.results.own_names import names_now

    called = [column for column in ("task", "subject", "model") if column in columns]
    names, lines = names_now(row[column] for column in called for row in rows)
    named = [row | {column: names[row[column]] for column in called} for row in rows]
    print_table(columns, [[_short(row.get(column)) for column in columns] for row in named], shared)
    for line in lines:
        say(line)


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return fixed(value, 4)
    return f"{value:,}" if isinstance(value, int) and value > 9999 else "" if value is None else str(value)
