"""`statetrack show`: what a task is, with an example worked out."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statetrack.cli.output import print_json, print_table

if TYPE_CHECKING:
    from statetrack.tasks import Task
    from statetrack.tasks.groups import Group

EXAMPLE_LENGTH = 8


def command(
    task: Annotated[str, typer.Argument(help="The task's text, such as s5, fsm[k=5] or track_the_stat.median.")],
    length: Annotated[int, typer.Option(help="The length of rows that the floors are for.")] = 64,
    passport_only: Annotated[
        bool, typer.Option("--passport", help="Only what it is; also of several tasks: all, nc1_groups, ...")
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
    known, scores = passport(chosen), floors(chosen, length)
    facts = {**_about(chosen), **_algebra(chosen), "example": _example(chosen)}
    if as_json:
        print_json({**facts, "passport": known.to_dict(), "floors": scores.to_dict()})
        return
    _print(facts)
    print(f"\nWhat it is:\n{known.text()}")
    print(f"\nWhat a guess scores at length {length}:\n{scores.text()}")


def _passports(selector: str, as_json: bool) -> None:
    from statetrack.tasks.catalogue import select, task
    from statetrack.theory import passport

    known = {name: passport(task(name)) for name in select(selector)}
    if as_json:
        print_json([passport.to_dict() for passport in known.values()])
    else:
        print("\n".join(f"== {name}\n{passport.text()}" for name, passport in known.items()))


def _about(task: Task) -> dict[str, Any]:
    from statetrack.tasks.base import parameters

    values = {field.name: getattr(task, field.name) for field in parameters(type(task))}
    return {
        "task": task.name,
        "about": inspect.getdoc(type(task)) or "",
        "parameters": {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()},
        "splits": list(task.splits),
        "inputs": task.inputs,
        "classes": task.outputs,
    }


def _algebra(task: Task) -> dict[str, Any]:
    from statetrack.tasks.groups.task import GroupTask

    return {"group": _group(task.group_object)} if isinstance(task, GroupTask) else {}


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
        rows.append({
            "t": t,
            "input": int(symbol),
            "input_words": _symbol_words(task, int(symbol)),
            "class": int(target) if asked else None,
            "answer": _answer_words(task, int(target)) if asked else None,
        })  # fmt: skip
    return rows


def _symbol_words(task: Task, symbol: int) -> str:
    return _permutation(task, symbol) or task.symbol_text(symbol)


def _answer_words(task: Task, answer: int) -> str:
    return _permutation(task, answer) or task.answer_text(answer)


def _permutation(task: Task, element: int) -> str | None:
    """An element of a group in cycles, such as (0 2 1)(3 4)."""
    from statetrack.tasks.groups.permutations import cycle_text
    from statetrack.tasks.groups.task import GroupTask

    return cycle_text(task.group_object.elements[element]) if isinstance(task, GroupTask) else None


def _print(facts: dict[str, Any]) -> None:
    print(f"{facts['task']}\n\n{facts['about']}\n")
    sizes = [("inputs", facts["inputs"]), ("classes", facts["classes"])]
    sizes += [(name, _text(value)) for name, value in facts["parameters"].items()]
    _print_lines(sizes)
    if "group" in facts:
        print(f"\nIts group, {facts['group']['usual_name']}:")
        product = " x ".join(f"Z{order}" for order in facts["group"].get("abelianisation", [])) or "trivial"
        _print_lines([(name, _text(value)) for name, value in {**facts["group"], "abelianisation": product}.items()])
    print("\nAn example, worked out:")
    print_table(["t", "input", "in words", "class", "answer"], [list(row.values()) for row in facts["example"]])


def _print_lines(facts: list[tuple[str, Any]]) -> None:
    width = max(len(name) for name, _ in facts) + 2
    for name, value in facts:
        print(f"{name.replace('_', ' '):{width}}{value}")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{count} of order {order}" for order, count in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value)
