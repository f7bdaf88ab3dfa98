"""Numbers to text and back, a million at a time.

Writing: every word of the alphabet stands once in a table, with the separator behind it and filled up with zero bytes
to one width. One look-up per number puts the words side by side; dropping the zero bytes leaves the text.

    codes 5, 117 and the separator " "    ->  "5 \\0\\0" "117 "    ->  "5 117 "

The separator behind the last word of a row is made of zero bytes too, so rows follow each other without it.

>>> words = Words(np.array([b"0", b"1", b"117"]), b" ")
>>> data, starts = words.join(np.array([2, 0, 1]), np.array([0, 2, 3]))
>>> data.tobytes(), starts.tolist()
(b'117 01', [0, 5, 6])
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Starts = NDArray[np.int64]  # where each row starts in the flat array, and after the last one where it ends

_SPACE, _LINE, _ZERO, _NINE = b" \n09"
MOST_DIGITS = 18  # what a 64-bit integer always holds


class Words:
    """The texts of an alphabet, ready to be joined with a separator."""

    def __init__(self, texts: NDArray[np.bytes_], separator: bytes) -> None:
        self.separator = len(separator)
        filled = np.char.add(texts, separator)
        self.sizes = np.char.str_len(filled).astype(np.int32)
        width = 1 << int(self.sizes.max() - 1).bit_length()  # numpy looks up 1, 2, 4, 8 or 16 bytes as one
        self.table = filled.astype(f"S{width}").view(f"V{width}")

    def join(self, codes: NDArray[np.integer], starts: Starts) -> tuple[Bytes, Starts]:
        """The text of every row, one after the other, and where each starts; no row may be empty."""
        spread = self.table.take(codes).view(np.uint8)
        last = starts[1:] - 1
        ends = last * self.table.itemsize + self.sizes[codes[last]]
        for back in range(1, self.separator + 1):
            spread[ends - back] = 0
        sizes = np.add.reduceat(self.sizes.take(codes), starts[:-1], dtype=np.int64) - self.separator
        return spread[spread != 0], np.concatenate([[0], np.cumsum(sizes)])


class NotNumbers(ValueError):
    """The text of row `row`, counted from 0, is not a list of whole numbers."""

    def __init__(self, row: int, problem: str) -> None:
        super().__init__(problem)
        self.row, self.problem = row, problem


def numbers(rows: Sequence[str]) -> tuple[NDArray[np.int64], Starts]:
    """The whole numbers of every row, which spaces separate, and where each row starts.

    >>> values, starts = numbers(["117 0", "1"])
    >>> values.tolist(), starts.tolist()
    ([117, 0, 1], [0, 2, 3])
    """
    text = "\n".join(rows)
    if text.count("\n") != len(rows) - 1 or "\t" in text or "\r" in text:  # other white space separates as well
        text = "\n".join(" ".join(row.split()) for row in rows)
    written = np.frombuffer(text.encode(), np.uint8)
    digit = (written >= _ZERO) & (written <= _NINE)
    lines = np.flatnonzero(written == _LINE)
    strange = np.flatnonzero(~digit & (written != _SPACE) & (written != _LINE))
    if len(strange):
        row = int(np.searchsorted(lines, strange[0]))
        raise NotNumbers(row, f"{_first_strange(rows[row])!r} is not the number of an element")
    before = np.concatenate([[False], digit, [False]])
    first = np.flatnonzero(digit & ~before[:-2])
    last = np.flatnonzero(digit & ~before[2:])
    starts = np.concatenate([[0], np.searchsorted(first, lines), [len(first)]])
    _check(starts, first, last)
    return _values(written, first, last), starts


def _first_strange(row: str) -> str:
    return next(word for word in row.split() if not (word.isascii() and word.isdigit()))


def _check(starts: Starts, first: NDArray[np.intp], last: NDArray[np.intp]) -> None:
    empty = np.flatnonzero(starts[1:] == starts[:-1])
    if len(empty):
        raise NotNumbers(int(empty[0]), "there is no number in it")
    long = np.flatnonzero(last - first >= MOST_DIGITS)
    if len(long):
        row = int(np.searchsorted(starts, long[0], side="right")) - 1
        raise NotNumbers(row, f"a number of {last[long[0]] - first[long[0]] + 1} digits is too long")


def _values(written: Bytes, first: NDArray[np.intp], last: NDArray[np.intp]) -> NDArray[np.int64]:
    """The value of the digits from `first` to `last`: their sum, weighted by powers of ten from the right."""
    values = np.zeros(len(first), np.int64)
    widths = last - first + 1
    for place in range(int(widths.max(initial=0))):
        here = np.flatnonzero(widths > place) if place else slice(None)
        values[here] += (written[last[here] - place].astype(np.int64) - _ZERO) * 10**place
    return values
