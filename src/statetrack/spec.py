"""One text for a task and its parameters, the same in Python, on the command line, in YAML and in results.

    fsm                          the name alone: every parameter at its default
    fsm[k=5,p=0.05]              parameters, in any order
    cups[n=4,weights=[1,1,2]]    a list stands in brackets
    regex[pattern="(ab|,)*"]     quotes where the text itself holds a comma, a bracket or a quote

>>> parse("fsm[k=5,p=0.05]")
('fsm', {'k': '5', 'p': '0.05'})
>>> write("fsm", {"k": 5, "p": 0.05})
'fsm[k=5,p=0.05]'
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Mapping
from typing import Any

from statetrack.errors import BadInput

_OPEN, _CLOSE = "([{<", ")]}>"
_PLAIN = re.compile(r"[\w./+*?|:^$-]+")
_KEY = re.compile(r"[a-z_][a-z0-9_]*")


def parse(text: str) -> tuple[str, dict[str, str]]:
    """Split a task's text into its name and its parameters, both still text."""
    if not isinstance(text, str):
        raise BadInput(f"{text!r} should be text such as 'fsm[k=5]'")
    text = text.strip()
    name, inside = _split_off_brackets(text)
    if not name:
        raise BadInput(f"no task name in {text!r}")
    parameters: dict[str, str] = {}
    for part in _split_commas(inside, text):
        key, equals, value = part.partition("=")
        key, value = key.strip().lower(), value.strip()
        if not equals or not _KEY.fullmatch(key) or not value:
            raise BadInput(f"{part.strip()!r} in {text!r} is not of the form parameter=value")
        if key in parameters:
            raise BadInput(f"parameter {key!r} is given twice in {text!r}")
        parameters[key] = value
    return name, parameters


def write(name: str, parameters: Mapping[str, Any]) -> str:
    """The text of a name with parameters; `parse` and `read` give them back."""
    if not parameters:
        return name
    return f"{name}[{','.join(f'{key}={_write_value(value)}' for key, value in parameters.items())}]"


def read(value: str, kind: Any, where: str) -> Any:
    """Turn a parameter's text into a value of its declared type (int, float, bool, str or tuple[float, ...])."""
    try:
        if kind is int:
            return int(value)
        if kind is float:
            return float(value)
        if kind is bool:
            return {"true": True, "false": False}[value.lower()]
        if kind == tuple[float, ...]:
            return tuple(float(part) for part in _bracketed(value))
    except (ValueError, KeyError):
        raise BadInput(f"{where}={value} should be {_describe(kind)}") from None
    return _unquote(value, where)


def typed(value: Any, kind: Any, where: str) -> Any:
    """A parameter given in Python as the plain value of its declared type, so that equal tasks are written alike."""
    wrong = BadInput(f"{where}={value!r} should be {_describe(kind)}")
    if isinstance(value, str) != (kind is str) or isinstance(value, bool) != (kind is bool):
        raise wrong
    try:
        if kind is int:
            return operator.index(value)
        if kind is float:
            return float(value)
        if kind == tuple[float, ...]:
            return tuple(float(part) for part in value)
    except (TypeError, ValueError):
        raise wrong from None
    return value


def _describe(kind: Any) -> str:
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    return names.get(kind, "a list of numbers such as [1,2,1]")


def _bracketed(value: str) -> list[str]:
    if not (value.startswith("[") and value.endswith("]")):
        raise ValueError(value)
    return value[1:-1].split(",")


def _unquote(value: str, where: str) -> str:
    if not value.startswith('"'):
        return value
    try:
        text = json.loads(value)
    except json.JSONDecodeError as error:
        raise BadInput(f"{where}={value}: the quoted text does not end where it should ({error.msg})") from None
    return str(text)


def _write_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{','.join(_write_value(part) for part in value)}]"
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, str) and not _PLAIN.fullmatch(value):
        return json.dumps(value, ensure_ascii=False)
    return str(value) if isinstance(value, str) else repr(value)


def _split_off_brackets(text: str) -> tuple[str, str]:
    """Cut at the first '[' outside a group's <...>, whose closing ']' must end the text."""
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "<") - (character == ">")
        if character == "[" and depth == 0:
            if not text.endswith("]"):
                raise BadInput(f"{text!r} opens a '[' at character {at + 1} and does not end with ']'")
            return text[:at].strip(), text[at + 1 : -1]
    return text, ""


def _split_commas(inside: str, text: str) -> list[str]:
    """Split at the commas outside brackets and quotes; `inside` is the end of the text, less its last bracket."""
    if not inside.strip():
        return []
    before = len(text) - 1 - len(inside)
    parts, begin, escaped = [], 0, False
    quote: int | None = None
    brackets: list[int] = []
    for at, character in enumerate(inside):
        if quote is not None:
            quote = None if character == '"' and not escaped else quote
            escaped = character == "\\" and not escaped
        elif character == '"':
            quote = at
        elif character in _OPEN:
            brackets.append(at)
        elif character in _CLOSE:
            if not brackets:
                raise BadInput(f"the {character!r} at character {before + at + 1} of {text!r} closes nothing")
            brackets.pop()
        elif character == "," and not brackets:
            parts.append(inside[begin:at])
            begin = at + 1
    opened = quote if quote is not None else brackets[-1] if brackets else None
    if opened is not None:
        raise BadInput(f"the {inside[opened]!r} at character {before + opened + 1} of {text!r} is left open")
    return [*parts, inside[begin:]]
