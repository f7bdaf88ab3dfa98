"""Positive controls: a failure speaks of a model only where the same training, the same protocol, is shown to teach it.

It must solve the same task at length 4, and a flip-flop with as many symbols at the length trained on. Networks that
solve the length trained on are their own control: they fail further out. Where theory denies the model a control, a
task that it grants, solved at that length, takes its place and is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from statetrack.errors import BadInput
from statetrack.models.catalogue import lookup
from statetrack.tasks import trusted_task
from statetrack.theory.predictions.predict import CANNOT, EVERY, predict
from statetrack.verdicts.measurements import Measurement, most
from statetrack.verdicts.networks import Network, networks

SHORT = 4
ALWAYS_DENIED = ("memoryless", "fixed-linear")  # families whose limits hold at every length


@dataclass(frozen=True)
class Adequacy:
    """Whether training was shown to be adequate, and by what, or what is lacking."""

    shown: bool
    why: str

    @property
    def text(self) -> str:
        return self.why if self.shown else f"training not shown adequate: {self.why}"


def adequacy(judged: Sequence[Network], results: Iterable[Measurement]) -> Adequacy:
    """Of the training that these networks had, all of one model and task, one way and one length."""
    if most([one.learned is True for one in judged]):
        return Adequacy(True, "the length trained on was solved")
    first, trained = judged[0].first, judged[0].trained
    beside = [one for one in networks(results) if _same_trainer(one, judged[0])]
    try:
        symbols = max(2, trusted_task(first.task).inputs)
    except BadInput as error:
        return Adequacy(False, f"the task is not at hand ({error})")
    flip_flop = "flip_flop" if symbols == 2 else f"flip_flop[symbols={symbols}]"
    found = [_control(beside, first, first.task, SHORT), _control(beside, first, flip_flop, trained)]
    lacking = [control.why for control in found if not control.shown]
    return Adequacy(not lacking, "; ".join(lacking or [control.why for control in found]))


def _same_trainer(one: Network, judged: Network) -> bool:
    return (one.first.model.lower(), one.first.protocol) == (judged.first.model.lower(), judged.first.protocol)


def _control(beside: list[Network], judged: Measurement, name: str, length: int) -> Adequacy:
    if denied(judged.model, name, length):
        return _in_its_place(beside, judged, name, length)
    ran = [one for one in beside if one.first.task == name and one.trained == length]
    if not ran:
        return Adequacy(False, f"{name} at {length:,} was not run")
    solved = [one.learned is True for one in ran]
    counted = f"{name} at {length:,} was solved by {sum(solved)} of {len(solved)}"
    return Adequacy(most(solved), counted)


def _in_its_place(beside: list[Network], judged: Measurement, name: str, length: int) -> Adequacy:
    """Any other task that theory grants the model, at this length."""
    for other in sorted({one.first.task for one in beside if one.trained == length} - {judged.task}):
        if granted(judged.model, other):
            found = _control(beside, judged, other, length)
            if found.shown:
                return Adequacy(True, f"in place of {name}, which theory denies it: {found.why}")
    return Adequacy(False, f"theory denies it {name}, and no task that it grants was solved at {length:,}")


def denied(model: str, name: str, length: int) -> bool:
    """Whether theory says that the model has no weights for a task, already at this length.

    >>> denied("mlp", "txc", 4), denied("mamba2-4l", "txc", 4), denied("mamba2-4l", "txc", 64)
    (True, False, True)
    """
    try:
        line = lookup(model)
        at_once = line is not None and line.family in ALWAYS_DENIED
        return _predicted(model, name) == CANNOT and (at_once or length > SHORT)
    except BadInput:
        return False


def granted(model: str, name: str) -> bool:
    try:
        return _predicted(model, name) == EVERY
    except BadInput:
        return False


@cache
def _predicted(model: str, name: str) -> str:
    """What theory says; a task that is not at hand (BadInput) is looked for again the next time."""
    return predict(model, trusted_task(name)).outcome
