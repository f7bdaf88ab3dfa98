"""`statetrack diagnose`: why the trained models of a folder stop tracking."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statetrack.cli.output import print_json, print_table
from statetrack.cli.progress import now_and_then
from statetrack.formatting import short_names

if TYPE_CHECKING:
    from statetrack.diagnosis.folder import Tally


def command(
    folder: Annotated[Path, typer.Argument(help="A folder of cells with their weights, as train and sweep leave it.")],
    cells: Annotated[int | None, typer.Option(help="At most so many cells.")] = None,
    key: Annotated[list[str] | None, typer.Option(help="Only the cell whose key begins so; may be repeated.")] = None,
    length: Annotated[
        int | None,
        typer.Option(help="Positions to look at; else 16 times the length trained on, up to 1,024."),
    ] = None,
    stream: Annotated[
        int | None,
        typer.Option(help="Steps at most to see where it fails: 16,384, or fewer for a large model."),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Diagnose again what is diagnosed already.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what compares the cells as JSON.")] = False,
) -> int:
    """Say why each trained model of a folder stops tracking: probes, gradients, separation, eigenvalues, automaton.

    Writes DIR/diagnosis/KEY.json for each cell and DIR/diagnosis/folder.json for what compares them. Cells that cannot
    be diagnosed are named. The exit code is 1 when one of those asked for should have been (damaged, failed), else 0.

    Example: statetrack diagnose results
    """
    from statetrack.errors import BadInput, need

    need("torch", "train", "diagnose")
    from statetrack.diagnosis.folder import Wanted, diagnose_folder
    from statetrack.tasks.base import check_size

    if cells is not None and cells < 1:
        raise BadInput(f"--cells {cells} should be at least 1")
    for steps in (length, stream):
        check_size(1 if steps is None else steps, 1, 0, 0)
    with watch() as show:
        found = diagnose_folder(folder, Wanted(tuple(key or ()), cells, length, stream, again), show)
    if as_json:
        print_json(found)
    else:
        _print(found, folder, tuple(key or ()))
    asked = [each for each in found["left_out"] if not key or each["key"].startswith(tuple(key))]
    return 1 if any(_troubling(each["why"]) for each in asked) else 0


def _troubling(why: str) -> bool:
    """Weights that are not kept, cells that were skipped or are still to come are nobody's mistake."""
    harmless = ("no weights are kept", "not diagnosed yet", "a language model", "it was skipped")
    return not why.startswith(harmless)


def _print(found: dict[str, Any], folder: Path, keys: tuple[str, ...]) -> None:
    """A line for each cell, what compares them, and all that is said of cells that were asked for by key."""
    if not found["cells"] and not found["left_out"]:
        print(f"{folder} holds no cells; `statetrack train TASK MODEL --out {folder}` makes one")
        return
    headers = ["task", "model", "trained", "seed", "conclusion", "90 % up to", "predicted", "machine", "why"]
    names = short_names(each[name] for each in found["cells"] for name in ("task", "model"))
    rows = [_row(each | {name: names[each[name]] for name in ("task", "model")}) for each in found["cells"]]
    if sys.stdout.isatty():  # sentences would squeeze the other columns of a narrow window
        print_table(headers[:-1], [row[:-1] for row in rows], groups=2)
        print()
        print(*(f"{', '.join(row[:2])}, trained at {row[2]}, seed {row[3]}: {row[-1]}" for row in rows), sep="\n")
    else:
        print_table(headers, rows)
    for each in found["cells"]:
        if keys and each["key"].startswith(keys):
            print(f"\n{each['task']}, {each['model']}, trained at {each['trained']}, seed {each['seed']}")
            print(*(f"  {sentence}" for sentence in each["sentences"]), sep="\n")
    if not keys:
        _print_comparison(found)
    for each in found["left_out"]:
        print(f"left out: {each['what']}: {each['why']}", file=sys.stderr)
    print(f"\n{len(found['cells'])} diagnosed, {len(found['left_out'])} left out; in {folder / 'diagnosis'}")


def _print_comparison(found: dict[str, Any]) -> None:
    for table in found["ablations"]:
        print(f"\n{table['base']} on {table['task']} at {table['length']}: {table['says']}")
    judged = [each for each in found["patterns"] if each["task"]]
    if judged:
        print()
        rows = [[each[name] for name in ("section", "says", "task", "subject", "outcome", "why")] for each in judged]
        print_table(["section", "the document expects", "task", "model", "outcome", "why"], rows, groups=2)


def _row(each: dict[str, Any]) -> list[str]:
    reach = f"{each['at_90']:,.0f}" if each["at_90"] is not None else f"beyond {each['streamed']:,}"
    predicted = each["predicted_at_90"]
    equal = each["machine_equal"]
    return [
        each["task"], each["model"], str(each["trained"]), str(each["seed"]), each["conclusion"], reach,
        "-" if predicted is None else f"{predicted:,.0f}",
        "-" if equal is None else "the task's" if equal else "another", each["sentence"],
    ]  # fmt: skip


@contextmanager
def watch() -> Iterator[Callable[[Tally], None]]:
    """A bar where a person looks on, else a line now and then."""
    if not sys.stderr.isatty():
        say = now_and_then("diagnose")
        yield lambda tally: say(f"{tally.done} of {tally.total}, {tally.now}: {tally.part}")
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        line = bar.add_task("", total=None)

        def draw(tally: Tally) -> None:
            bar.update(line, completed=tally.done, total=tally.total, description=f"{tally.now}: {tally.part}")

        yield draw
