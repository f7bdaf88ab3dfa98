"""Options that several verbs have."""

from __future__ import annotations

from typing import Annotated

import typer

TrustedCode = Annotated[
    list[str] | None,
    typer.Option("--trust", help="Run this code that a file names, mine.py:Class; may be repeated."),
]
TrustCode = Annotated[
    bool,
    typer.Option("--trust-code", help="Run all code that the files name, and print what it is (docs/security.md)."),
]
