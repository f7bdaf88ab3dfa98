"""A cell is one thing measured: (task, subject, length, seed, protocol). Its key is a hash of that description."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any


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
        # As it comes back from a file: a tuple is a list, a key is a text.
        object.__setattr__(self, "protocol", json.loads(json.dumps(self.protocol)))

    @cached_property
    def key(self) -> str:
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:20]

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
