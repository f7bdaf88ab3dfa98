"""A task of one's own: a class of `Task` in a file, named as `mine.py:Mine[k=3]`, or in a module.

Its name holds the hash of its code, `mine.py:Mine[k=3,sha256=5520c018]`, so that an edited file is another task. Its
rows are drawn by its `base_name` (or the name of its class) and its parameters alone: they are the same wherever the
file lies, and after an edit. What its code raises is said in one line, with the line of the file.
"""

from __future__ import annotations

import functools
import inspect
import operator
import types
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np

from statetrack.errors import BadInput
from statetrack.own_code import HASH, blamed, blaming, own_class
from statetrack.tasks.base import Ints, Run, Task, check_inputs, parameter_types

ROWS, LENGTH = 4, 12  # on which a task is tried before it is used
WINDOW = 5
FIELDS = "__dataclass_fields__"
TYPES = (int, float, bool, str, tuple[float, ...])


def own_kind(address: str, sha256: str | None) -> type[Task]:
    """The class at an address, where it may be run; `sha256` is what its hash should be, where a text gives one."""
    kind, found = own_class(address, sha256, Task, "statetrack.Task")  # type: ignore[type-abstract]
    return _named(kind, address, found)


@functools.cache
def _named(kind: type[Task], address: str, sha256: str) -> type[Task]:
    """The same class, which knows where it comes from and blames its file for what its members raise."""
    _check_parameters(kind, address)
    own: dict[str, Any] = {"__module__": kind.__module__, "__doc__": kind.__doc__, "__qualname__": kind.__qualname__}
    own |= {"code_at": address, "code_sha256": sha256}
    own |= {name: made for name, each in _own_members(kind) if (made := _blaming(each, address)) is not None}
    return types.new_class(kind.__name__, (kind,), exec_body=lambda namespace: namespace.update(own))


def _check_parameters(kind: type[Task], address: str) -> None:
    held = {name for base in kind.__mro__ for name in vars(base).get(FIELDS, ())}
    if FIELDS not in vars(kind) and (inspect.get_annotations(kind) or held - getattr(kind, FIELDS).keys()):
        raise BadInput(f"{address} has parameters, so it needs @dataclass(frozen=True, kw_only=True) above its class")
    with blaming(f"the parameters of {address} cannot be read"):
        hints = parameter_types(kind)
    if HASH in hints:
        raise BadInput(f"{address} has a parameter {HASH!r}, which is the hash of its code; call it something else")
    for name, hint in hints.items():
        if hint not in TYPES:
            raise BadInput(f"{address}: parameter {name} should be of type int, float, bool, str or tuple[float, ...]")


def _own_members(kind: type[Task]) -> Iterator[tuple[str, Any]]:
    """What the class, and classes of one's own that it builds on, define; Python's own double underscores aside."""
    seen: set[str] = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("statetrack.tasks."):
            yield from ((name, each) for name, each in vars(base).items() if name not in seen and name[:2] != "__")
        seen |= vars(base).keys()


def _blaming(member: Any, address: str) -> Any:
    """A function, a method or a property whose errors are said in one line; None for anything else."""
    if isinstance(member, property) and member.fget:
        return property(_guarded(member.fget, address), doc=member.__doc__)
    if isinstance(member, functools.cached_property):
        return functools.cached_property(_guarded(member.func, address))
    if isinstance(member, staticmethod | classmethod):
        return type(member)(_guarded(member.__func__, address))
    return _guarded(member, address) if isinstance(member, types.FunctionType) else None


def _guarded(function: Callable[..., Any], address: str) -> Callable[..., Any]:
    """`blaming` without the cost of a context at every step of the machine."""

    @functools.wraps(function)
    def guarded(*given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        except (BadInput, MemoryError):
            raise
        except (Exception, SystemExit) as error:
            if isinstance(error, SystemExit) and type(error) is not SystemExit:  # of our own, which ends a worker
                raise
            raise blamed(f"{address} fails", error) from error

    return guarded


@functools.lru_cache(maxsize=256)
def checked(task: Task) -> Task:
    """The task, if a few rows show nothing wrong with it; what is wrong is said in one line."""
    at = task.code_at
    with blaming(f"{at} fails"):
        for name, count in (("inputs", task.inputs), ("outputs", task.outputs)):
            if not _whole(count) or count < 1:
                raise BadInput(f"{at}: {name} is {count!r}; it should be a whole number of at least 1")
        rows = task.rows(np.full(ROWS, LENGTH), np.arange(ROWS), 0, "test")
        if np.shape(rows) != (ROWS, LENGTH):
            raise BadInput(f"{at} draws rows of shape {np.shape(rows)} instead of {(ROWS, LENGTH)}")
        rows = check_inputs(rows, task.inputs, at)
        for row in rows.tolist():
            _check_steps(task, row)
        _check_runs(task, rows)
    return task


def _check_steps(task: Task, row: list[int]) -> None:
    """States can be hashed, steps depend on nothing else, and answers are classes."""
    at, state = task.code_at, task.start()
    for symbol in row:
        state, again = task.step(state, symbol), task.step(state, symbol)
        if not isinstance(state, Hashable):
            raise BadInput(f"{at}: a state is a {type(state).__name__}, which cannot be hashed; a tuple can")
        if state != again:
            raise BadInput(f"{at}: two steps from one state on one input lead to {state!r} and to {again!r}")
        answer = task.answer(state)
        if answer is not None and not (_whole(answer) and 0 <= answer < task.outputs):
            allowed = f"a whole number in 0..{task.outputs - 1}, or None where nothing is asked"
            raise BadInput(f"{at}: the answer in state {state!r} is {answer!r}; it should be {allowed}")


def _check_runs(task: Task, rows: Ints) -> None:
    """`run` answers as the steps do, also in pieces with the state handed on."""
    plain, whole, first = Task.run(task, rows), task.run(rows), task.run(rows[:, :WINDOW])
    rest = task.run(rows[:, WINDOW:], first.state)
    joined = Run(np.hstack([first.targets, rest.targets]), np.hstack([first.defined, rest.defined]), rest.state)
    for how, found in (("", whole), (" in two pieces", joined)):
        asked = np.where(plain.defined, found.targets, 0)
        if not np.array_equal(found.defined, plain.defined) or not np.array_equal(asked, plain.targets):
            raise BadInput(f"{task.code_at}: run{how} answers differently from step and answer")


def _whole(number: Any) -> bool:
    try:
        operator.index(number)
    except TypeError:
        return False
    return True
