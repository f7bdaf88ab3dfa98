"""How numbers are written wherever they appear: in a terminal, on the page, in tables, LaTeX, Markdown and data.

One rule: they are rounded, but a number below 1 never reads as 1. A share of .9996 is `.999`, and only 1 is `1`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

MOST_NAMED = 5  # files that are named one by one
DIGITS = 6  # significant ones of numbers in figures and their CSV files
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
RULE = "rounded to three digits; only a 1 reads as 1"


def visible(text: str) -> str:
    r"""A text from elsewhere as a terminal may show it: control characters, and those that turn the direction of
    writing, are written out; line breaks and tabs stay.

    >>> print(visible("so \x1b[31mred\x07 \u202e"))
    so \x1b[31mred\x07 \u202e
    """
    return CONTROL.sub(lambda sign: ascii(sign[0])[1:-1], text)


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
    """A number with the digits that matter; anything but a float stays as it is.

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


def spread(values: Sequence[int], most: int) -> list[int]:
    """At most so many of some values, the first and the last among them, evenly over their places.

    >>> spread(range(5, 505, 5), 4), spread([5, 10], 4)
    ([5, 170, 335, 500], [5, 10])
    """
    if len(values) <= most:
        return list(values)
    return [values[round(place * (len(values) - 1) / (most - 1))] for place in range(most)]


def shortened(text: str, most: int = 40) -> str:
    """
    >>> shortened("1 0^22"), shortened("0 1 " * 20, 12)
    ('1 0^22', '0 1 0 1 ...')
    """
    return text if len(text) <= most else f"{text[: most - 4].rstrip()} ..."


def verb(count: int, one: str = "is", more: str = "are") -> str:
    return one if count == 1 else more


def not_ours(names: Sequence[str]) -> str:
    """What is said of files in a folder of results that statetrack did not write.

    >>> not_ours(["log.json"]), not_ours([f"{n}.json" for n in range(9)])[:40]
    ('1 file is not a result of statetrack and is left alone: log.json', '9 files are not results of statetrack an')
    """
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    told = plural(len(names), "file", "is not a result of statetrack and is", "are not results of statetrack and are")
    return f"{told} left alone: {', '.join(names[:MOST_NAMED])}{more}"


def without_hash(name: str) -> str:
    """The name of a task or a model without the hash of its file, which says nothing to a reader.

    >>> without_hash("mine.py:Model[dim=8,sha256=0123abcd]"), without_hash("gru[hidden=64]")
    ('mine.py:Model[dim=8]', 'gru[hidden=64]')
    """
    return re.sub(r"\[sha256=\w+\]|,sha256=\w+|sha256=\w+,", "", name)


def short_names(names: Iterable[str]) -> dict[str, str]:
    """What a table for people calls tasks and models: without the hash of a file and the folder that it is in, unless
    two of them could then not be told apart.

    >>> short_names(["mlp", "runs/own.py:Counter[width=8,sha256=4f46d472]"])
    {'mlp': 'mlp', 'runs/own.py:Counter[width=8,sha256=4f46d472]': 'own.py:Counter[width=8]'}
    """
    return told_apart({name: _without_folder(name) for name in names})


def told_apart(short: dict[str, str]) -> dict[str, str]:
    """The short name of each, or the whole one where two would look alike."""
    uses = Counter(short.values())
    return {name: short_name if uses[short_name] == 1 else name for name, short_name in short.items()}


def _without_folder(name: str) -> str:
    return re.sub(r'(^|[="])[^[,="]*/', r"\1", without_hash(name)) if "sha256=" in name else name


def first_sentence(text: str | None) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((text or "").strip().partition("\n\n")[0].split())
