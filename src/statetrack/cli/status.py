"""`statetrack status`: how far a folder of cells has got."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statetrack.cli.output import print_json, print_table
from statetrack.formatting import not_ours

if TYPE_CHECKING:
    from statetrack.results import Status


def command(
    folder: Annotated[Path, typer.Argument(help="A folder of cells.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Say what is done, running, failed, skipped and missing, what is damaged, and how long the rest may take.

    The exit code is 0 when nothing is failed, missing or damaged, 1 otherwise.

    Example: statetrack status demo-results
    """
    from statetrack.results import Store, status

    standing = status(Store.existing(folder))
    if as_json:
        print_json(standing.to_dict())
    else:
        _print(standing)
    return 1 if standing.damaged or any(standing.counts[name] for name in ("failed", "missing", "running")) else 0


def _print(standing: Status) -> None:
    from statetrack.results.folder_status import ORDER, by_reason
    from statetrack.results.pace import duration

    rows = [[name, *(counts[column] for column in ORDER)] for name, counts in standing.sweeps.items()]
    if len(rows) != 1 or standing.beyond:
        rows.append(["all of the folder", *(standing.counts[column] for column in ORDER)])
    print_table(["sweep", *ORDER], rows)
    if any(standing.counts[name] for name in ("missing", "running", "failed")):
        units = f"{standing.workers} at work now" if standing.workers else "nobody is at work now, so for one worker"
        print(f"time left: {duration(standing.seconds_left)} ({units})")
    for reason, count in standing.skipped.items():
        print(f"skipped {count}: {reason}")
    for line in by_reason(standing.failures):
        print(line)
    for holder in standing.still:
        print(f"not moving: {holder}")
    for damage in standing.damaged:
        print(f"damaged: {damage}")
    if standing.foreign:
        print(not_ours(standing.foreign))
