"""A cell is one thing measured: (task, subject, length, seed, protocol). Its key is a hash of that description."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

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
        return f"{self.task}, {self.subject}, length {self.length}, seed {self.seed}"


def _plain(value: Any) -> Any:
    """As it comes back from a JSON file: a tuple is a list."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
