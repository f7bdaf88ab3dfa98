"""A cell is one thing measured: (task, subject, length, seed, protocol). Its key is a hash of that description.

The key hashes the fields of 0.1.0 as they were. A field that comes later enters only where it differs from its default.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

# The kinds of cells: a network that is trained, weights that are brought and evaluated, a language model that is asked.
TRAIN, EVALUATE, ASK = "train", "evaluate", "ask"
WEIGHTS = "weights"  # in the protocol of weights that are brought: their hash
STREAM, WORDS = "stream", "words"  # settings of a block of a sweep that say how a cell is evaluated besides
MATCH = "match"  # what stands in a block of a sweep for the size of its models

_text = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


@dataclass(frozen=True)
class Cell:
    """What is measured. Everything in it is text, a number or plain data, so that it reads the same everywhere.

    >>> Cell("txc", "mlp", 64, 0, {"rates": (1e-3,)}) == Cell("txc", "mlp", 64, 0, {"rates": [1e-3]})
    True
    """

    task: str
    subject: str
    length: int
    seed: int
    protocol: dict[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "protocol", _plain(self.protocol))

    @cached_property
    def key(self) -> str:
        return hashlib.sha256(_text(self.to_dict()).encode()).hexdigest()[:20]

    @property
    def kind(self) -> str:
        """How it is measured. Nothing else decides that."""
        name = self.protocol.get("name")
        return name if name in (ASK, EVALUATE) else TRAIN

    @property
    def steps(self) -> int:
        """How far 0.1.0 streamed it, which was part of the cell there; 0 in every cell of a later version."""
        steps: int = self.protocol.get(STREAM, 0)
        return steps

    @property
    def identity(self) -> Cell:
        """The cell itself: how far it was streamed is a setting of an evaluation.

        >>> Cell("txc", "mlp", 64, 0, {"stream": 4096}).identity == Cell("txc", "mlp", 64, 0, {"stream": 0})
        True
        """
        return replace(self, protocol={**self.protocol, STREAM: 0}) if self.steps else self

    @property
    def siblings(self) -> str:
        """The same for cells that differ in their seed alone."""
        return replace(self, seed=0).key

    def to_dict(self) -> dict[str, Any]:
        return {
            "task": self.task,
            "subject": self.subject,
            "length": self.length,
            "seed": self.seed,
            "protocol": self.protocol,
        }

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        if self.kind == EVALUATE:
            return f"{self.task}, {self.subject}, weights {str(self.protocol.get(WEIGHTS))[:8]}, seed {self.seed}"
        return f"{self.task}, {self.subject}, length {self.length}, seed {self.seed}"


def _plain(value: Any) -> Any:
    """As it comes back from a JSON file: a tuple is a list."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
