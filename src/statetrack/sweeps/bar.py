"""How a sweep stands, for a bar or a line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from statetrack.formatting import plural
from statetrack.progress import progress
from statetrack.results.pace import duration
from statetrack.results.records import FAILED
from statetrack.sweeps.runner import Show
from statetrack.sweeps.schedule import Schedule, SweepProgress


@contextmanager
def sweep_bar(name: str, shown: bool | None) -> Iterator[Show]:
    """The progress of a sweep; what is done again is named once, before anything else. `statetrack.progress` says what
    `shown` means.
    """
    named = False
    with progress("verb bar count spent words", verb=name, shown=shown) as move:

        def show(schedule: Schedule, workers: int) -> None:
            nonlocal named
            if not named:
                named = True
                for line in repeats(schedule):
                    print(line, file=sys.stderr, flush=True)
            tally, said = schedule.tally, words(schedule.tally, workers)
            move(said, completed=tally.settled, total=tally.total, description=said)

        yield show


def repeats(schedule: Schedule) -> Iterator[str]:
    """What is done again, in lines."""
    yield from (f"damaged, its cell is run again: {damage}" for damage in schedule.damaged)
    if number := schedule.evaluated_again:
        yield f"{plural(number, 'finished cell')}: a stream or hard words are asked for and lacking; measured now"
    if number := schedule.trained_again:
        yield f"{plural(number, 'finished cell')}: a stream is asked for, and no weights were kept; trained again"


def words(tally: SweepProgress, workers: int) -> str:
    """
    >>> words(SweepProgress(total=3), 1)
    '0 of 3, time left: 0 s'
    """
    failed = f", {tally.counts[FAILED]} failed" if tally.counts[FAILED] else ""
    return f"{tally.settled} of {tally.total}{failed}, time left: {duration(tally.seconds_left(workers))}"
