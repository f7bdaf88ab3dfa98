"""Arguments and options that several verbs have."""

from __future__ import annotations

from typing import Annotated

import typer

from statetrack.cli import completion
from statetrack.errors import BadInput, shortened

DIGITS = 9  # of a part

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


def read_part(text: str) -> tuple[int, int]:
    """
    >>> read_part("2/4")
    (2, 4)
    """
    number, slash, parts = text.partition("/")
    if not (slash and all(part.isascii() and part.isdecimal() and len(part) <= DIGITS for part in (number, parts))):
        raise BadInput(f"--part {shortened(text, quoted=False)} should be of the form 2/4")
    return int(number), int(parts)
