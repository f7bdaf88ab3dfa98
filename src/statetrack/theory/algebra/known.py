"""Tasks whose machine is not an automaton that could be written out: what follows from what they say of themselves."""

from __future__ import annotations

from statetrack.formatting import plural
from statetrack.tasks.facts import TaskFacts
from statetrack.theory.algebra import circuits
from statetrack.theory.algebra.circuits import Circuit
from statetrack.theory.algebra.monoid_facts import MonoidFacts


def monoid_of(facts: TaskFacts) -> MonoidFacts | None:
    """The transition monoid of an aperiodic task, such as one that a few last inputs decide; None for any other."""
    why = "it forgets by itself, so it is aperiodic" if facts.reach is not None else facts.aperiodic
    return MonoidFacts(facts.elements, False, False, True, True, True, (), (why,)) if why else None


def circuit_of(facts: TaskFacts) -> Circuit:
    """The circuit class that follows.

    >>> circuit_of(TaskFacts(reach=3)).text()
    'AC0: the answer depends on the last 3 inputs alone'
    """
    if facts.majority:
        return circuits.majority(facts.majority)
    if facts.reach is not None:
        return circuits.definite(f"the last {plural(facts.reach, 'input')}")
    return circuits.STAR_FREE if facts.aperiodic else circuits.unknown("nothing is known of this task")
