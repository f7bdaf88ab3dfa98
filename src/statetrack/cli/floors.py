"""`statetrack floors`: what the laziest strategies score."""

from __future__ import annotations

from typing import Annotated

import typer

from statetrack.cli import completion
from statetrack.cli.output import print_json, print_table, say
from statetrack.formatting import fixed

LENGTHS = (16, 64, 256, 1024, 2048)
COLUMNS = {"rtc": ("position", "input"), "txc": ("linear logit", "position"), "fsm": ("constant", "position")}


def command(
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TASK]...", help="Tasks, such as s5, fsm[k=5] or mine.py:Mine.", autocompletion=completion.tasks
        ),
    ] = None,
    length: Annotated[int, typer.Option(help="The length of rows.")] = 64,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what guesses score on a task; without a task, on RTC, TXC and FSM at lengths from 16 to 2048.

    Example: statetrack floors s3 --length 64
    """
    from statetrack.tasks import task
    from statetrack.theory import floors

    all_floors = [floors(task(text), length) for text in texts or []]
    if as_json:
        print_json([of_task.to_dict() for of_task in all_floors] if texts else _rows())
    elif texts:
        say("\n".join(f"{text}, length {length}\n{of_task.text()}" for text, of_task in zip(texts, all_floors)))
    else:
        rows = _rows()
        print_table(list(rows[0]), [[row.pop("T"), *(fixed(value, 4) for value in row.values())] for row in rows])


def _rows() -> list[dict[str, float]]:
    """The averages of the table, length by length."""
    from statetrack.tasks import task
    from statetrack.theory import floors

    rows = []
    for length in LENGTHS:
        by_task = {name: floors(task(name), length) for name in COLUMNS}
        averages = {
            f"{name} {strategy}": by_task[name][strategy].average
            for name, shown in COLUMNS.items()
            for strategy in shown
        }
        rows.append({"T": length, **averages})
    return rows
