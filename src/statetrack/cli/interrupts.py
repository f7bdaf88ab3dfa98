"""Ctrl-C, and a polite kill: one line that says what was kept and how to go on."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

CODE = 130  # the exit code of what was interrupted


class Interrupted(Exception):
    """What was kept, when a verb was interrupted. No KeyboardInterrupt: the parser of the command line would take it
    for its own.
    """

    def __init__(self, kept: str, goes_on: bool = True) -> None:
        super().__init__(kept)
        self.goes_on = goes_on

    def line(self, command: Sequence[str]) -> str:
        """
        >>> Interrupted("3 of 12 cells are kept in out").line(["statetrack", "sweep", "my sweep.yaml", "--out", "out"])
        "interrupted; 3 of 12 cells are kept in out; go on with: statetrack sweep 'my sweep.yaml' --out out"
        """
        how = "go on with" if self.goes_on else "start again with"
        return f"interrupted; {self}; {how}: {shlex.join(command)}"


@contextmanager
def telling(kept: Callable[[], Interrupted]) -> Iterator[None]:
    """Say at an interruption what was kept by then."""
    try:
        yield
    except KeyboardInterrupt:
        raise kept() from None


def program() -> list[str]:
    """What to type for statetrack from here."""
    if shutil.which("statetrack"):
        return ["statetrack"]
    here = os.path.relpath(sys.argv[0])
    return ["python", "-m", "statetrack"] if os.path.basename(here) == "__main__.py" else [here]
