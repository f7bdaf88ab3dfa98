"""A state as text that a person, or a language model, can read without knowing Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

NOTHING_YET = "nothing yet"


def plain_text(value: Any) -> str:
    """Numbers and names as they are, sets sorted, fields and tables with their names, nothing in Python's notation.

    >>> plain_text((2, 0)), plain_text(frozenset({3, 1})), plain_text({"a": 1, "b": (0, 1)}), plain_text(None)
    ('2, 0', '1, 3', 'a: 1, b: 0, 1', 'nothing yet')
    """
    if value is None:
        return NOTHING_YET
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, np.ndarray):
        return plain_text(value.tolist())
    if isinstance(value, Mapping):
        return _named(value)
    if hasattr(value, "_asdict"):
        return _named(value._asdict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _named({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    if isinstance(value, AbstractSet):
        return _listed(sorted(value, key=_order))
    return _listed(value) if isinstance(value, list | tuple) else str(value)


def _order(part: Any) -> tuple[bool, float, str]:
    """Numbers by size, then all else by its text: the parts of a set need not be comparable."""
    return (False, part, "") if isinstance(part, int | float) else (True, 0, plain_text(part))


def _named(parts: Mapping[Any, Any]) -> str:
    return ", ".join(f"{plain_text(name)}: {plain_text(part)}" for name, part in parts.items()) or NOTHING_YET


def _listed(parts: list[Any] | tuple[Any, ...]) -> str:
    """Parts that have parts of their own are kept apart by semicolons."""
    nested = any(isinstance(part, list | tuple | AbstractSet | Mapping) for part in parts)
    return ("; " if nested else ", ").join(map(plain_text, parts)) or NOTHING_YET
