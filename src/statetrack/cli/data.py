"""`statetrack data`: write a task's rows to a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from statetrack.formatting import plural

ORIGINAL_LENGTH = "300"  # of a Track the Stat episode


def command(
    task: Annotated[str, typer.Argument(help="The task's text, such as s5, fsm[k=5] or track_the_stat.median.")],
    count: Annotated[int, typer.Option(help="How many rows.")] = 1000,
    length: Annotated[
        str | None, typer.Option(help="500, several in turn: 64,128,256, or drawn for each row: 3..1024.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal rows.")] = 0,
    split: Annotated[str | None, typer.Option(help="train, validation or test; original for track_the_stat.*")] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write: FILE.jsonl or FILE.parquet.")] = None,
    hf: Annotated[Path | None, typer.Option(help="The folder to write, for datasets.load_from_disk.")] = None,
    convention: Annotated[
        str, typer.Option(help="Groups: mathematical (p_n ∘ ... ∘ p_1) or published (p_1 ∘ ... ∘ p_n).")
    ] = "mathematical",
) -> None:
    """Write a task's rows with their exact answers, the same bytes every time.

    Example: statetrack data s5 --length 3..1024 --out s5.parquet
    """
    from statetrack import tasks
    from statetrack.data.lengths import Lengths
    from statetrack.data.rows import ORIGINAL
    from statetrack.data.write import Request, write
    from statetrack.errors import BadInput

    chosen = tasks.task(task)
    original = ORIGINAL in chosen.splits
    if length is None and not original:
        raise BadInput(f"{chosen.name} needs a length: --length 500, --length 64,128 or --length 3..1024")
    request = Request(
        task=chosen,
        lengths=Lengths.read(length or ORIGINAL_LENGTH),
        count=count,
        seed=seed,
        split=split or (ORIGINAL if original else "train"),
        convention=convention,
    )
    with _bar(request.task.name, count) as progress:
        write(request, out=out, hf=hf, progress=progress)
    print(f"{out or hf}: {plural(count, 'row')} of {chosen.name}")


@contextmanager
def _bar(name: str, rows: int) -> Iterator[Callable[[int], Any]]:
    """A progress bar where a person looks on."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        line = bar.add_task(name.replace("[", "\\["), total=rows)
        yield lambda done: bar.advance(line, done)
