"""What is counted of predictions, and how sure the count is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.intervals import wilson

Bools = NDArray[np.bool_]


def row_interval(right: Bools, asked: Bools, resamples: int = 1000) -> tuple[float, float]:
    """A 95 % bootstrap interval of the accuracy over rows: positions of one row are not independent, rows are.

    Where all rows score the same the bootstrap says nothing, and Wilson's interval over rows stands in.
    """
    answered = asked.any(1)  # a row in which nothing is asked says nothing
    counts, hits = asked[answered].sum(1), (right & asked)[answered].sum(1)
    rows = len(counts)
    if not rows:
        return 0.0, 1.0
    if np.ptp(hits / counts) == 0:
        share = hits.sum() / counts.sum()
        return wilson(round(share * rows), rows)
    picks = np.random.default_rng(0).integers(0, rows, (resamples, rows))
    means = hits[picks].sum(1) / counts[picks].sum(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def share(right: Bools, asked: Bools) -> float | None:
    """The share of right answers among those asked for; None where none was."""
    n = int(asked.sum())
    return float((right & asked).sum() / n) if n else None


def by_position(right: Bools, asked: Bools) -> list[float | None]:
    """The accuracy at each position."""
    hits, counts = (right & asked).sum(0), asked.sum(0)
    return [hit / n if n else None for hit, n in zip(hits.tolist(), counts.tolist())]


def tail(right: Bools, asked: Bools, positions: int | None = None) -> float | None:
    """The accuracy over the last positions: the last quarter, or as many as are given."""
    width = positions or max(1, right.shape[1] // 4)
    return share(right[:, -width:], asked[:, -width:])


def tail_interval(right: Bools, asked: Bools, positions: int | None = None) -> list[float]:
    """The interval of `tail`, over rows."""
    width = positions or max(1, right.shape[1] // 4)
    return list(row_interval(right[:, -width:], asked[:, -width:]))


def crossings(right: Bools, asked: Bools, targets: NDArray[Any]) -> dict[str, Any]:
    """The accuracy where the answer changes, and of the pair (right before it *and* at it).

    At a change in RTC or FSM the answer equals the input, so copying the input is right there; the pair is not so
    easily had.
    """
    change = (targets[:, 1:] != targets[:, :-1]) & asked[:, 1:] & asked[:, :-1]
    return {
        "crossing_accuracy": share(right[:, 1:], change),
        "paired_crossing_accuracy": share(right[:, 1:] & right[:, :-1], change),
        "crossings": int(change.sum()),
    }


def summary(right: Bools, asked: Bools) -> dict[str, Any]:
    """The accuracy over all positions asked for, with its n and interval, and that of whole rows."""
    low, high = row_interval(right, asked)
    whole = (right | ~asked).all(1)
    return {
        "accuracy": share(right, asked),
        "rows": len(right),
        "n": int(asked.sum()),
        "interval": [low, high],
        "full_sequence_accuracy": float(whole.mean()),
        "full_sequence_interval": list(wilson(int(whole.sum()), len(right))),
    }


def skill(accuracy: list[float | None], floor: list[float | None]) -> list[float | None]:
    """How much of the way from the floor to 1 is made, by position; None where nothing is asked or the floor is 1."""
    return [
        None if have is None or low is None or low >= 1 else (have - low) / (1 - low)
        for have, low in zip(accuracy, floor, strict=True)
    ]
