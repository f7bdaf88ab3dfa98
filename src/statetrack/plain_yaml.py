"""YAML from anywhere, as plain data in bounded time and memory: what expands out of proportion, or is nested too deep,
is refused before it is built.

>>> read("{a: [1, 0.5, on], b: 2024-01-01}", "example")
{'a': [1, 0.5, True], 'b': datetime.date(2024, 1, 1)}
>>> read("{a: [1, on]}", "example", words=True)
{'a': ['1', 'on']}
>>> read("&a [*a]", "example")
Traceback (most recent call last):
statetrack.errors.BadInput: example, line 1: it stands inside itself
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from statetrack.errors import BadInput, one_line, shortened

MOST_BYTES = 2**22
MOST_PARTS = 200_000  # numbers, texts, lists and tables, each alias counted with all that it stands for
MOST_DEEP = 50
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)

Loader = yaml.SafeLoader | yaml.BaseLoader


def read(text: str | bytes, where: str, words: bool = False) -> Any:
    """What a text holds; with `words`, every number and flag as it is written."""
    with_tags = yaml.BaseLoader if words else yaml.SafeLoader
    root = tree(text, where)
    if root is None:
        return None
    loader = with_tags("")
    try:
        return construct(loader, root, where)
    finally:
        loader.dispose()


def value(text: str, where: str) -> Any:
    """The value of a text on the command line, read as YAML; 1e-3, which YAML takes for text, is a number here.

    >>> value("1e-3", "x"), value("[2e-3,1]", "x"), value("true", "x")
    (0.001, [0.002, 1], True)
    """
    try:
        return numbers_in(read(text, where))
    except BadInput as error:
        raise BadInput(f"{where}={shortened(text, quoted=False)} cannot be read as a value: {error}") from None


def numbers_in(held: Any) -> Any:
    if isinstance(held, list):
        return [numbers_in(each) for each in held]
    return float(held) if isinstance(held, str) and NUMBER.fullmatch(held) else held


def content(path: Path) -> bytes:
    """The bytes of a file of a size that somebody may have written; raises OSError, and BadInput for other files."""
    if path.exists() and not path.is_file() and not path.is_dir():  # a folder is an OSError below
        raise BadInput(f"{path} is not a file")
    with path.open("rb") as file:
        held = file.read(MOST_BYTES + 1)
    if len(held) > MOST_BYTES:
        raise BadInput(f"{path} has more than {MOST_BYTES:,} bytes")
    return held


def tree(text: str | bytes, where: str) -> yaml.Node | None:
    """The parts of a text and where they stand, none of them built yet."""
    loader = None
    try:
        loader = yaml.SafeLoader(text)
        root: yaml.Node | None = loader.get_single_node()
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        deep = "nested too deep" if isinstance(error, RecursionError) else None
        said = deep or getattr(error, "problem", None) or " ".join(str(error).split())
        raise BadInput(f"{where}{line}: not valid YAML: {said}") from None
    finally:
        if loader is not None:
            loader.dispose()
    if root is not None:
        _measure(root, where, {}, ())
    return root


def construct(loader: Loader, node: yaml.Node, where: str) -> Any:
    """The value of a part; one that does not fit its tag (`!!int foo`, 2024-13-45) is refused."""
    try:
        return loader.construct_object(node, deep=True)
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or one_line(error)
        raise BadInput(f"{at(node, where)}: {problem}") from None
    except Exception as error:  # the parsers of PyYAML raise what comes: ValueError, KeyError, AttributeError, ...
        raise BadInput(
            f"{at(node, where)}: cannot be read as {node.tag.rpartition(':')[2]} ({one_line(error)})"
        ) from None


def at(node: yaml.Node, where: str) -> str:
    return f"{where}, line {node.start_mark.line + 1}"


def _measure(node: yaml.Node, where: str, known: dict[int, int], above: tuple[int, ...]) -> int:
    """How many parts a node has when its aliases are written out; each node is looked at once."""
    if id(node) in above:
        raise BadInput(f"{at(node, where)}: it stands inside itself")
    if id(node) in known:
        return known[id(node)]
    if len(above) >= MOST_DEEP:
        raise BadInput(f"{at(node, where)}: nested more than {MOST_DEEP} deep")
    count = 1
    if isinstance(node, yaml.MappingNode | yaml.SequenceNode):
        inside = [part for pair in node.value for part in (pair if isinstance(pair, tuple) else (pair,))]
        count += sum(_measure(part, where, known, (*above, id(node))) for part in inside)
    if count > MOST_PARTS:
        raise BadInput(f"{at(node, where)}: more than {MOST_PARTS:,} parts")
    known[id(node)] = count
    return count
