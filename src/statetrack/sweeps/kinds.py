"""Which module runs a cell; results/kinds.py says what such a module offers."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any, cast

from statetrack import spec
from statetrack.errors import MissingExtra
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


def addresses(subjects: Iterable[Any], kinds: Mapping[str, str] = KINDS) -> list[str]:
    """Where subjects that are trained have code of somebody's own, each once.

    >>> addresses(["mlp", "counter.py:Counter[width=8]", "counter.py:Counter", "ask:hf:SmolLM2 implicit"])
    ['counter.py:Counter']
    """
    texts = [subjects] if isinstance(subjects, str) else [text for text in subjects if isinstance(text, str)]
    trained = [text for text in texts if module_of(text, kinds) == kinds.get(TRAIN) and ":" in text]
    return list(dict.fromkeys(name for text in trained if ":" in (name := spec.parse(text)[0])))


def load(module: str) -> Kind:
    try:
        return cast(Kind, importlib.import_module(module))
    except ModuleNotFoundError as error:
        raise MissingExtra(f"training needs {error.name}: pip install 'statetrack[train]'") from error
