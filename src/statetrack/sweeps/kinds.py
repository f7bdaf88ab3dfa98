"""Which module runs a cell; results/kinds.py says what such a module offers."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any, cast

from statetrack.errors import MissingExtra, pip_line
from statetrack.own_code import addresses
from statetrack.results.cell import ASK, TRAIN, Cell
from statetrack.results.kinds import Kind
from statetrack.results.plans import PlannedCell, Sweep

KINDS: Mapping[str, str] = {TRAIN: "statetrack.training.cells", ASK: "statetrack.asking.cells"}


def module_of(subject: str, kinds: Mapping[str, str] = KINDS) -> str:
    """The module for a subject as a sweep's file names it: `ask:...` is asked, any other text is trained.

    >>> module_of("ask:hf:SmolLM2 implicit"), module_of("counter.py:Counter")
    ('statetrack.asking.cells', 'statetrack.training.cells')
    """
    prefix, colon, _ = subject.partition(":")
    return kinds[prefix] if colon and prefix in kinds else kinds[TRAIN]


def module_for(cell: Cell, kinds: Mapping[str, str] = KINDS) -> str:
    """The module for a cell that is described already."""
    return kinds[ASK] if cell.kind == ASK else module_of(cell.subject, kinds)


def sweep_of(name: str, cells: Iterable[Cell], kinds: Mapping[str, str] = KINDS) -> Sweep:
    """A sweep from cells that are there already, each of the same cost."""
    return Sweep(name, "", tuple(PlannedCell(cell, module_for(cell, kinds)) for cell in dict.fromkeys(cells)))


def code_of(cells: Iterable[PlannedCell]) -> list[str]:
    """The addresses of somebody's own code that cells run: that of tasks, and of models that are trained. What another
    kind of cell calls its subject is no address.
    """
    texts = [text for each in cells for text in (each.cell.task, each.cell.subject)[: 1 + (each.kind == KINDS[TRAIN])]]
    return addresses(dict.fromkeys(texts))


def code_named(block: Mapping[str, Any]) -> list[str]:
    """The same for a block of a sweep, and the language models that it names with their settings.

    >>> code_named({"tasks": "lamp.py:Lamp", "subjects": ["mlp", "mine.py:Mine[width=8]", "ask:hf:SmolLM2 implicit"]})
    ['lamp.py:Lamp', 'mine.py:Mine', 'hf:SmolLM2']
    """
    tasks, subjects = ([held] if isinstance(held := block.get(key, ()), str) else held for key in ("tasks", "subjects"))
    texts = [text for text in subjects if isinstance(text, str)]
    trained = [text for text in texts if module_of(text) == KINDS[TRAIN]]
    asked = [text.removeprefix(f"{ASK}:").split() for text in texts if module_of(text) == KINDS[ASK]]
    return [*addresses([*tasks, *trained]), *(words[0] for words in asked if words)]


def load(module: str) -> Kind:
    try:
        return cast(Kind, importlib.import_module(module))
    except ModuleNotFoundError as error:
        raise MissingExtra(f"training needs {error.name}: {pip_line('train')}") from error
