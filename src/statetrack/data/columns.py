"""A column of a data set, in bulk: the same numbers as JSON text or as an Arrow array.

The kinds are the ones that data sets of tasks need: `Joined` ("3 1 4"), `Listed` ([3, 1, 4]), `Whole` (one integer per
row) and `Same` (one value for all rows).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from statetrack.data.text import Starts, Words
from statetrack.errors import need


def arrow() -> Any:
    """pyarrow, which only Parquet files and data set folders need."""
    return need("pyarrow", "data", "a Parquet file or a data set folder")


class Codebook:
    """What the codes 0..n-1 stand for. With `gaps`, the code n stands for nothing: no answer is asked for there.

    >>> Codebook(np.array([0.0, 0.5]), gaps=True).texts.tolist()
    [b'0.0', b'0.5', b'null']
    """

    def __init__(self, values: NDArray[Any], gaps: bool = False) -> None:
        self.values, self.gaps = values, gaps

    @property
    def texts(self) -> NDArray[np.bytes_]:
        """What JSON writes for each of them."""
        texts = self.values.astype(np.bytes_)
        if self.values.dtype.kind not in "iu":
            texts = np.array([json.dumps(value).encode() for value in self.values.tolist()])
        return np.append(texts, b"null") if self.gaps else texts

    @cached_property
    def spaced(self) -> Words:
        return Words(self.texts, b" ")

    @cached_property
    def listed(self) -> Words:
        return Words(self.texts, b", ")


class Column(Protocol):
    """What a file format asks of a column."""

    def json(self) -> Sequence[bytes] | bytes:
        """The JSON text of every row, or one text for all."""

    def arrow(self, rows: int) -> Any:
        """A pyarrow array of this many rows."""


@dataclass(frozen=True)
class Coded:
    """Codes of an alphabet, those of each row from its start to the next one's."""

    alphabet: Codebook
    codes: NDArray[np.int32]
    starts: Starts


class Joined(Coded):
    """Words with spaces between them, as one string per row."""

    def json(self) -> list[bytes]:
        return [b'"%b"' % text for text in _cut(*self.alphabet.spaced.join(self.codes, self.starts))]

    def arrow(self, rows: int) -> Any:
        pa = arrow()
        data, starts = self.alphabet.spaced.join(self.codes, self.starts)
        return pa.StringArray.from_buffers(rows, pa.py_buffer(starts.astype(np.int32)), pa.py_buffer(data))


class Listed(Coded):
    """A list of numbers for each row."""

    def json(self) -> list[bytes]:
        return [b"[%b]" % text for text in _cut(*self.alphabet.listed.join(self.codes, self.starts))]

    def arrow(self, rows: int) -> Any:
        pa = arrow()
        values = self.alphabet.values
        nothing = self.codes >= len(values)
        codes = np.where(nothing, 0, self.codes) if self.alphabet.gaps else self.codes
        numbers = pa.array(values[codes], mask=nothing if self.alphabet.gaps else None)
        return pa.ListArray.from_arrays(pa.array(self.starts.astype(np.int32)), numbers)


@dataclass(frozen=True)
class Whole:
    """One integer per row."""

    values: NDArray[np.int64]

    def json(self) -> list[bytes]:
        return [b"%d" % value for value in self.values.tolist()]

    def arrow(self, rows: int) -> Any:
        return arrow().array(self.values.astype(np.int64))


@dataclass(frozen=True)
class Same:
    """One value for all rows."""

    value: int | str

    def json(self) -> bytes:
        return json.dumps(self.value).encode()

    def arrow(self, rows: int) -> Any:
        return arrow().repeat(self.value, rows)


def _cut(data: NDArray[np.uint8], starts: Starts) -> list[bytes]:
    text, bounds = data.tobytes(), starts.tolist()
    return [text[begin:end] for begin, end in pairwise(bounds)]
