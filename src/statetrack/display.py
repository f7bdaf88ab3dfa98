"""How results look at a prompt and in a notebook: a short table as text, the same as HTML with a figure under it.

What is shown says itself what its table holds (`Shown.card`). Figures and the long table are made by packages that
stand above it in the layers, so that it must not import them. `statetrack/__init__.py`, which stands above all, names
the module that makes them (`made_by`), which is imported, with all that it needs, when the first is asked for.
"""

from __future__ import annotations

import html
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from statetrack.formatting import visible

MOST_ROWS = 24  # of a table at a prompt; the long table has all
GAP = "  "
ONE_LINE = 32  # characters of a cell that a notebook does not break
_maker = ""

Row = Sequence[str]


def made_by(module: str) -> None:
    """Name the module whose `figures`, `figure`, `inline` and `to_pandas` make what is asked for here."""
    global _maker
    _maker = module


def _make() -> Any:
    return importlib.import_module(_maker)


@dataclass(frozen=True)
class Table:
    """A header and rows, all of them text.

    >>> print(Table(["length", "accuracy"], [["16", "1.0000"], ["1,024", "0.5017"]]).text())
    length  accuracy
    16      1.0000
    1,024   0.5017
    """

    headers: Row
    rows: Sequence[Row]

    @property
    def left_out(self) -> int:
        return max(0, len(self.rows) - MOST_ROWS)

    def text(self) -> str:
        lines = [[visible(cell) for cell in row] for row in (self.headers, *self.rows[:MOST_ROWS])]
        widths = [max(map(len, column)) for column in zip(*lines)]
        told = [GAP.join(f"{cell:<{width}}" for cell, width in zip(line, widths)).rstrip() for line in lines]
        return "\n".join([*told, *([f"... and {self.left_out:,} more"] if self.left_out else [])])

    def html(self) -> str:
        head = "".join(_tag("th", name) for name in self.headers)
        rows = [f"<tr>{''.join(_tag('td', cell) for cell in row)}</tr>" for row in self.rows[:MOST_ROWS]]
        more = f"<div>... and {self.left_out:,} more</div>" if self.left_out else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{more}"


def _tag(name: str, cell: str) -> str:
    """Short cells stay on one line: an interval that is broken in two makes its table twice as high."""
    style = "text-align: left; white-space: nowrap" if len(cell) <= ONE_LINE else "text-align: left"
    return f'<{name} style="{style}">{html.escape(visible(cell))}</{name}>'


@dataclass(frozen=True)
class Card:
    """A title, tables, and lines above and below them."""

    title: str
    tables: Sequence[Table] = ()
    above: Sequence[str] = ()
    below: Sequence[str] = ()

    def text(self) -> str:
        parts = ["\n".join(map(visible, [self.title, *self.above])), *(table.text() for table in self.tables)]
        return "\n\n".join([*parts, *(["\n".join(map(visible, self.below))] if self.below else [])])

    def html(self) -> str:
        above, below = ("".join(f"<div>{html.escape(visible(line))}</div>" for line in lines)
                        for lines in (self.above, self.below))  # fmt: skip
        tables = "".join(table.html() for table in self.tables)
        return f"<div><b>{html.escape(visible(self.title))}</b></div>{above}{tables}{below}"


class Shown:
    """What is shown as a card, with its first figure in a notebook."""

    drawn_first: ClassVar[Sequence[str]] = ()  # names of figures: the first that there is goes with the card

    def card(self) -> Card:
        raise NotImplementedError

    def contents(self) -> tuple[Sequence[Any], Sequence[Any]]:
        """The records and the diagnoses that figures are made of."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.card().text()

    def _repr_html_(self) -> str:
        return self.card().html() + str(_make().inline(self))

    def figures(self) -> dict[str, Any]:
        """Every figure that can be drawn of it, by name. A notebook shows it inline, `.save("it.pdf")` writes it."""
        made: dict[str, Any] = _make().figures(self)
        return made

    def figure(self, name: str | None = None) -> Any:
        """One of the figures by its name, or the first."""
        return _make().figure(self, name)


class Measured(Shown):
    """What has rows of the long table as well."""

    def to_pandas(self) -> Any:
        """The long table as a pandas.DataFrame: a row for each network and thing that it was tested on."""
        return _make().to_pandas(self)
