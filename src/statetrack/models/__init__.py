"""Sequence models, built on `statetrack.ops`: token ids in, logits at every position out. They know nothing of tasks.

model(name, inputs=..., outputs=...)   a model by name, or file.py:Class
names()                                the names, with a line about each
check(model, inputs, outputs)          one batch, and one line about what is wrong
Replicas([...])                        several models of one kind as one batched module
answers_of(logits)                     the classes they stand for, and NO_ANSWER for what is not a number
"""

from statetrack.models.catalogue import model, names
from statetrack.models.custom import check
from statetrack.models.replicas import Replicas
from statetrack.models.sequence import NO_ANSWER, SequenceModel, State, answers_of

__all__ = ["NO_ANSWER", "Replicas", "SequenceModel", "State", "answers_of", "check", "model", "names"]
