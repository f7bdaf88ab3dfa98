"""Bad parameters, said in one line: Inspect prints a traceback for every error but its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from inspect_ai._util.error import PrerequisiteError  # the one error that its command line prints as a line
from rich.markup import escape
from rich.text import Text

from statetrack.errors import BadInput


class Refused(BadInput, PrerequisiteError):
    """A bad parameter, as both statetrack and Inspect know it."""

    def __init__(self, line: str) -> None:
        ValueError.__init__(self, line)
        self.message = escape(f"statetrack: {line}")


@contextmanager
def said_in_one_line() -> Iterator[None]:
    """Around code that reads parameters from Inspect's command line."""
    try:
        yield
    except BadInput as error:
        raise Refused(str(error)) from None


def plain(error: BaseException) -> str:
    """What an error of Inspect says, on one line and without its markup."""
    said = error.message if isinstance(error, PrerequisiteError) else error
    return " ".join(Text.from_markup(str(said)).plain.split()) or type(error).__name__
