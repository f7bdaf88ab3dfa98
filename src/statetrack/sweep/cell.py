"""A cell is one thing measured: (task, subject, length, seed, protocol). Its key is a hash of that description."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Cell:
    """What is measured. Everything in it is text, a number or plain data, so that it reads the same everywhere.

    >>> Cell("txc", "mlp", 64, 0, {"name": "design"}).key == Cell("txc", "mlp", 64, 0, {"name": "design"}).key
    True
    """

    task: str
    subject: str
    length: int
    seed: int
    protocol: dict[str, Any]

    @property
    def key(self) -> str:
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
