"""A prompt of one's own: a text with placeholders, of which those that a task needs must be there.

    {task}         the word in the brackets of an answer: median, mode, answer
    {about}        what is shown and asked, in our words; over a group in the style table, with the table
    {group}        the usual name of a group
    {format}       how an answer is written, in our words
    {example}      turn by turn: the worked example; {distractors}: what they mean
    {sequence}     whole: the inputs; {examples}: the shots

Behind a line `=== state ===` may stand the message in which a solver that is shown the state sees it, with {state} and
{label}, which says what the state is. Other text in braces, such as {7: 2}, stays as it is. The text is sent to the
letter; of the message with the state a line break at its end is left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from statetrack.errors import BadInput, unknown
from statetrack.files import read_bounded

MOST_BYTES = 2**16
TURNS = ("task", "about", "group", "format", "example", "distractors")
WHOLE = ("task", "about", "group", "format", "examples", "sequence")
STATE = ("task", "state", "label")
_PLACE = re.compile(r"\{([a-z_]+)\}")
_STATE = re.compile(r"^=== state ===[ \t]*\r?\n", re.MULTILINE)

Values = Mapping[str, Callable[[], str]]


def read(path: Path | str) -> str:
    """The text of a file, as it is."""
    try:
        return read_bounded(path, MOST_BYTES).decode()
    except OSError as error:
        raise BadInput(f"prompt {path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"prompt {path} is not UTF-8 text: byte {error.start} is {error.object[error.start]}") from None


def sha256(text: str) -> str:
    """The hash by which a prompt is known: that of its file.

    >>> sha256("Reply with [median: <answer>].")[:8]
    '8392c2ba'
    """
    return hashlib.sha256(text.encode()).hexdigest()


def first_part(text: str) -> str:
    """What is said first: the system message, or a whole prompt."""
    state = _STATE.search(text)
    return text[: state.start()] if state else text


def state_part(text: str) -> str | None:
    """The message with the state; None where the text has none."""
    state = _STATE.search(text)
    return text[state.end() :].removesuffix("\n").removesuffix("\r") if state else None


def fill(text: str, values: Values) -> str:
    """The text with what its placeholders stand for."""
    return _PLACE.sub(lambda place: values[place[1]](), text)


def check(text: str, allowed: Sequence[str], needed: Sequence[tuple[str, str]]) -> None:
    """Refuse a placeholder that is unknown here, and a text without one that something needs."""
    there = set(_PLACE.findall(text))
    for name in sorted(there - set(allowed)):
        raise unknown("placeholder of a prompt", f"{{{name}}}", [f"{{{each}}}" for each in allowed])
    for name, needs in needed:
        if name not in there:
            raise BadInput(f"the prompt lacks {{{name}}}: {needs} needs it")
