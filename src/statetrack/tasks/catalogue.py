"""The names of all tasks. A new task is one file and one line here.

Groups need no line: `<group>_composition`, or the bare name of any group, is the task of composing its elements. A task
can also be called by its title, with _ or - for the blanks, and other packages can add tasks by an entry point.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from typing import Any

from statetrack import plugins, spec, trust
from statetrack.errors import BadInput, unknown
from statetrack.own_code import HASH, addresses, blaming, is_address
from statetrack.tasks.base import Task, needed, parameter_types
from statetrack.tasks.own import checked, own_kind

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
    "dictionary_sum": "streams.dictionary_sum:DictionarySum",
    "variables": "stories.variables:Variables",
    "cups": "stories.cups:Cups",
    "boxes": "stories.boxes:Boxes",
    "hands": "stories.hands:Hands",
    "roles": "stories.roles:Roles",
}
ALIASES = {"track_the_stat": "track_the_stat.mode"}
SELECTORS = ("permutation_groups", "tc0_groups", "nc1_groups")
SUFFIX = "_composition"


def task(text: str) -> Task:
    """The task that a text names, also as `file.py:Class` or `package.module:Class`: who names code may run it.

    >>> task("fsm[k=5,p=0.05]").name
    'fsm[k=5,p=0.05]'
    >>> task("RTC").name, task("s5").name, task("parity").name
    ('rtc', 's5_composition', 'txc')
    """
    with trust.trusting(*addresses([text])):
        return trusted_task(text)


def trusted_task(text: str) -> Task:
    """As `task`, for a text that stands in a file: its code is run only where `statetrack.trust` allows it."""
    name, given = spec.parse(text)
    if is_address(name):
        kind = own_kind(name, given.pop(HASH, None))
        with blaming(f"cannot build {name}"):
            return checked(build(kind, given, {}))
    kind, fixed = _find(name)
    return build(kind, given, fixed)


def given_task(task_or_name: Task | str, kept: bool = False) -> Task:
    """The task that a caller gives, by its text or as it is; where its results are kept, it must have a name."""
    if isinstance(task_or_name, str):
        given = task(task_or_name)
    elif isinstance(task_or_name, Task):
        given = task_or_name
    else:
        made = isinstance(task_or_name, type) and issubclass(task_or_name, Task)
        hint = f": {task_or_name.__name__}() would be one" if made else ""
        raise BadInput(f"a task is a name or a statetrack.Task, not a {type(task_or_name).__name__}{hint}")
    if kept:
        check_kept(given)
    return given


def check_kept(the_task: Task) -> None:
    """Refuse to keep results of a task that does not say where its code is (BadInput): after an edit of its class they
    could not be told from those before.
    """
    kind = type(the_task).__name__
    if not (the_task.code_sha256 or type(the_task).__module__.startswith("statetrack.tasks.") or _is_offered(the_task)):
        raise BadInput(
            f"{kind} given as an object does not say where its code is, so its results cannot be kept: "
            f"give its name, such as file.py:{kind}, or leave out `out`"
        )


def build(kind: type[Task], given: dict[str, str], fixed: dict[str, Any]) -> Task:
    """Make a task of this kind from parameters that are still text."""
    hints = parameter_types(kind)
    label = kind.code_at or fixed.get("group", kind.base_name)
    for key in given:
        if key not in hints:
            raise BadInput(f"{label} has no parameter {key!r}; it has {', '.join(hints)}")
    if missing := [name for name in needed(kind) if name not in given]:
        raise BadInput(f"{label} needs {', '.join(missing)}: {label}[{missing[0]}=...]")
    return kind(**{key: spec.read(value, hints[key], f"{label}: {key}") for key, value in given.items()}, **fixed)


def _find(name: str) -> tuple[type[Task], dict[str, Any]]:
    lower = name.lower()
    lower = ALIASES.get(lower, lower)
    if lower in CLASSES:
        return _load(CLASSES[lower]), {}
    if lower in SELECTORS:
        raise BadInput(f"{lower} is a set of tasks, not one; `statetrack list {lower}` lists them")
    if lower in _offered():
        return _kind(_offered()[lower]), {}
    from statetrack.tasks.groups import looks_like_group
    from statetrack.tasks.groups.task import GroupTask

    group = lower.removesuffix(SUFFIX)
    if looks_like_group(group):
        return GroupTask, {"group": group}
    if (title := _as_name(lower)) in titles():
        return _load(CLASSES[titles()[title]]), {}
    if lower.endswith(".py"):
        raise BadInput(f"a task from a file needs its class: {name}:Class")
    raise unknown("task", name, known_names())


@functools.cache
def titles() -> dict[str, str]:
    """The plain names by which catalogued tasks can be called, each with the task's own name."""
    own: dict[str, object] = {name: _load(where).title for name, where in CLASSES.items()}
    return {_as_name(title): name for name, title in own.items() if isinstance(title, str)}


def _as_name(title: str) -> str:
    return title.lower().replace(" ", "_").replace("-", "_")


@functools.cache
def _offered() -> dict[str, EntryPoint]:
    """Tasks that other packages offer under the entry points `statetrack.tasks`."""
    return plugins.offered(plugins.TASKS, _own())


def _kind(point: EntryPoint) -> type[Task]:
    """The class that an entry point names."""
    kind = plugins.load(point, object)
    if not isinstance(kind, type) or not issubclass(kind, Task):
        raise BadInput(f"{point.value} is not a class of statetrack.Task")
    return kind


def _is_offered(the_task: Task) -> bool:
    point = _offered().get(the_task.label)
    return point is not None and type(the_task) is _kind(point)


def _check_offer(point: EntryPoint) -> None:
    """Refuse what cannot be listed beside our own tasks."""
    name, offered = point.name.lower(), build(_kind(point), {}, {})
    if offered.name.lower() != name:
        raise BadInput(f"{point.value} calls itself {offered.name!r}; its base_name should be {name!r}")
    if not offered.title or offered.inputs < 1 or offered.outputs < 1:
        raise BadInput(f"{point.value} should have a title, and at least one input and one class")


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
    yield from (name for name, where in CLASSES.items() if not needed(_load(where)))
    yield from (group + SUFFIX for group in _groups())
    yield from plugins.loaded(plugins.TASKS, _own(), _check_offer)


def _groups() -> tuple[str, ...]:
    from statetrack.tasks.groups import catalogue

    return (*catalogue(), "z60", "a4xz5")


def _own() -> set[str]:
    """The names that no other package can have."""
    groups = _groups()
    return {*CLASSES, *ALIASES, *SELECTORS, *titles(), *groups, *(group + SUFFIX for group in groups)}


def known_names() -> list[str]:
    """Everything that could have been meant by a misspelt name."""
    return [*_own(), *_offered()]
