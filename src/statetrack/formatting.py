"""How numbers are written, in what verbs print, page, tables, LaTeX, Markdown and data alike.

One rule: they are rounded, but what is below 1 never reads as 1. A share of .9996 is `.999`, and only 1 is `1`.
"""

from __future__ import annotations

from typing import Any

DIGITS = 6  # significant ones of numbers in figures and their CSV files
RULE = "rounded to three digits; only a 1 reads as 1"


def fixed(value: float, digits: int = 3) -> str:
    """
    >>> fixed(0.4996), fixed(0.9996), fixed(0.99996, 4), fixed(1.0)
    ('0.500', '0.999', '0.9999', '1.000')
    """
    text = f"{value:.{digits}f}"
    return f"{1 - 10**-digits:.{digits}f}" if value < 1 <= float(text) else text


def brief(value: float) -> str:
    """Three digits that matter.

    >>> brief(0.00012345), brief(0.9996), brief(1.0)
    ('0.000123', '0.999', '1')
    """
    text = f"{value:.3g}"
    return "0.999" if value < 1 <= float(text) else text


def shown(share: float) -> str:
    """A share as a sentence or a narrow cell writes it.

    >>> shown(1.0), shown(0.99996), shown(0.5), shown(0.4996)
    ('1', '.999', '.500', '.500')
    """
    return "1" if share >= 1 else fixed(share)[1:]


def number(value: float) -> str:
    """A number of a table's column.

    >>> number(0.98764), number(0.9996), number(12345.6), number(0.00000123)
    ('0.988', '0.999', '12,346', '1.23e-06')
    """
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if 0 < abs(value) < 0.001:
        return f"{value:.3g}"
    return fixed(value)


def short(value: Any) -> Any:
    """A number with the digits that matter; what is no float stays as it is.

    >>> short(0.123456789), short(0.99999999), short(3.0), short("a")
    (0.123457, 0.999999, 3, 'a')
    """
    if not isinstance(value, float):
        return value
    rounded = float(f"{value:.{DIGITS}g}")
    if value < 1 <= rounded:
        return 1 - 10**-DIGITS
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def plural(count: int, noun: str, one: str = "", many: str = "") -> str:
    """The number and the noun, with what follows them, a verb mostly, for one and for many.

    >>> plural(1, "result"), plural(0, "result"), plural(1200, "row", "is", "are")
    ('1 result', '0 results', '1,200 rows are')
    """
    words = f"{noun} {one}" if count == 1 else f"{noun}s {many}"
    return f"{count:,} {words}".rstrip()


def verb(count: int, one: str = "is", more: str = "are") -> str:
    return one if count == 1 else more
