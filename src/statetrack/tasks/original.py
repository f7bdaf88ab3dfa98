"""How an evaluation that a task comes from puts it, so that a model can be asked as there; told in our own words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OriginalWords:
    """What `compat` says of a task.

    about     what is shown, and what is to be answered
    note      what holds in the cases that this leaves open
    remarks   why each answer of the task's `example` is what it is
    state     what it is that is shown as the state
    """

    about: str
    note: str
    remarks: tuple[str, ...]
    state: str
