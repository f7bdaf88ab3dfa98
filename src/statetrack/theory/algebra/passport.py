"""The passport of a task: what it is, computed from its machine.

>>> import statetrack as st
>>> print(passport(st.task("txc")).text())
states      2, minimal automaton: 1.00 bits
group       C2, order 2, abelian, simple; composition factors C2
also known  as c2, z2_1
repeated    under one repeated input the state has the periods 1, 2
circuits    ACC0: it holds groups, all of them solvable; so it is in TC0 too, and not in AC0
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.tasks.base import Task
from statetrack.tasks.facts import TaskFacts
from statetrack.tasks.finite import FiniteTask
from statetrack.tasks.groups import Group, usual_name
from statetrack.theory.algebra.circuits import Circuit
from statetrack.theory.algebra.known import circuit_of, monoid_of
from statetrack.theory.algebra.monoid_facts import MonoidFacts, of_automaton, of_group, periods
from statetrack.theory.algebra.structure import Structure, structure, symmetric


@dataclass(frozen=True)
class Passport:
    """What a task is. `states` is None where they are without bound or not counted; `state_text` says their bits.

    `periods` are the periods of the state under one repeated input; `group` is the algebra of a group task.
    """

    task: str
    states: int | None
    state_bits: float | None
    state_text: str
    monoid: MonoidFacts | None
    circuit: Circuit
    periods: tuple[int, ...]
    group: Structure | None = None
    notes: tuple[str, ...] = ()

    @property
    def quasi_aperiodic(self) -> bool:
        return self.circuit.name == "AC0"

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def text(self) -> str:
        """A few lines for a person."""
        lines = [("states", self.state_text)]
        if self.group is not None:
            lines.append(("group", self.group.text()))
            if len(self.group.isomorphic) > 1:
                lines.append(("also known", "as " + ", ".join(self.group.isomorphic)))
        elif self.monoid is not None:
            lines.append(("monoid", self.monoid.text()))
        if self.periods:
            shown = ", ".join(map(str, self.periods[:8])) + (", ..." if len(self.periods) > 8 else "")
            lines.append(("repeated", f"under one repeated input the state has the periods {shown}"))
        lines.append(("circuits", self.circuit.text()))
        lines += [("assumed", assumption) for assumption in self.circuit.assumed]
        lines += [("note", note) for note in self.notes]
        return "\n".join(f"{label:11} {text}" for label, text in lines)


def passport(task: Task) -> Passport:
    """The passport of any task."""
    acting = acting_group(task)
    if acting is not None:
        return _of_group(task, acting)
    if isinstance(task, FiniteTask):
        return _of_automaton(task)
    return _of_facts(task, task.facts or TaskFacts())


@dataclass(frozen=True)
class Acting:
    """A task whose inputs permute: the group that they generate, their orders, and the number of the task's states."""

    algebra: Structure
    letter_orders: tuple[int, ...]
    letters: int
    states: int


def acting_group(task: Task) -> Acting | None:
    """The group that the inputs of a task generate, for the tasks that are groups by construction."""
    from statetrack.tasks.groups.task import GroupTask

    if isinstance(task, GroupTask):
        whole, algebra = task.group_object, _named(task.group_object)
        if task.over == "generators":
            return Acting(algebra, periods(whole.generators), len(np.unique(whole.generators, axis=0)), whole.order)
        return Acting(algebra, tuple(np.unique(whole.element_orders).tolist()), whole.order, whole.order)
    if task.facts is not None and task.facts.moves is not None and task.facts.states is not None:
        moves = task.facts.moves
        return Acting(symmetric(moves.shape[1]), periods(moves), len(np.unique(moves, axis=0)), task.facts.states)
    return None


def _named(group: Group) -> Structure:
    """The algebra of a group, under the name that was asked for if it has no better one."""
    algebra = structure(group)
    if algebra.name.endswith(f"order {algebra.order}") and not group.name.startswith("<"):
        return dataclasses.replace(algebra, name=usual_name(group.name))
    return algebra


def _of_group(task: Task, acting: Acting) -> Passport:
    facts, circuit = of_group(acting.algebra, acting.letters == 1)
    bits, text = math.log2(acting.states), _counted(acting.states)
    return Passport(task.name, acting.states, bits, text, facts, circuit, acting.letter_orders, acting.algebra)


def _of_automaton(task: FiniteTask) -> Passport:
    states, steps = _machine(task)
    facts, circuit = of_automaton(steps)
    group = facts.groups[0] if facts.is_group and len(facts.groups) == 1 else None
    return Passport(task.name, states, math.log2(states), _counted(states), facts, circuit, periods(steps.T), group)


def _of_facts(task: Task, facts: TaskFacts) -> Passport:
    text = facts.state_text or "not known: the task is not a finite automaton"
    monoid = monoid_of(facts)
    settled = () if monoid is None else (1,)  # as an aperiodic machine does under one repeated input
    return Passport(task.name, facts.states, facts.bits, text, monoid, circuit_of(facts), settled)


def _counted(states: int) -> str:
    return f"{states}, minimal automaton: {math.log2(states):.2f} bits"


def _machine(task: FiniteTask) -> tuple[int, NDArray[Any]]:
    """The number of states of the minimal automaton, and a table with its transition monoid.

    A task may give a smaller table. Its maps may multiply in the reverse order, which changes neither groups nor sizes.
    """
    if task.facts is not None and task.facts.table is not None and task.facts.states is not None:
        return task.facts.states, task.facts.table
    smallest = task.automaton.minimised()
    return smallest.states, smallest.steps
