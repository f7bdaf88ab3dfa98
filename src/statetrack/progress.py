"""Progress of long work: a bar in a terminal, one that is updated in its place in a notebook, elsewhere a line now and
then, or nothing.
"""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SECONDS = 10.0  # between two lines
BAR = 24  # columns of a terminal
REDRAWN = 0.25  # seconds between two looks of a notebook's bar

Move = Callable[..., None]


@contextmanager
def progress(
    parts: str, words: str = "", total: float | None = None, verb: str = "", shown: bool | None = True
) -> Iterator[Move]:
    """A function that moves a bar of these parts: by `completed=`, `description=` and so on, as rich names them.

    Outside a terminal and a notebook, its first argument is printed now and then, as `verb: line`; without a verb
    nothing is. With `shown` None nothing is printed there, and with False nothing is shown anywhere: so do calls in
    Python ask for it by their `progress=`.
    """
    if shown is False:
        yield lambda line="", **moved: None
    elif in_notebook():
        yield from _in_notebook(f"{verb} {words}".strip(), total)
    elif sys.stderr.isatty():
        yield from _in_terminal(parts, words, total, verb)
    else:
        yield now_and_then(verb if shown else "")


def _in_terminal(parts: str, words: str, total: float | None, verb: str) -> Iterator[Move]:
    from rich import progress as rich
    from rich.console import Console
    from rich.table import Column

    class Words(rich.TextColumn):
        """What is done now. In a narrow terminal it is cut, on one line, and the bar and the clock stay whole."""

        def render(self, task: rich.Task) -> Any:
            text = super().render(task)
            text.no_wrap, text.overflow = True, "ellipsis"
            return text

    columns = {
        "verb": rich.TextColumn(verb, markup=False),
        "words": Words("{task.description}", markup=False, table_column=Column()),
        "bar": rich.BarColumn(BAR), "count": rich.MofNCompleteColumn(), "percent": rich.TaskProgressColumn(),
        "spent": rich.TimeElapsedColumn(), "left": rich.TimeRemainingColumn(),
    }  # fmt: skip
    shown = [columns[part] for part in parts.split()]
    with rich.Progress(*shown, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(words, total=total)
        yield lambda line="", **moved: bar.update(task, **moved)


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this. IPython is there already if one does, so that nothing is imported."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return getattr(shell, "kernel", None) is not None


def _in_notebook(words: str, total: float | None) -> Iterator[Move]:
    """rich would need ipywidgets here; a display that is updated in its place works in every notebook."""
    from IPython.display import display

    began, drawn = time.monotonic(), 0.0
    now: dict[str, Any] = {"completed": 0.0, "total": total, "description": words}
    handle: Any = None  # none until something moves: of what is there already nothing is shown

    def show(look: dict[str, str]) -> None:
        nonlocal handle
        if handle is None:
            handle = display(look, raw=True, display_id=True)
        else:
            handle.update(look, raw=True)

    def move(line: str = "", **moved: Any) -> None:
        nonlocal drawn
        now["completed"] += moved.pop("advance", 0)
        now.update(moved)
        spent = time.monotonic() - began
        if handle is None or spent - drawn >= REDRAWN:
            drawn = spent
            show(_look(now, spent))

    try:
        yield move
    except BaseException:
        if handle is not None:
            show(_look(now, time.monotonic() - began))  # where it stopped
        raise
    if handle is not None:
        show(_end(words, time.monotonic() - began))


def _look(now: dict[str, Any], spent: float) -> dict[str, str]:
    share = min(1.0, now["completed"] / now["total"]) if now["total"] else 0.0
    line = f"{share:.0%} {now['description']}, {_clock(spent)}"
    bar = f'<progress value="{share:.4f}" max="1"></progress>'
    return {"text/plain": line, "text/html": f"<div>{bar} {html.escape(line)}</div>"}


def _end(words: str, spent: float) -> dict[str, str]:
    line = f"{words}: {_clock(spent)}"
    return {"text/plain": line, "text/html": f"<div>{html.escape(line)}</div>"}


def _clock(seconds: float) -> str:
    """
    >>> _clock(7.4), _clock(3725)
    ('0:07', '1:02:05')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def now_and_then(verb: str) -> Move:
    """Prints the line it is given, as `verb: line`, at most once every SECONDS."""
    last = time.monotonic()

    def say(line: str = "", **moved: Any) -> None:
        nonlocal last
        now = time.monotonic()
        if verb and now - last >= SECONDS:
            last = now
            print(f"{verb}: {line}", file=sys.stderr, flush=True)

    return say
