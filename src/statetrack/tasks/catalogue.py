"""The names of all tasks. A new task is one file and one line here.

Groups need no line: `<group>_composition`, or the bare name of any group, is the task of composing its elements.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from dataclasses import MISSING
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from statetrack import spec
from statetrack.errors import BadInput, unknown
from statetrack.tasks.base import Task, parameter_types, parameters

CLASSES = {
    "rtc": "machines.rtc:RTC",
    "txc": "machines.txc:TXC",
    "fsm": "machines.fsm:FSM",
    "xor_lag": "machines.xor_lag:XorLag",
    "mod_counter": "machines.mod_counter:ModCounter",
    "flip_flop": "machines.flip_flop:FlipFlop",
    "dyck": "machines.dyck:Dyck",
    "cycle_navigation": "machines.cycle_navigation:CycleNavigation",
    "even_pairs": "machines.even_pairs:EvenPairs",
    "modular_arithmetic": "machines.modular_arithmetic:ModularArithmetic",
    "automaton": "machines.automaton_file:AutomatonFile",
    "regex": "machines.regex:Regex",
    "track_the_stat.median": "streams.track_the_stat:Median",
    "track_the_stat.mode": "streams.track_the_stat:Mode",
    "stream.max": "streams.extremes:RunningMax",
    "stream.min": "streams.extremes:RunningMin",
    "stream.distinct": "streams.distinct:Distinct",
    "stream.sum_mod": "streams.sum_mod:SumMod",
    "stream.xor": "streams.xor:RunningXor",
    "stream.majority": "streams.majority:Majority",
    "stream.window_median": "streams.window_median:WindowMedian",
    "stream.echo": "streams.echo:Echo",
    "variables": "stories.variables:Variables",
    "cups": "stories.cups:Cups",
    "boxes": "stories.boxes:Boxes",
}
ALIASES = {"track_the_stat": "track_the_stat.mode"}
NEEDS_PARAMETERS = ("automaton", "regex")  # nothing to show without them
SELECTORS = ("permutation_groups", "tc0_groups", "nc1_groups")
SUFFIX = "_composition"


def task(text: str) -> Task:
    """The task that a text names.

    >>> task("fsm[k=5,p=0.05]").name
    'fsm[k=5,p=0.05]'
    >>> task("RTC").name, task("s5").name
    ('rtc', 's5_composition')
    """
    name, given = spec.parse(text)
    kind, fixed = _find(name)
    return build(kind, given, fixed)


def build(kind: type[Task], given: dict[str, str], fixed: dict[str, Any]) -> Task:
    """Make a task of this kind from parameters that are still text."""
    hints = parameter_types(kind)
    label = fixed.get("group", kind.base_name)
    for key in given:
        if key not in hints:
            raise BadInput(f"{label} has no parameter {key!r}; it has {', '.join(hints)}")
    missing = [field.name for field in parameters(kind) if field.default is MISSING and field.name not in given]
    if missing:
        raise BadInput(f"{label} needs {', '.join(missing)}: {label}[{missing[0]}=...]")
    return kind(**{key: spec.read(value, hints[key], f"{label}: {key}") for key, value in given.items()}, **fixed)


def _find(name: str) -> tuple[type[Task], dict[str, Any]]:
    lower = name.lower()
    lower = ALIASES.get(lower, lower)
    if lower in CLASSES:
        return _load(CLASSES[lower]), {}
    if lower in SELECTORS:
        raise BadInput(f"{lower} is a set of tasks, not one; `statetrack list {lower}` lists them")
    if lower in _installed():
        return _installed()[lower].load(), {}
    from statetrack.tasks.groups import looks_like_group
    from statetrack.tasks.groups.task import GroupTask

    group = lower.removesuffix(SUFFIX)
    if not looks_like_group(group):
        raise unknown("task", name, known_names())
    return GroupTask, {"group": group}


@functools.cache
def _installed() -> dict[str, EntryPoint]:
    """Tasks that other packages offer under the entry points `statetrack.tasks`."""
    return {point.name.lower(): point for point in entry_points(group="statetrack.tasks")}


@functools.cache
def _load(where: str) -> type[Task]:
    module, _, name = where.partition(":")
    kind: type[Task] = getattr(importlib.import_module(f"statetrack.tasks.{module}"), name)
    return kind


def select(name: str) -> list[str]:
    """The tasks of a selector, of a task's own name, or of 'all'.

    >>> len(select("permutation_groups")), select("nc1_groups")[0]
    (94, 's5_composition')
    """
    if name.lower() == "all":
        return list(names())
    if name.lower() in SELECTORS:
        from statetrack.tasks.groups import selector

        return [group + SUFFIX for group in selector(name.lower())]
    return [task(name).name]


def names() -> Iterator[str]:
    """Every catalogued task that stands without parameters."""
    from statetrack.tasks.groups import catalogue

    yield from (name for name in CLASSES if name not in NEEDS_PARAMETERS)
    yield from (group + SUFFIX for group in (*catalogue(), "z60", "a4xz5"))
    yield from _installed()


def known_names() -> list[str]:
    """Everything that could have been meant by a misspelt name."""
    full = list(names())
    bare = [name.removesuffix(SUFFIX) for name in full]
    return [*full, *bare, *NEEDS_PARAMETERS, *ALIASES, *SELECTORS]
