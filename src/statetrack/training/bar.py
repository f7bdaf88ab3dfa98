"""How a training stands, for a bar or a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from statetrack.formatting import fixed
from statetrack.progress import progress
from statetrack.training.loop import Fit, Report
from statetrack.training.run import Tick

NEARLY = 0.999  # of the bar: the clock of a bar that is full stands still, and tests come after training


@contextmanager
def training_bar(words: str, shown: bool | None) -> Iterator[tuple[Report, Tick]]:
    """What is told of a run after each check, and what is told of its tests. `statetrack.progress` says what `shown`
    means.
    """
    with progress("words bar percent spent left", words, total=1.0, verb="train", shown=shown) as move:

        def report(run: Fit) -> None:
            move(f"{share(run):.0%}, {status(run)}", completed=min(NEARLY, share(run)), description=status(run))

        def tick(word: str) -> None:
            move(f"testing: {word}", completed=min(NEARLY, along(word)), description=f"testing: {word}")

        yield report, tick


def along(word: str) -> float:
    """How far a test is, by what is told of it: training is over, and a stream may take as long again.

    >>> along("stream 1,024 of 4,096, 3 s left"), along("off the distribution")
    (0.25, 0.0)
    """
    found = re.search(r"([\d,]+) of ([\d,]+)", word)
    done, total = (int(number.replace(",", "")) for number in found.groups()) if found else (0, 1)
    return done / max(1, total)


def share(run: Fit) -> float:
    """How far the replica is that is furthest behind."""
    return min(progress.share for progress in run.progress)


def status(run: Fit) -> str:
    """Where the replicas stand, in one line."""
    last = [p.history[-1] for p in run.progress if p.history]
    if not last:
        return f"length {run.progress[0].length}"
    lengths = sorted({p.length for p in run.progress})
    loss, accuracy = (sum(entry[key] for entry in last) / len(last) for key in ("loss", "accuracy"))
    floor = f" (floor {fixed(run.floor)})" if run.floor is not None else ""
    return f"length {'-'.join(map(str, lengths))} loss {loss:.4f} accuracy {fixed(accuracy)}{floor}"
