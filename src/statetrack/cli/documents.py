"""`statetrack documents`: what two of the documents that statetrack grew from predict."""

from __future__ import annotations

from typing import Annotated

import typer

from statetrack.cli.output import print_json


def command(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List what two of the documents that statetrack grew from predict, section by section.

    One is the design document, "Synthetic Benchmark Design for Temporal Nonlinearity" (RTC, TXC, FSM and E88), the
    other the description of the "Permutation Composition Benchmark" (94 groups). A prediction that can be seen to be
    false before anything runs is marked so, with the argument. docs/README.md says more about both.

    Example: statetrack documents
    """
    from statetrack.verdicts import documents

    predictions = documents.predictions()
    if as_json:
        print_json([prediction.to_dict() for prediction in predictions])
        return
    for prediction in predictions:
        print(
            f"{'FALSE ' if prediction.false else ''}{prediction.key}: section {prediction.section}: {prediction.says}"
        )
        for line in prediction.argument:
            print(f"    {line}")
