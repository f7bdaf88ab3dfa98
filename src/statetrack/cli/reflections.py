"""`statetrack reflections`: how many reflections per token a group needs."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from statetrack.cli import completion
from statetrack.cli.output import print_json, say


def command(
    groups: Annotated[
        list[str],
        typer.Argument(metavar="GROUP...", help="Groups, such as s5, q8 or psl2_7.", autocompletion=completion.groups),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say how many reflections per token a group needs, in one head and with its parts in heads of their own.

    Example: statetrack reflections s3 s4 a5 q8
    """
    from statetrack.tasks.groups import group
    from statetrack.theory.algebra.reflections import least_reflections

    needed = {text: least_reflections(group(text)) for text in groups}
    if as_json:
        print_json({text: dataclasses.asdict(least) for text, least in needed.items()})
        return
    for text, least in needed.items():
        bound = "" if least.exact else " at most"
        say(f"{text:10}{bound} {least.least} reflections per token in one head, {least.each} each in {least.heads}")
