"""The kinds of cells: how one is described, what it costs, how it is run. A kind is a module with three functions.

    describe(task, subject, length, seed, protocol, settings) -> Cell   refuses what cannot be run (BadInput)
    cost(cell) -> float                                                 how much work it is, beside others of its kind
    run(cells, scratch, device) -> Iterator[(Cell, record)]             cells that differ in their seed alone

A subject `ask:...` is a language model that is asked; any other text is a model that is trained. What `run` keeps in
the folder `scratch` is there again when the same cells are run again after a kill; files that it names after a cell's
key, other than checkpoints, are kept with the record.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, cast

from statetrack.errors import BadInput
from statetrack.results.cell import Cell

TRAIN = "train"
KINDS: Mapping[str, str] = {TRAIN: "statetrack.training.cells", "ask": "statetrack.asking.cells"}


class WrongPart(BadInput):
    """What is wrong, and in which part of a block: tasks, subjects, lengths, seeds, protocol or settings."""

    def __init__(self, part: str, message: str) -> None:
        super().__init__(message)
        self.part = part


@contextmanager
def checking(part: str) -> Iterator[None]:
    """Say of a refusal inside which part of a block it speaks of."""
    try:
        yield
    except BadInput as error:
        raise WrongPart(part, str(error)) from error


class Kind(Protocol):
    """What a kind's module offers."""

    def describe(
        self, task: str, subject: str, length: int, seed: int, protocol: str, settings: dict[str, Any]
    ) -> Cell: ...

    def cost(self, cell: Cell) -> float: ...

    def run(self, cells: list[Cell], scratch: Path, device: str) -> Iterator[tuple[Cell, dict[str, Any]]]: ...


def kind_of(subject: str, kinds: Mapping[str, str] = KINDS) -> str:
    """The module that runs this subject.

    >>> kind_of("ask:hf:SmolLM2 implicit"), kind_of("counter.py:Counter")
    ('statetrack.asking.cells', 'statetrack.training.cells')
    """
    prefix, colon, _ = subject.partition(":")
    return kinds[prefix] if colon and prefix in kinds else kinds[TRAIN]


def load(module: str) -> Kind:
    """The kind at this address; one that is not there yet is named."""
    try:
        return cast(Kind, importlib.import_module(module))
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        raise BadInput(f"cells of this kind need {module}, which is not in this installation") from error
