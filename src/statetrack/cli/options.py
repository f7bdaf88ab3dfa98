"""Arguments and options that several verbs have."""

from __future__ import annotations

from typing import Annotated

import typer

from statetrack.cli import completion

TaskText = Annotated[
    str,
    typer.Argument(
        help="The task's text, such as s5, fsm[k=5,p=0.05] or mine.py:Mine.", autocompletion=completion.tasks
    ),
]
ModelText = Annotated[
    str,
    typer.Argument(
        help="A model's name, NAME[option=value], file.py:Class or package.module:Class.",
        autocompletion=completion.models,
    ),
]
TrustedCode = Annotated[
    list[str] | None,
    typer.Option("--trust", help="Run this code that a file names, mine.py:Class; may be repeated."),
]
TrustCode = Annotated[
    bool,
    typer.Option("--trust-code", help="Run all code that the files name, and print what it is (docs/security.md)."),
]
