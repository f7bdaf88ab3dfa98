"""Progress where nobody looks on: a line now and then on the standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

SECONDS = 10.0  # between two lines


def now_and_then(verb: str) -> Callable[[str], None]:
    """Prints what it is told last, as `verb: words`, but not more often than every so many seconds."""
    last = time.monotonic()

    def say(words: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= SECONDS:
            last = now
            print(f"{verb}: {words}", file=sys.stderr, flush=True)

    return say
