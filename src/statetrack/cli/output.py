"""What the verbs print: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

UNCUT = 10_000  # columns where nobody looks on: a program that reads lines should find them whole


def print_json(fields: Any) -> None:
    """One JSON value, with what a program may not read as a number kept out."""
    print(json.dumps(fields, indent=2, ensure_ascii=False, allow_nan=False))


def print_table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Columns side by side; on a terminal, long cells are wrapped to its width."""
    from rich.console import Console
    from rich.table import Table

    table = Table(*headers, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row))
    console = Console(width=None if sys.stdout.isatty() else UNCUT, markup=False, highlight=False, emoji=False)
    console.print(table)


def first_sentence(text: str | None) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((text or "").strip().partition("\n\n")[0].split())
