"""`statetrack show`: what a task is, with an example worked out."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statetrack.cli.options import TaskText
from statetrack.cli.output import print_json, print_table, say

if TYPE_CHECKING:
    from statetrack.tasks import Task
    from statetrack.tasks.groups import Group

EXAMPLE_LENGTH = 8
MOST_WORDS = 12  # inputs or classes that are named one by one


def command(
    task: TaskText,
    length: Annotated[int, typer.Option(help="The length of rows that the floors are for.")] = 64,
    passport_only: Annotated[
        bool, typer.Option("--passport", help="Only what it is; also for several tasks: all, nc1_groups, ...")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what a task is: its words, its sizes, its algebra, what a guess scores on it, and a row with the answers.

    Example: statetrack show s5_composition --length 64
    """
    from statetrack import tasks
    from statetrack.theory import floors, passport

    if passport_only:
        _passports(task, as_json)
        return
    chosen = tasks.task(task)
    the_passport, scores = passport(chosen), floors(chosen, length)
    facts = _facts(chosen)
    if as_json:
        print_json({**facts, "passport": the_passport.to_dict(), "floors": scores.to_dict()})
        return
    _print(facts)
    say(f"\nWhat it is:\n{the_passport.text()}")
    say(f"\nWhat a guess scores at length {length}:\n{scores.text()}")


def _passports(selector: str, as_json: bool) -> None:
    from statetrack.tasks.catalogue import select, task
    from statetrack.theory import passport

    passports = {name: passport(task(name)) for name in select(selector)}
    if as_json:
        print_json([passport.to_dict() for passport in passports.values()])
    else:
        say("\n".join(f"== {name}\n{passport.text()}" for name, passport in passports.items()))


def _facts(task: Task) -> dict[str, Any]:
    from statetrack.tasks.base import parameters
    from statetrack.tasks.groups.task import GroupTask

    values = {field.name: getattr(task, field.name) for field in parameters(type(task))}
    return {
        "task": task.name,
        "title": task.title,
        "about": inspect.getdoc(type(task)) or "",
        "parameters": {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()},
        "splits": list(task.splits),
        "inputs": task.inputs,
        "classes": task.outputs,
        "inputs_in_words": _all_words(task, task.inputs, task.symbol_text),
        "classes_in_words": _all_words(task, task.outputs, task.answer_text),
        **({"group": _group(task.group_object)} if isinstance(task, GroupTask) else {}),
        "example": _example(task),
    }


def _group(group: Group) -> dict[str, Any]:
    from statetrack.data.identify import invariants
    from statetrack.tasks.groups import family, usual_name
    from statetrack.tasks.groups.permutations import cycle_text

    return {
        "name": group.name,
        "usual_name": usual_name(group.name),
        "family": family(group.name),
        "degree": group.degree,
        **invariants(group),
        "solvable": group.is_solvable,
        "abelian": group.is_abelian,
        "nilpotent": group.is_nilpotent,
        "generators": [cycle_text(generator) for generator in group.generators],
    }


def _example(task: Task) -> list[dict[str, Any]]:
    """One row of the test split, input by input."""
    batch = task.sample(length=EXAMPLE_LENGTH, count=1, seed=0, split="test")
    rows = []
    for t, (symbol, target, asked) in enumerate(zip(batch.inputs[0], batch.targets[0], batch.mask[0]), 1):
        said = {"t": t, "input": int(symbol), "input_words": _words(task, int(symbol), task.symbol_text)}
        due = (int(target), _words(task, int(target), task.answer_text)) if asked else (None, None)
        rows.append({**said, "class": due[0], "answer": due[1]})
    return rows


def _words(task: Task, number: int, text: Callable[[int], str]) -> str:
    """An element of a group in cycles, such as (0 2 1)(3 4); anything else as its task writes it."""
    from statetrack.tasks.groups.permutations import cycle_text
    from statetrack.tasks.groups.task import GroupTask

    return cycle_text(task.group_object.elements[number]) if isinstance(task, GroupTask) else text(number)


def _all_words(task: Task, count: int, text: Callable[[int], str]) -> list[str]:
    """All inputs, or classes, in words, where they are few and are not called by their numbers."""
    words = [_words(task, number, text) for number in range(count)] if count <= MOST_WORDS else []
    return words if words != [str(number) for number in range(count)] else []


def _sized(facts: dict[str, Any], name: str) -> str:
    """
    >>> _sized({"inputs": 2, "inputs_in_words": ["a", "b"]}, "inputs")
    '2: a, b'
    """
    return ": ".join(filter(None, [str(facts[name]), ", ".join(facts[f"{name}_in_words"])]))


def _print(facts: dict[str, Any]) -> None:
    say(f"{facts['task']}: {facts['title']}\n\n{facts['about']}\n")
    _print_lines({**{name: _sized(facts, name) for name in ("inputs", "classes")}, **facts["parameters"]})
    if "group" in facts:
        say(f"\nIts group, {facts['group']['usual_name']}:")
        product = " x ".join(f"Z{order}" for order in facts["group"].get("abelianisation", [])) or "trivial"
        _print_lines({**facts["group"], "abelianisation": product})
    say("\nAn example, worked out:")
    print_table(["t", "input", "in words", "class", "answer"], [list(row.values()) for row in facts["example"]])


def _print_lines(facts: dict[str, Any]) -> None:
    width = max(map(len, facts)) + 2
    for name, value in facts.items():
        say(f"{name.replace('_', ' '):{width}}{_text(value)}")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{count} of order {order}" for order, count in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value)
