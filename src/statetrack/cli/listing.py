"""`statetrack list`: the names there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from statetrack.cli import completion
from statetrack.cli.output import print_json, print_table
from statetrack.errors import unknown
from statetrack.formatting import first_sentence

Entries = list[dict[str, Any]]


def _kinds(incomplete: str) -> list[str]:
    """For a shell that completes a line."""
    from statetrack.tasks.catalogue import SELECTORS

    return completion.beginning((*KINDS, *SELECTORS), incomplete)


def command(
    what: Annotated[
        str,
        typer.Argument(
            help="tasks, groups, models, sweeps, solvers, permutation_groups, tc0_groups, nc1_groups.",
            autocompletion=_kinds,
        ),
    ] = "tasks",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the tasks, the groups, the models, the sweeps, the solvers, or the tasks that a selector stands for.

    Example: statetrack list nc1_groups --json
    """
    from statetrack.tasks.catalogue import SELECTORS, select, task

    name = what.lower()
    if name in KINDS:
        entries = KINDS[name]()
    elif name in SELECTORS:
        entries = [_sizes(task(each)) for each in select(name)]
    else:
        raise unknown("kind of thing to list:", name, [*KINDS, *SELECTORS])
    if as_json:
        print_json(entries)
    else:
        print_table(list(entries[0]), [list(entry.values()) for entry in entries])


def _tasks() -> Entries:
    from statetrack.tasks.catalogue import names, task

    return [_sizes(each) | {"what": first_sentence(_words(each))} for each in map(task, names())]


def _sizes(each: Any) -> dict[str, Any]:
    return {"task": each.name, "title": each.title, "inputs": each.inputs, "classes": each.outputs}


def _words(each: Any) -> str:
    from statetrack.tasks.groups import usual_name
    from statetrack.tasks.groups.task import GroupTask

    if isinstance(each, GroupTask):
        return f"the product of elements of {usual_name(each.group)}"
    return each.__doc__ or each.title


def _groups() -> Entries:
    from statetrack.tasks.groups import catalogue, family, group, usual_name
    from statetrack.tasks.groups.names import MATCHED

    entries = []
    for name in (*catalogue(), *MATCHED):
        the_group = group(name)
        entries.append({"group": name, "usual_name": usual_name(name), "family": family(name), "order": the_group.order,
                        "degree": the_group.degree, "solvable": the_group.is_solvable})  # fmt: skip
    return entries


def _models() -> Entries:
    from statetrack.models.catalogue import UNKNOWN, entries

    return [
        {"model": name, "family": line.family, "layers": None if line.family == UNKNOWN else line.layers,
         "width": line.width or None, "what": line.about}
        for name, line in entries().items()
    ]  # fmt: skip


def _sweeps() -> Entries:
    from statetrack.sweeps.document import about, shipped

    return [{"sweep": name, "what": about(path)} for name, path in shipped().items()]


def _solvers() -> Entries:
    from statetrack.asking import SOLVERS

    return [{"solver": name, "what": about} for name, about in SOLVERS.items()]


KINDS: dict[str, Callable[[], Entries]] = {
    "tasks": _tasks, "groups": _groups, "models": _models, "sweeps": _sweeps, "solvers": _solvers,
}  # fmt: skip
