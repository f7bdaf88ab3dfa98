"""What an exception means: of a provider, ask again, give up, or the context is full; of bad parameters, one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from inspect_ai._util.error import PrerequisiteError  # the one error that its command line prints as a line
from inspect_ai.model import Model
from rich.markup import escape
from rich.text import Text
from tenacity import RetryError

from statetrack.asking.episode import CONTEXT, SERVER, Reply
from statetrack.errors import BadInput
from statetrack.integrations.inspect.guard import Unusable
from statetrack.secrets import scrub

LONGEST = 300  # characters of an error that are kept
PASSING = (408, 409, 425, 429)  # the client errors that may pass: time-out, conflict, too early, too many requests

_FULL = re.compile(
    r"context[ _](?:length|window|size)|maximum (?:context|input)|prompt is too long|too many (?:input )?tokens"
    r"|exceeds? the (?:model's |available )?(?:context|maximum)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Attempt:
    """What came of one request. `again` says whether asking once more may help, `after` how many seconds the server
    wants to be left alone."""

    reply: Reply
    again: bool
    after: float | None = None


def judge(error: Exception, model: Model) -> Attempt:
    """What came of a request that raised an error.

    Whatever is not an answer of the server's (a time-out, a broken connection, a text that is not JSON, an object
    without what a reply has) may pass. Of the answers, a client error stays, except for the few in PASSING.
    """
    error = _meant(error)
    status = _status(error)
    text = said(error)
    stays = status is not None and 400 <= status < 500 and status not in PASSING
    if stays and _FULL.search(text):
        return Attempt(Reply(failure=CONTEXT, detail=text), again=False)
    decision = model.api.should_retry(error)
    return Attempt(Reply(failure=SERVER, detail=text), not stays, getattr(decision, "retry_after", None))


def _meant(error: Exception) -> Exception:
    """The error of the last try, where Inspect wraps it into the news that it tried no more; what `guard` says of a
    reply, where a client calls that a broken connection.
    """
    last = error.last_attempt.exception() if isinstance(error, RetryError) else None
    found = last if isinstance(last, Exception) else error
    return found.__cause__ if isinstance(found.__cause__, Unusable) else found


def _status(error: BaseException | None) -> int | None:
    """The HTTP status of an error or of what caused it."""
    while error is not None:
        status = getattr(error, "status_code", None)
        if isinstance(status, int):
            return status
        error = error.__cause__
    return None


def said(error: Exception) -> str:
    """An error in one line, without keys."""
    error = _meant(error)
    words = getattr(error, "provider_message", None) or str(error)
    line = " ".join(scrub(f"{type(error).__name__}: {words}").split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."


class Refused(BadInput, PrerequisiteError):
    """A bad parameter, as both statetrack and Inspect know it: Inspect prints a traceback for any error but its own."""

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
