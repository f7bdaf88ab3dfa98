"""`statetrack predict`: what theory says of a model on a task."""

from __future__ import annotations

from typing import Annotated

import typer

from statetrack.cli.options import ModelText, TaskText
from statetrack.cli.output import print_json, say


def command(
    model: ModelText,
    task: TaskText,
    training: Annotated[
        bool, typer.Option("--training", help="Say what training finds, instead of which weights exist.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what theory predicts for a model on a task: every length, grows with depth, fades, cannot or unknown.

    Example: statetrack predict e88-gain-1l s3
    """
    from statetrack import tasks, theory

    prediction = theory.predict(model, tasks.task(task), "training" if training else "weights")
    if as_json:
        print_json(prediction.to_dict())
    else:
        say(prediction.text())
