"""What the verbs print: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from statetrack.formatting import CONTROL, visible

UNCUT = 10_000  # columns where output is not a terminal: a program that reads lines should find them whole
GAP = 2  # between two columns
UNBROKEN = 16  # a cell of at most this many characters stays on one line

Row = Sequence[str]


def say(*parts: Any, sep: str = " ", end: str = "\n", file: Any = None, flush: bool = False) -> None:
    """`print` for what may hold words from elsewhere, as names of files and texts of records do: a terminal obeys no
    control character in them.
    """
    print(*(visible(str(part)) for part in parts), sep=sep, end=end, file=file, flush=flush)


def print_json(fields: Any) -> None:
    """One JSON value; NaN and infinity, which not every program can read, are refused."""
    text = json.dumps(fields, indent=2, ensure_ascii=False, allow_nan=False)
    # JSON leaves some control characters as they are, and a terminal would obey them.
    print("\n".join(CONTROL.sub(lambda sign: f"\\u{ord(sign[0]):04x}", line) for line in text.split("\n")))


def print_table(headers: Sequence[str], rows: Iterable[Sequence[Any]], groups: int = 0) -> None:
    """Columns side by side. In a terminal that is too narrow for them, nothing is cut off: the first
    `groups` columns become a line above the rows that share them; long cells are broken; and where that is not
    enough, each row is a list.
    """
    from rich.console import Console

    cells = [["" if cell is None else visible(str(cell)) for cell in row] for row in rows]
    width = Console().width if sys.stdout.isatty() else UNCUT
    if _total(_natural(headers, cells)) <= width:
        _print_columns(headers, cells, _natural(headers, cells))
        return
    spaced = [header.replace("_", " ") for header in headers]  # so that it can be broken
    widths = squeezed(spaced[groups:], [row[groups:] for row in cells], width)
    if widths is None:
        _print_lists(headers, cells)
    elif not groups:
        _print_columns(spaced, cells, widths)
    else:
        sharing: dict[str, list[Row]] = {}
        for row in cells:
            sharing.setdefault(", ".join(filter(None, row[:groups])), []).append(row[groups:])
        for number, (shared, same) in enumerate(sharing.items()):
            print(f"\n{shared}" if number else shared)
            _print_columns(spaced[groups:], same, widths)


def squeezed(headers: Row, rows: Sequence[Row], width: int) -> list[int] | None:
    """The widths of columns that fit, the widest made narrower first; None where there is no room for them.

    >>> squeezed(["model", "why"], [["mlp", "it has no state"], ["gru", "it holds the state so far"]], 24)
    [5, 17]
    """
    widths = _natural(headers, rows)
    least = [max(map(_least, column)) for column in zip(headers, *rows)]
    if _total(least) > width:
        return None
    while _total(widths) > width:
        _, widest = max((size, place) for place, size in enumerate(widths) if size > least[place])
        widths[widest] -= 1
    return widths


def _least(cell: str) -> int:
    """A short cell stays whole, a sentence may be broken between words, and a long name anywhere."""
    from rich.cells import cell_len

    words = [cell] if len(cell) <= UNBROKEN and any(map(str.isdigit, cell)) else cell.split() or [""]
    return min(UNBROKEN, max(map(cell_len, words)))


def _natural(headers: Row, rows: Sequence[Row]) -> list[int]:
    from rich.cells import cell_len

    return [max(map(cell_len, column)) for column in zip(headers, *rows)]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _print_columns(headers: Row, rows: Iterable[Row], widths: Sequence[int]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0))
    for header, width in zip(headers, widths):
        table.add_column(header, width=width, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console = Console(width=_total(widths), markup=False, highlight=False, emoji=False)
    with console.capture() as drawn:
        console.print(table)
    print("\n".join(line.rstrip(" ") for line in drawn.get().splitlines()))  # rich fills the last column up


def _print_lists(headers: Row, rows: Sequence[Row]) -> None:
    """A line for each cell that is not empty."""
    wide = max(map(len, headers)) + GAP
    lists = [[f"{header:<{wide}}{cell}" for header, cell in zip(headers, row) if cell] for row in rows]
    print("\n\n".join("\n".join(lines) for lines in lists))


def open_page(path: Path) -> None:
    """Show a page in the browser, or say that there is no browser."""
    import webbrowser

    if not webbrowser.open(path.resolve().as_uri()):
        say(f"note: no browser was found to open {path}", file=sys.stderr)
