"""`statetrack sweep`: run many cells into a folder."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statetrack.cli.progress import now_and_then
from statetrack.formatting import plural

if TYPE_CHECKING:
    from statetrack.sweeps.schedule import Schedule, Tally


def command(
    name: Annotated[str, typer.Argument(help="A shipped sweep (statetrack list sweeps) or a YAML file.")],
    out: Annotated[Path, typer.Option(help="The folder for the cells; what it holds already is not done again.")],
    workers: Annotated[
        int | None,
        typer.Option(help="Processes; 0: none, all in this one. Default: one per core, or --per-gpu for each GPU."),
    ] = None,
    ray: Annotated[str | None, typer.Option(help="Run on a Ray cluster: auto, or its address.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    together: Annotated[
        int | None, typer.Option(help="Seeds trained side by side in one go. Default: 1 on a CPU, 8 on a GPU.")
    ] = None,
    per_gpu: Annotated[int, typer.Option(help="Workers, or Ray tasks, that share a GPU.")] = 4,
    prune: Annotated[
        bool, typer.Option("--prune", help="Skip lengths that a shorter one, or theory with it, makes pointless.")
    ] = False,
    part: Annotated[str | None, typer.Option(help="Only one part of it, such as 2/4, to run on many machines.")] = None,
    limit_seconds: Annotated[
        float | None, typer.Option(help="Stop after so long; the next run goes on from there.")
    ] = None,
    weights: Annotated[bool, typer.Option("--weights/--no-weights", help="Keep the trained weights.")] = True,
    models: Annotated[
        list[str] | None, typer.Option("--model", help="A language model, for sweeps that ask for one.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be run, and stop.")] = False,
) -> int:
    """Run every cell of a sweep that the folder does not hold yet. Kill it anywhere; the next run goes on.

    The exit code is 0 when every cell is finished or skipped, 1 when some failed or are left.

    Example: statetrack sweep demo --out demo-results
    """
    from statetrack.cli.results import print_asked
    from statetrack.results import Store
    from statetrack.sweeps import Options, read, run
    from statetrack.sweeps.kinds import KINDS

    sweep = read(name, models or ())
    if part:
        sweep = sweep.part(*read_part(part))
    options = Options(workers, ray, device, together, per_gpu, prune, weights, limit_seconds)
    options.check()
    if dry_run:
        print(f"{sweep.name}: {plural(len(sweep.entries), 'cell')}")
        for entry in sweep.entries:
            print(f"{entry.cell.key}  {entry.cell}, {entry.cell.protocol.get('name', '')}")
        return 0
    with watch(sweep.name) as show:
        tally = run(sweep, out, options, show)
    code = summary(tally, out)
    if any(entry.kind == KINDS["ask"] for entry in sweep.entries):
        print_asked(Store.existing(out))
    return code


def read_part(text: str) -> tuple[int, int]:
    from statetrack.errors import BadInput

    number, slash, of = text.partition("/")
    if not slash or not number.isdigit() or not of.isdigit():
        raise BadInput(f"--part {text} should be of the form 2/4")
    return int(number), int(of)


def summary(tally: Tally, out: Path) -> int:
    from statetrack.results.standing import by_reason
    from statetrack.results.store import FAILED, SKIPPED

    left = tally.total - tally.settled
    counts = [f"{tally.finished} done", f"{tally.counts[FAILED]} failed", f"{tally.counts[SKIPPED]} skipped"]
    before = f"{tally.found} {'was' if tally.found == 1 else 'were'} there before"
    print(f"{plural(tally.total, 'cell')}: {', '.join(counts)}, {left} left; {before}. Results in {out}")
    for line in by_reason(tally.failures):
        print(line, file=sys.stderr)
    return 1 if left or tally.counts[FAILED] else 0


@contextmanager
def watch(name: str) -> Iterator[Callable[[Schedule, int], None]]:
    """A bar where a person looks on, else a line now and then; damaged files are named once, either way."""
    named = False

    def name_damaged(schedule: Schedule) -> None:
        nonlocal named
        if not named:
            named = True
            for damage in schedule.damaged:
                print(f"damaged, its cell is run again: {damage}", file=sys.stderr, flush=True)

    if not sys.stderr.isatty():
        say = now_and_then(name)

        def line(schedule: Schedule, workers: int) -> None:
            name_damaged(schedule)
            say(words(schedule.tally, workers))

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}")
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def draw(schedule: Schedule, workers: int) -> None:
            name_damaged(schedule)
            tally = schedule.tally
            bar.update(task, completed=tally.settled, total=tally.total, description=words(tally, workers))

        yield draw


def words(tally: Tally, workers: int) -> str:
    from statetrack.results.pace import duration
    from statetrack.results.store import FAILED

    failed = f", {tally.counts[FAILED]} failed" if tally.counts[FAILED] else ""
    left = tally.seconds_left(workers)
    return f"{tally.settled} of {tally.total}{failed}, time left: {duration(left)}"
