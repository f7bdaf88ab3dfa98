"""A table, and how it is written as HTML, Markdown and LaTeX. Every cell is escaped: names may hold anything."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from statetrack.formatting import number
from statetrack.reports.latex import latex_table
from statetrack.results.plans import FIRST_RULES

LONGEST_NAME, SHORT = 32, 18  # letters of a word, or of a few, that are not broken
SIGNS = {"confirmed": "✓", "refuted": "✗", "undecided": "?"}


@dataclass(frozen=True)
class OutcomeCell:
    """A verdict, and the one by the first rules where it differs."""

    outcome: str
    before: str = ""

    def __str__(self) -> str:
        return f"{self.outcome} ({self.note})" if self.before else self.outcome

    @property
    def note(self) -> str:
        return f"by rules {FIRST_RULES}: {self.before}" if self.before else ""


@dataclass(frozen=True)
class TextWithNote:
    """A text with a smaller one under it."""

    text: str
    small: str

    def __str__(self) -> str:
        return f"{self.text} ({self.small})" if self.small else self.text


@dataclass(frozen=True)
class Table:
    """`folded` tables are shown closed; on a phone, a row of `sentences` is shown as a card."""

    key: str
    title: str
    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[Any]]
    folded: bool = False
    download: bool = False  # of its rows as CSV
    sentences: bool = False

    def csv(self) -> str:
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.headers)
        writer.writerows([["" if cell is None else cell for cell in row] for row in self.rows])
        return file.getvalue()

    def html(self) -> str:
        sides = [
            ' class="number"' if _side([row[at] for row in self.rows]) == "r" else "" for at in range(len(self.headers))
        ]
        head = "".join(f'<th scope="col"{side}>{html.escape(name)}</th>' for name, side in zip(self.headers, sides))
        labels = [f' data-label="{html.escape(name)}"' if self.sentences else "" for name in self.headers]
        body = "".join(f"<tr>{''.join(map(_td, row, labels))}</tr>" for row in self.rows)
        kind = "sortable sentences" if self.sentences else "sortable"
        table = f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        return f'<div class="scroll">{table}</div>'

    def markdown(self) -> str:
        lines = [_line(map(markdown, self.headers)), _line("---" for _ in self.headers)]
        lines += [_line(markdown(text_of(cell)) for cell in row) for row in self.rows]
        return "\n".join(lines)

    def latex(self) -> str:
        """A table that fits the page, numbers to the right (`reports/latex.py`)."""
        sides = [_side([row[at] for row in self.rows]) for at in range(len(self.headers))]
        rows = [[text_of(cell) for cell in row] for row in self.rows]
        return latex_table(self.key, self.caption, self.headers, rows, sides)


def _td(cell: Any, label: str = "") -> str:
    if isinstance(cell, OutcomeCell):
        sign = SIGNS.get(cell.outcome, "")
        outcome = html.escape(cell.outcome)
        note = f"<small>{html.escape(cell.note)}</small>" if cell.before else ""
        return f'<td{label}><span class="chip {outcome}">{sign} {outcome}</span>{note}</td>'
    if isinstance(cell, TextWithNote):
        small = f"<small>{html.escape(cell.small)}</small>" if cell.small else ""
        return f"<td{label}><span>{html.escape(cell.text)}{small}</span></td>"
    text = text_of(cell)
    if _is_number(cell):
        return f'<td class="number" data-value="{cell!r}"{label}>{html.escape(text)}</td>'
    short = len(text) <= (SHORT if " " in text else LONGEST_NAME)
    kind = ' class="name"' if short else ""
    return f"<td{kind}{label}>{html.escape(text)}</td>"


def text_of(cell: Any) -> str:
    """
    >>> text_of(0.98764), text_of(12345), text_of(True), text_of(None)
    ('0.988', '12,345', 'yes', '')
    """
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float):
        return number(cell)
    return str(cell)


def _line(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def markdown(text: str) -> str:
    """As text and nothing else: no HTML, no column, no emphasis.

    >>> markdown("<b>|x_1|")
    '&lt;b&gt;\\\\|x\\\\_1\\\\|'
    """
    escaped = html.escape(" ".join(text.split()), quote=False)
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", escaped)


def _side(cells: Sequence[Any]) -> str:
    told = [cell for cell in cells if cell is not None]
    return "r" if told and all(map(_is_number, told)) else "l"


def _is_number(cell: Any) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)
