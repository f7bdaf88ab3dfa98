"""Tasks whose machine is no automaton that could be written out: what is known of them by argument."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.formatting import plural
from statetrack.tasks.base import Task
from statetrack.theory.algebra import circuits
from statetrack.theory.algebra.circuits import Circuit
from statetrack.theory.algebra.monoid_facts import MonoidFacts

VALUE_BITS = math.log2(100)


@dataclass(frozen=True)
class TaskFacts:
    """The part of a passport that is known without writing out a machine."""

    states: int | None
    bits: float | None
    text: str
    circuit: Circuit
    monoid: MonoidFacts | None = None
    periods: tuple[int, ...] = ()


def describe(task: Task) -> TaskFacts:
    """What is known of a task that is not a finite automaton."""
    from statetrack.tasks.machines.rtc import MajorityTask
    from statetrack.tasks.streams.distinct import Distinct
    from statetrack.tasks.streams.echo import Echo
    from statetrack.tasks.streams.track_the_stat import TrackTheStat
    from statetrack.tasks.streams.window_median import WindowMedian

    if isinstance(task, MajorityTask):
        return _balance()
    if isinstance(task, TrackTheStat):
        return _counts(task)
    if isinstance(task, (Echo, WindowMedian)):
        return _last(task.k, "echo" if isinstance(task, Echo) else "median")
    if isinstance(task, Distinct):
        return _distinct()
    nothing = circuits.unknown("nothing is known of this task")
    return TaskFacts(None, None, "not known: the task is no finite automaton", nothing)


def _balance() -> TaskFacts:
    text = "unbounded counter: the balance after T inputs is one of T + 1 values, log2(T + 1) bits"
    return TaskFacts(None, None, text, circuits.majority("it is the running majority"))


def histogram_bits(turns: int, values: int = 100) -> float:
    """log2 C(t + 99, 99): how many bits tell all histograms of t numbers apart.

    >>> round(histogram_bits(300))
    318
    """
    return math.log2(math.comb(turns + values - 1, values - 1))


def _counts(task: Task) -> TaskFacts:
    text = f"unbounded counters: at most log2 C(t+99, 99) bits after t numbers, {histogram_bits(300):.0f} after 300"
    why = f"counts are compared, and on two numbers alone the {task.name.rpartition('.')[2]} is a majority"
    return TaskFacts(None, None, text, circuits.majority(why))


def _last(k: int, what: str) -> TaskFacts:
    """The last k numbers are the state: for an echo those before the present one, for a median all it is about."""
    bits = k * VALUE_BITS
    monoid = MonoidFacts(None, False, False, True, True, True, (), ("it forgets by itself, so it is aperiodic",))
    text = f"100^{k}, the last {plural(k, 'number')}: {bits:.2f} bits"
    circuit = circuits.definite(f"the last {plural(k + (what == 'echo'), 'input')}")
    return TaskFacts(100**k, bits, text, circuit, monoid, (1,))


def _distinct() -> TaskFacts:
    certain = ("sets of numbers under union, 2^100 elements, aperiodic and commutative",)
    monoid = MonoidFacts(2**100, False, False, True, True, True, (), certain)
    return TaskFacts(2**100, 100.0, "2^100, one bit a number: 100 bits", circuits.STAR_FREE, monoid, (1,))


def sources(task: Any) -> NDArray[np.int64]:
    """For every order of a `variables` task, where each variable takes its value from: a variable, or v + value.

    Constants, which follow the variables, stay what they are.
    """
    rows = np.tile(np.arange(task.v + task.values), (task.inputs, 1))
    for row, (verb, a, b) in zip(rows, task.orders):
        if verb == "set":
            row[a] = task.v + b
        elif verb == "copy":
            row[b] = a
        else:
            row[[a, b]] = b, a
    return rows
