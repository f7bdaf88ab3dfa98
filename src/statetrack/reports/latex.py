"""A table as LaTeX that fits the page: booktabs, in the largest letters in which it fits the line; where it does not,
with columns that break their lines; and over several pages where it is too long for one.

Widths are those of Computer Modern in a line of 345 pt, the one of `article`, and written as shares of the line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

SIGNS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "≥": r"$\geq$", "–": "--", "∘": r"$\circ$", "²": r"$^2$", "×": r"$\times$",
}  # fmt: skip
LINE, PAGE = 345.0, 500.0  # pt; a page less its caption
LETTERS = {3.0: "fijl.,:;'!|[] ", 3.9: "rst()-I", 4.4: "cez", 5.5: "bdhknpquvxy", 7.3: "w", 8.4: "m%", 10.0: "MW—"}
WIDTHS = {letter: wide for wide, letters in LETTERS.items() for letter in letters}  # pt; others: 5, capitals 7.2
NOTHING, STEP = 1.0, 2.0  # pt: the width of a column that is empty, and what one is widened by
ROOM = 1.02  # letters are not all as wide as they are taken to be
# Inside a name, and in the middle of a cell's key; TeX itself breaks at hyphens.
BREAKS = re.compile(r"(?<=[_/:=+|])(?=\S)|(?<=,)(?=[^\s\d])|(?<=[0-9a-f]{10})(?=[0-9a-f]{10}$)")
PIECES = re.compile(rf"\s+|(?<=[–-])|{BREAKS.pattern}")


@dataclass(frozen=True)
class Size:
    """A size of letters: its command, how wide a letter is beside one of 10 pt, the height of a line, and the space
    between two columns, both in pt.
    """

    command: str
    scale: float
    leading: float
    gap: float


SIZES = (
    Size("", 1.0, 12.0, 12.0), Size(r"\small", 0.925, 11.0, 10.0), Size(r"\footnotesize", 0.85, 9.5, 8.0),
    Size(r"\scriptsize", 0.8, 8.0, 4.0), Size(r"\tiny", 0.74, 6.0, 3.0),
)  # fmt: skip


def escaped(text: str) -> str:
    return "".join(SIGNS.get(letter, letter) for letter in text)


def latex_table(
    key: str, caption: str, headers: Sequence[str], rows: Sequence[Sequence[str]], sides: Sequence[str]
) -> str:
    """`sides` has r for columns of numbers and l for all others."""
    columns = list(zip(headers, *rows)) or [(header,) for header in headers]
    size, widths = _fitting(columns)
    cells = [[_broken(cell) if widths else escaped(cell) for cell in row] for row in (headers, *rows)]
    head, *body = [" & ".join(row) + r" \\" for row in cells]
    kinds = "".join(sides) if widths is None else "".join(map(_kind, sides, widths))
    heights = [_lines(row, size, widths) * size.leading for row in (headers, *rows)]
    write = _on_pages if sum(heights) > PAGE else _on_one
    packages = ["booktabs", *(["array"] if widths else []), *(["longtable"] if write is _on_pages else [])]
    gap = rf"\setlength{{\tabcolsep}}{{{size.gap / 2:g}pt}}" if size.command or widths else ""
    needs = rf"% needs \usepackage{{{','.join(packages)}}}"
    return "\n".join([needs, *write(key, caption, kinds, f"{size.command}{gap}", head, body)]) + "\n"


def _on_one(key: str, caption: str, kinds: str, style: str, head: str, body: list[str]) -> list[str]:
    return [
        r"\begin{table}", rf"\centering{style}", rf"\begin{{tabular}}{{{kinds}}}", r"\toprule", head, r"\midrule",
        *body, r"\bottomrule", r"\end{tabular}", rf"\caption{{{escaped(caption)}}}", rf"\label{{tab:{key}}}",
        r"\end{table}",
    ]  # fmt: skip


def _on_pages(key: str, caption: str, kinds: str, style: str, head: str, body: list[str]) -> list[str]:
    """The head stands again on every page, the caption above the first."""
    above = [r"\toprule", head, r"\midrule"]
    return [
        f"{{{style}", rf"\begin{{longtable}}{{{kinds}}}", rf"\caption{{{escaped(caption)}}}\label{{tab:{key}}} \\",
        *above, r"\endfirsthead", *above, r"\endhead", r"\bottomrule", r"\endfoot", *body, r"\end{longtable}", "}",
    ]  # fmt: skip


def _fitting(columns: Sequence[Sequence[str]]) -> tuple[Size, list[float] | None]:
    """The letters, and the widths of columns that break their lines; None where none has to.

    Whole lines in letters down to \\footnotesize come first, then broken ones down to \\tiny; where not even that fits,
    columns are narrowed in proportion, and a very long name may stand out.
    """
    whole = [max(map(width, column)) for column in columns]
    least = [max(NOTHING, *(width(piece) for cell in column for piece in PIECES.split(cell))) for column in columns]
    for size in SIZES[:-2]:
        if sum(whole) * size.scale + size.gap * len(columns) <= LINE:
            return size, None
    for size in SIZES[1:]:
        free = (LINE - size.gap * len(columns)) / size.scale
        if sum(least) * ROOM <= free:
            return size, [each * size.scale for each in _shared(free, [each * ROOM for each in least], whole)]
    free = LINE - size.gap * len(columns)
    return size, [each / sum(least) * free for each in least]


def _shared(free: float, least: Sequence[float], whole: Sequence[float]) -> list[float]:
    """Widths of `free` in all: what a column needs at least, and of the rest always a little to the one whose longest
    cell takes the most lines.
    """
    widths = list(least)
    while sum(widths) + STEP <= free:
        at = max(range(len(widths)), key=lambda place: whole[place] / widths[place])
        if whole[at] <= widths[at]:
            break
        widths[at] += STEP
    return widths


def _lines(row: Sequence[str], size: Size, widths: Sequence[float] | None) -> int:
    """How many lines a row takes, about."""
    if widths is None:
        return 1
    return max(math.ceil(1.1 * width(cell) * size.scale / wide) for cell, wide in zip(row, widths)) or 1


def width(text: str) -> float:
    """In pt, about, in letters of 10 pt.

    >>> width("0.999"), width("mamba")
    (23.0, 32.3)
    """
    return round(sum(WIDTHS.get(sign, 7.2 if sign.isupper() else 5.0) for sign in text), 1)


def _broken(text: str) -> str:
    """With places where a name that holds no space may be broken."""
    return r"\allowbreak{}".join(map(escaped, BREAKS.split(text)))


def _kind(side: str, wide: float) -> str:
    ragged = r"\raggedleft" if side == "r" else r"\raggedright"
    return rf">{{{ragged}\arraybackslash}}p{{{math.floor(1000 * wide / LINE) / 1000:.3f}\linewidth}}"
