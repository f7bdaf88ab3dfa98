"""A number with its noun and verb."""

from __future__ import annotations


def plural(count: int, noun: str, one: str = "", many: str = "") -> str:
    """The number and the noun, with what follows them, a verb mostly, for one and for many.

    >>> plural(1, "result"), plural(0, "result"), plural(1200, "row", "is", "are")
    ('1 result', '0 results', '1,200 rows are')
    """
    words = f"{noun} {one}" if count == 1 else f"{noun}s {many}"
    return f"{count:,} {words}".rstrip()
