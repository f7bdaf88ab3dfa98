"""Count what the rows of a split hold: labels, IDs, lengths, declared columns, and which rows are equal."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.data.labels import follows
from statetrack.data.maps import PermutationMap
from statetrack.data.read import RowChunk

BUCKETS = np.arange(5, 501, 5)  # of the published harness: a row goes to the nearest


@dataclass
class Mistakes:
    """How many rows are wrong in one way, and the first of them: its number in the split and what it says."""

    count: int = 0
    row: int | None = None
    says: Any = None

    def add(self, wrong: NDArray[np.bool_], first: int, says: Callable[[int], Any]) -> None:
        """Take in a chunk: which of its rows are wrong, the number of its first row, and what a row of it says."""
        rows = np.flatnonzero(wrong)
        if len(rows) and self.row is None:
            self.row, self.says = first + int(rows[0]), says(int(rows[0]))
        self.count += len(rows)


@dataclass
class SplitCounts:
    """What was counted in one split."""

    rows: int = 0
    mathematical: int = 0  # labels that follow this convention and not the other
    published: int = 0
    both: int = 0
    neither: Mistakes = field(default_factory=Mistakes)
    outside: Mistakes = field(default_factory=Mistakes)
    declared: dict[str, Mistakes] = field(default_factory=dict)
    missing: Counter[str] = field(default_factory=Counter)
    lengths: Counter[int] = field(default_factory=Counter)
    used: set[int] = field(default_factory=set)
    marks: list[NDArray[np.uint64]] = field(default_factory=list)

    def add(self, rows: RowChunk, id_map: PermutationMap, expected: dict[str, Any]) -> None:
        """Take in a chunk. `expected` is what the declared columns should say in every row."""
        count = len(rows.targets)
        self.rows += count
        self.lengths.update(Counter(rows.lengths.tolist()))
        self.used.update(np.unique(rows.ids).tolist())
        self.marks.append(marks(rows))
        self._add_labels(rows, id_map)
        self._add_declared(rows, {**expected, "sequence_length": rows.lengths})

    def _add_labels(self, rows: RowChunk, id_map: PermutationMap) -> None:
        codes, inside = id_map.codes(rows.ids)
        targets, target_inside = id_map.codes(rows.targets)
        whole = np.logical_and.reduceat(inside, rows.starts[:-1]) & target_inside
        self.outside.add(~whole, rows.first, lambda row: _first_outside(rows, row, inside))
        prefixes = None
        if rows.prefixes is not None:
            prefixes, known = id_map.codes(rows.prefixes)
            strange = ~np.logical_and.reduceat(known, rows.starts[:-1])
            self.outside.add(strange & whole, rows.first, lambda row: _first_strange(rows, row, known))
            whole &= ~strange
        mathematical, published = follows(id_map.images, codes, rows.starts, targets, prefixes)
        self.mathematical += int((mathematical & ~published & whole).sum())
        self.published += int((published & ~mathematical & whole).sum())
        self.both += int((mathematical & published & whole).sum())
        self.neither.add(~mathematical & ~published & whole, rows.first, lambda row: int(rows.targets[row]))

    def _add_declared(self, rows: RowChunk, expected: dict[str, Any]) -> None:
        for name, value in expected.items():
            if name not in rows.declared:
                self.missing[name] += len(rows.targets)
                continue
            said = np.asarray(rows.declared[name], dtype=object)
            self.declared.setdefault(name, Mistakes()).add(said != value, rows.first, said.__getitem__)

    @property
    def all_marks(self) -> NDArray[np.uint64]:
        return np.concatenate(self.marks) if self.marks else np.empty(0, np.uint64)

    @property
    def repeats(self) -> int:
        """Rows whose sequence came before in the split."""
        return self.rows - len(np.unique(self.all_marks))

    def repeats_by_chance(self, symbols: int) -> float:
        """The repeats to be expected when n rows of length L are drawn evenly from N = symbols**L sequences.

        n - N (1 - (1 - 1/N)**n), summed over the lengths: n minus the number of different sequences seen.
        """
        expected = 0.0
        for length, rows in self.lengths.items():
            sequences = _sequences(symbols, length)
            expected += rows - sequences * _hit(rows, sequences)
        return max(0.0, expected)

    def shared(self, other: SplitCounts) -> int:
        """Rows of another split whose sequence is in this one as well."""
        return int(np.isin(other.all_marks, self.all_marks).sum())

    def shared_by_chance(self, other: SplitCounts, symbols: int) -> float:
        """The shared rows to be expected: each of the other's meets one of this split's n with 1 - (1 - 1/N)**n."""
        counts = ((self.lengths.get(length, 0), length, rows) for length, rows in other.lengths.items())
        return sum(rows * _hit(own, _sequences(symbols, length)) for own, length, rows in counts)


def _first_outside(rows: RowChunk, row: int, inside: NDArray[np.bool_]) -> int:
    """The first ID of a row that the map does not hold; its target when the sequence is whole."""
    begin, end = rows.starts[row], rows.starts[row + 1]
    wrong = np.flatnonzero(~inside[begin:end])
    return int(rows.ids[begin + wrong[0]]) if len(wrong) else int(rows.targets[row])


def _first_strange(rows: RowChunk, row: int, known: NDArray[np.bool_]) -> int:
    """The first answer of a row, among those after every ID, that the map does not hold."""
    assert rows.prefixes is not None
    begin, end = rows.starts[row], rows.starts[row + 1]
    return int(rows.prefixes[begin + np.flatnonzero(~known[begin:end])[0]])


def marks(rows: RowChunk) -> NDArray[np.uint64]:
    """A 64-bit hash of every row's sequence: equal sequences have equal marks, others hardly ever."""
    data = rows.ids.astype("<i8", copy=False).tobytes()
    bounds = (rows.starts * 8).tolist()
    digests = [hashlib.blake2b(data[a:b], digest_size=8).digest() for a, b in pairwise(bounds)]
    return np.frombuffer(b"".join(digests), np.uint64)


def nearest_buckets(lengths: Counter[int]) -> dict[int, int]:
    """How many rows the published harness puts into each of its buckets.

    >>> counts = nearest_buckets(Counter({7: 2, 8: 1, 900: 4}))
    >>> counts[5], counts[10], counts[500]
    (2, 1, 4)
    """
    counts = dict.fromkeys(BUCKETS.tolist(), 0)
    for length, rows in lengths.items():
        counts[int(BUCKETS[np.abs(BUCKETS - length).argmin()])] += rows
    return counts


def exact_buckets(lengths: Counter[int]) -> dict[int, int]:
    """How many rows have exactly the length of each bucket."""
    return {bucket: lengths.get(bucket, 0) for bucket in BUCKETS.tolist()}


def _sequences(symbols: int, length: int) -> float:
    """How many sequences there are, or 2**1000 where there are more."""
    return float(2.0 ** min(length * np.log2(symbols), 1000.0))


def _hit(draws: int, sequences: float) -> float:
    """The chance that a given one of these sequences is among the draws."""
    return float(-np.expm1(draws * np.log1p(-1 / sequences))) if sequences > 1 else float(draws > 0)
