"""Sequence models, built on `statetrack.ops`: token ids in, logits at every position out. They know nothing of tasks.

find(text), entry(name), names()       what is known of a model without building it, and without torch
model(name, inputs=..., outputs=...)   a model by name, or file.py:Class
trusted_model(name, ...)               the same for a name from a file: its code is run if statetrack.trust allows it
check(model, inputs, outputs)          one batch, and one line about what is wrong
Replicas([...])                        several models of one kind as one batched module
answers_of(logits)                     the classes they stand for, and NO_ANSWER for what is not a number
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from statetrack.models.catalogue import ModelEntry, entry, find, names

if TYPE_CHECKING:
    from statetrack.models.build import model, trusted_model
    from statetrack.models.custom import check
    from statetrack.models.replicas import Replicas
    from statetrack.models.sequence import NO_ANSWER, SequenceModel, State, answers_of

__all__ = [
    "NO_ANSWER", "ModelEntry", "Replicas", "SequenceModel", "State", "answers_of", "check", "entry", "find", "model",
    "names", "trusted_model",
]  # fmt: skip

_WITH_TORCH = {
    "model": "build", "trusted_model": "build", "check": "custom", "Replicas": "replicas",
    "NO_ANSWER": "sequence", "SequenceModel": "sequence", "State": "sequence", "answers_of": "sequence",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """What needs torch is imported when it is first asked for, so that the catalogue can be read without it."""
    if name not in _WITH_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WITH_TORCH[name]}"), name)
