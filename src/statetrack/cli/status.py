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

    found = status(Store.existing(folder))
    if as_json:
        print_json(found.to_dict())
    else:
        _print(found)
    return 1 if found.damaged or any(found.counts[name] for name in ("failed", "missing", "running")) else 0


def _print(found: Status) -> None:
    from statetrack.results.folder_status import ORDER, by_reason
    from statetrack.results.pace import duration

    rows = [[name, *(counts[each] for each in ORDER)] for name, counts in found.sweeps.items()]
    if len(rows) != 1 or found.beyond:
        rows.append(["all of the folder", *(found.counts[each] for each in ORDER)])
    print_table(["sweep", *ORDER], rows)
    if any(found.counts[name] for name in ("missing", "running", "failed")):
        units = f"{found.workers} at work now" if found.workers else "nobody is at work now, so for one worker"
        print(f"time left: {duration(found.seconds_left)} ({units})")
    for reason, count in found.skipped.items():
        print(f"skipped {count}: {reason}")
    for line in by_reason(found.failures):
        print(line)
    for damage in found.damaged:
        print(f"damaged: {damage}")
    if found.foreign:
        print(not_ours(found.foreign))
