"""`statetrack check`: whether a folder holds what was written into it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from statetrack.cli.output import print_json, say
from statetrack.formatting import plural


def command(
    folder: Annotated[Path, typer.Argument(help="A folder of cells.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Read every file of a folder and say what is damaged, in conflict, stale or not of statetrack.

    The exit code is 1 when something is damaged or in conflict, 0 otherwise.

    Example: statetrack check demo-results
    """
    from statetrack.asking import external
    from statetrack.results import Store
    from statetrack.results.check import check

    found, others = check(Store.existing(folder)), external.read(folder)
    why = {each.file: str(each) for each in others.left_out}
    found.foreign = [why.get(name, name) for name in sorted({*others.foreign(found.foreign), *why})]
    if as_json:
        print_json(found.to_dict())
    else:
        for what, lines in (("damaged", found.damaged), ("stale", found.stale), ("foreign", found.foreign)):
            for line in lines:
                say(f"{what}: {line}")
        for name in others.files:
            say(f"read: {name}, of another program")
        for conflict in found.conflicts:
            say(f"conflict: {conflict} differs")
        proofs = f", {plural(found.proofs, 'proof')}" if found.proofs else ""
        counted = f"{plural(found.records, 'record')}{proofs} and {plural(found.weights, 'file')} of weights are whole"
        say(f"{folder}: {counted}; {len(found.damaged)} damaged, {len(found.conflicts)} in conflict")
    return 1 if found.damaged or found.conflicts else 0
