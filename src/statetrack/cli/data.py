"""`statetrack data`: write a task's rows to a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statetrack.cli.interrupts import Interrupted, telling
from statetrack.cli.options import TaskText
from statetrack.cli.output import say
from statetrack.errors import BadInput
from statetrack.formatting import plural
from statetrack.progress import progress

if TYPE_CHECKING:
    from statetrack.data.rows import DataRequest

ORIGINAL_LENGTH = "300"  # of a Track the Stat episode
STANDARD_OUTPUT = Path("-")


def command(
    task: TaskText,
    count: Annotated[int, typer.Option(help="How many rows.")] = 1000,
    length: Annotated[
        str | None, typer.Option(help="500, several in turn: 64,128,256, or drawn for each row: 3..1024.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal rows.")] = 0,
    split: Annotated[str | None, typer.Option(help="train, validation or test; original for track_the_stat.*")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The file to write, FILE.jsonl or FILE.parquet; - for JSON lines here.")
    ] = None,
    hf: Annotated[Path | None, typer.Option(help="The folder to write, for datasets.load_from_disk.")] = None,
    convention: Annotated[
        str, typer.Option(help="Groups: mathematical (p_n ∘ ... ∘ p_1) or published (p_1 ∘ ... ∘ p_n).")
    ] = "mathematical",
    prefixes: Annotated[
        bool, typer.Option("--prefixes", help="Groups: a column targets, with the answer after every input.")
    ] = False,
    hub: Annotated[
        str | None, typer.Option(help="The data set to push to, OWNER/NAME on the Hugging Face hub, with a card.")
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="For --hub: a new data set is private.")] = False,
    licence: Annotated[str, typer.Option(help="For --hub: what the card says.")] = "apache-2.0",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the data set of --hf DIR, or the split of --hub.")
    ] = False,
) -> None:
    """Write a task's rows with their exact answers, the same bytes every time.

    Example: statetrack data s5 --length 3..1024 --out s5.parquet
    """
    from statetrack import tasks
    from statetrack.data.lengths import Lengths
    from statetrack.data.rows import ORIGINAL
    from statetrack.data.write import DataRequest, write, write_lines

    chosen = tasks.task(task)
    original = ORIGINAL in chosen.splits
    if length is None and not original:
        raise BadInput(f"{chosen.name} needs a length: --length 500, --length 64,128 or --length 3..1024")
    lengths = Lengths.read(length or ORIGINAL_LENGTH)
    chosen_split = split or (ORIGINAL if original else "train")
    request = DataRequest(chosen, lengths, count, seed, chosen_split, convention, prefixes)
    if hub is not None:
        _push(request, hub, out or hf, private, licence, overwrite)
        return
    if out == STANDARD_OUTPUT and hf is None:
        write_lines(request, sys.stdout.buffer)
        return
    untouched = Interrupted(f"nothing was written: {out or hf} is as it was", goes_on=False)
    with telling(lambda: untouched), progress("words bar count left", chosen.name, count) as move:
        write(request, out=out, hf=hf, progress=lambda rows: move(advance=rows), overwrite=overwrite)
    say(f"{out or hf}: {plural(count, 'row')} of {chosen.name}")


def _push(request: DataRequest, repo: str, other: Path | None, private: bool, licence: str, overwrite: bool) -> None:
    from statetrack.data.publish import publish

    if other is not None:
        raise BadInput("a data set goes to a file, a folder or the hub: give one of --out, --hf and --hub")
    untouched = Interrupted(f"nothing was pushed to {repo}", goes_on=False)
    with telling(lambda: untouched), progress("words bar count left", request.task.name, request.count) as move:
        address = publish(request, repo, private or None, overwrite, licence, lambda rows: move(advance=rows))
    say(f"{address}: {plural(request.count, 'row')} of {request.task.name}, split {request.split}")
