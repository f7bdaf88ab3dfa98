"""`statetrack status`: how far a folder of cells has got, once or as long as something is left to do."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statetrack.cli.output import print_json, print_table, say
from statetrack.errors import BadInput
from statetrack.formatting import not_ours, plural, visible

if TYPE_CHECKING:
    from statetrack.results import Status

EVERY = 2.0  # seconds between two looks at the folder
PATIENCE = 60.0  # seconds that a folder has to appear
SHARE = 5  # a look that takes long is followed by so many times that of rest
MOST_NAMED = 5  # checkpoints that are named one by one
HOME, REST_OF_LINE, REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"  # what a terminal obeys: go there; clear that


def command(
    folder: Annotated[Path, typer.Argument(help="A folder of cells.")],
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on looking until nothing is left to do; elsewhere a line a change.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Say what is done, running, failed, skipped and missing, what is damaged, and how long the rest may take.

    The exit code is 0 when nothing is failed, missing or damaged, 1 otherwise.

    Example: statetrack status demo-results --watch
    """
    from statetrack.results import Store, status

    if watch and as_json:
        raise BadInput("--watch shows people how it goes on; leave --json out, or ask again and again")
    if watch:
        wait_for(folder)
    store = Store.existing(folder)
    if watch:
        return code(watched(lambda: status(store), redrawn if sys.stdout.isatty() else line_by_line()))
    standing = status(store)
    if as_json:
        print_json(standing.to_dict())
    else:
        show(standing)
    return code(standing)


def code(standing: Status) -> int:
    return 1 if standing.damaged or any(standing.counts[name] for name in ("failed", "missing", "running")) else 0


def wait_for(
    folder: Path, clock: Callable[[], float] = time.monotonic, rest: Callable[[float], None] = time.sleep
) -> None:  # fmt: skip
    """A sweep that was started a moment ago has no folder yet: give it a minute."""
    began = clock()
    if not folder.exists():
        say(f"waiting for {visible(str(folder))}, which is not there yet", file=sys.stderr, flush=True)
    while not folder.exists() and clock() - began < PATIENCE:
        rest(EVERY)


def watched(
    look: Callable[[], Status], tell: Callable[[Status], None], clock: Callable[[], float] = time.monotonic,
    rest: Callable[[float], None] = time.sleep,
) -> Status:  # fmt: skip
    """Look again and again until nothing is running, missing or under way; gives the last look."""
    while True:
        began = clock()
        standing = look()
        tell(standing)
        if not _goes_on(standing):
            return standing
        rest(max(EVERY, SHARE * (clock() - began)))


def _goes_on(standing: Status) -> bool:
    return bool(standing.counts["running"] or standing.counts["missing"] or standing.checkpoints)


def redrawn(standing: Status) -> None:
    """The whole standing, over what the terminal shows."""
    page = _Page()
    with redirect_stdout(page):
        show(standing)
        end = "Ctrl-C ends the watch, and nothing else" if _goes_on(standing) else "nothing is left to do"
        say(time.strftime(f"seen at %H:%M:%S; {end}"))
    lines = page.getvalue().splitlines()
    sys.stdout.write(HOME + "".join(f"{line}{REST_OF_LINE}\n" for line in lines) + REST_OF_SCREEN)
    sys.stdout.flush()


class _Page(io.StringIO):
    """What is printed for a terminal, before it is shown there."""

    def isatty(self) -> bool:
        return True


def line_by_line() -> Callable[[Status], None]:
    """Prints a line where the standing has changed since the last look."""
    last = ""

    def tell(standing: Status) -> None:
        nonlocal last
        from statetrack.results.folder_status import ORDER

        line = ", ".join(f"{standing.counts[name]} {name}" for name in ORDER)
        if standing.checkpoints:
            line += f", {plural(len(standing.checkpoints), 'checkpoint')}"
        if line != last:
            say(f"{line}{_left(standing)}", flush=True)
        last = line

    return tell


def _left(standing: Status) -> str:
    from statetrack.results.pace import duration

    known = standing.seconds_left is not None and _is_left(standing)
    return f", time left: {duration(standing.seconds_left)}" if known else ""


def _is_left(standing: Status) -> bool:
    """Whether there are cells to do, as far as a plan says so: a training alone has none, and its end is not known."""
    return any(standing.counts[name] for name in ("missing", "running", "failed"))


def show(standing: Status) -> None:
    from statetrack.results.folder_status import ORDER, by_reason
    from statetrack.results.pace import duration

    rows = [[name, *(counts[column] for column in ORDER)] for name, counts in standing.sweeps.items()]
    if len(rows) != 1 or standing.beyond:
        rows.append(["all of the folder", *(standing.counts[column] for column in ORDER)])
    print_table(["sweep", *ORDER], rows)
    if _is_left(standing):
        units = f"{standing.workers} at work now" if standing.workers else "nobody is at work now, so for one worker"
        say(f"time left: {duration(standing.seconds_left)} ({units})")
    _show_checkpoints(standing)
    for reason, count in standing.skipped.items():
        say(f"skipped {count}: {reason}")
    for line in by_reason(standing.failures):
        say(line)
    for holder in standing.still:
        say(f"not moving: {holder}")
    for damage in standing.damaged:
        say(f"damaged: {damage}")
    if standing.foreign:
        say(not_ours(standing.foreign))


def _show_checkpoints(standing: Status) -> None:
    """Of trainings that are under way, or were cut off: the same command goes on from there."""
    latest = sorted(standing.checkpoints, key=lambda each: -each.saved)
    for checkpoint in latest[:MOST_NAMED]:
        say(f"checkpoint: {visible(checkpoint.described())}")
    if len(latest) > MOST_NAMED:
        say(f"and {plural(len(latest) - MOST_NAMED, 'checkpoint')} more")
