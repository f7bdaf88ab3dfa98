"""Counter-based randomness: what is drawn at a place depends on the place alone.

A draw is a 64-bit hash of (task, split, seed, length, row, position). So a row does not depend on the size of the
batch, on the order of the rows or on the number of workers; position 10**6 costs what position 0 costs; and the splits
never meet, for the split is part of every key.

    key(row)     = mix(mix(digest(task, split, seed) + length * STEP) + row * STEP)
    draw(row, t) = mix(key(row) + (t + 1) * STEP)

`mix` is the finaliser of SplitMix64 (Steele, Lea and Flood 2014), a bijection of the 64-bit integers, and STEP its odd
constant. Symbols are read off the top 40 bits, so that a symbol's probability is off by less than 2**-40.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from statetrack.tasks import native

STEP = 0x9E3779B97F4A7C15
BITS = 40  # of a draw that choose the symbol
_DROPPED = np.uint64(64 - BITS)
_BLOCK = 1 << 16  # draws at a time: they stay in the cache

Keys = NDArray[np.uint64]


def mix(z: Keys) -> Keys:
    """SplitMix64's finaliser, on an array, in place."""
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def row_keys(label: str, split: str, seed: int, lengths: ArrayLike, rows: ArrayLike) -> Keys:
    """One key per row; `lengths` and `rows` are broadcast against each other."""
    digest = hashlib.sha256(f"{label}\n{split}\n{seed}".encode()).digest()
    by_length, by_row = (np.atleast_1d(np.asarray(part, np.uint64)) * np.uint64(STEP) for part in (lengths, rows))
    return mix(mix(by_length + np.uint64(int.from_bytes(digest[:8], "little"))) + by_row)


def words(keys: Keys, start: int, stop: int) -> Keys:
    """The raw 64-bit draws at the positions start..stop-1 of every row."""
    positions = np.arange(start + 1, stop + 1, dtype=np.uint64) * np.uint64(STEP)
    return mix(keys[:, None] + positions)


def lane(keys: Keys, number: int) -> Keys:
    """Keys for one more draw at the same places, for a task that needs several at each."""
    return mix(keys ^ np.uint64(number + 1))


def fractions(keys: Keys, start: int, stop: int) -> NDArray[np.float64]:
    """Numbers in [0, 1) at the positions start..stop-1 of every row."""
    return np.ldexp((words(keys, start, stop) >> np.uint64(11)).astype(np.float64), -53)


def thresholds(weights: Sequence[float] | None) -> NDArray[np.uint64] | None:
    """Where one symbol's share of the 2**40 draws ends and the next begins; None for equal shares."""
    if not weights:
        return None
    shares = np.cumsum(np.asarray(weights, float))[:-1] / np.sum(weights)
    return np.asarray([round(float(share) * 2**BITS) for share in shares], np.uint64)


def symbols(keys: Keys, start: int, stop: int, count: int, ends: NDArray[np.uint64] | None = None) -> NDArray[np.int32]:
    """Symbols 0..count-1 at the positions start..stop-1 of every row, with equal shares or with those of `ends`."""
    out = np.empty((len(keys), stop - start), np.int32)
    rows = max(1, _BLOCK // max(1, stop - start))
    fill = native.compiled(_fill_loop) if native.available() else _fill
    shares = np.empty(0, np.uint64) if ends is None else ends
    native.run_blocks(
        lambda a, b: fill(keys[a:b], start, count, ends is not None, shares, out[a:b]), len(keys), block=rows
    )
    return out


def _fill(keys: Keys, start: int, count: int, weighted: bool, ends: NDArray[np.uint64], out: NDArray[np.int32]) -> None:
    top = words(keys, start, start + out.shape[1])
    top >>= _DROPPED
    if weighted:
        out[...] = np.searchsorted(ends, top, side="right")
    else:
        top *= np.uint64(count)
        top >>= np.uint64(BITS)
        out[...] = top


def _fill_loop(
    keys: Keys, start: int, count: int, weighted: bool, ends: NDArray[np.uint64], out: NDArray[np.int32]
) -> None:
    """`_fill` as one loop over rows and positions, for numba; every constant is 64 bits wide and unsigned."""
    step = np.uint64(0x9E3779B97F4A7C15)
    for row in range(out.shape[0]):
        place = keys[row] + np.uint64(start) * step
        for t in range(out.shape[1]):
            place += step
            z = place
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            z = (z ^ (z >> np.uint64(31))) >> np.uint64(24)
            if weighted:
                symbol = 0
                for end in ends:
                    symbol += int(z >= end)
                out[row, t] = symbol
            else:
                out[row, t] = np.int32((z * np.uint64(count)) >> np.uint64(40))
