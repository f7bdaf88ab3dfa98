"""Progress on standard error: a bar in a terminal, elsewhere a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SECONDS = 10.0  # between two lines


@contextmanager
def progress(parts: str, words: str = "", total: float | None = None, verb: str = "") -> Iterator[Callable[..., None]]:
    """A function that moves a bar of these parts: by `completed=`, `description=` and so on, as rich names them.

    Outside a terminal, its first argument is printed now and then, as `verb: line`; without a verb nothing is.
    """
    if not sys.stderr.isatty():
        yield now_and_then(verb)
        return
    from rich import progress as rich
    from rich.console import Console

    columns = {
        "verb": rich.TextColumn(verb), "words": rich.TextColumn("{task.description}"), "bar": rich.BarColumn(),
        "count": rich.MofNCompleteColumn(), "percent": rich.TaskProgressColumn(), "spent": rich.TimeElapsedColumn(),
        "left": rich.TimeRemainingColumn(),
    }  # fmt: skip
    shown = [columns[part] for part in parts.split()]
    with rich.Progress(*shown, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(words, total=total)
        yield lambda line="", **moved: bar.update(task, **moved)


def now_and_then(verb: str) -> Callable[..., None]:
    """Prints the line it is given, as `verb: line`, at most once every SECONDS."""
    last = time.monotonic()

    def say(line: str = "", **moved: Any) -> None:
        nonlocal last
        now = time.monotonic()
        if verb and now - last >= SECONDS:
            last = now
            print(f"{verb}: {line}", file=sys.stderr, flush=True)

    return say
