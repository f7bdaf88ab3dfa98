"""`statetrack documents`: what the two documents predict that statetrack began with."""

from __future__ import annotations

from typing import Annotated

import typer

from statetrack.cli.output import print_json


def command(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List what the two documents that statetrack began with predict, with the place; what is false has its argument.

    Example: statetrack documents
    """
    from statetrack.verdicts import documents

    known = documents.predictions()
    if as_json:
        print_json([each.to_dict() for each in known])
        return
    for each in known:
        print(f"{'FALSE ' if each.false else ''}{each.key}: section {each.section}: {each.says}")
        for line in each.argument:
            print(f"    {line}")
