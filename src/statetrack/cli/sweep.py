"""`statetrack sweep`: run many cells into a folder."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statetrack import trust
from statetrack.cli import completion, forecasts
from statetrack.cli.interrupts import Interrupted, telling
from statetrack.cli.options import TrustCode, TrustedCode, read_part
from statetrack.cli.output import say
from statetrack.errors import BadInput
from statetrack.formatting import plural

if TYPE_CHECKING:
    from statetrack.sweeps.runner import Show
    from statetrack.sweeps.schedule import Schedule, SweepProgress


def command(
    name: Annotated[
        str,
        typer.Argument(
            help="A shipped sweep (statetrack list sweeps) or a YAML file.", autocompletion=completion.sweeps
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="The folder for the cells; what it holds already is not done again. --dry-run needs none."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes; 0: none, all in this one. Default: one per core, or --per-gpu for each GPU."),
    ] = None,
    ray: Annotated[str | None, typer.Option(help="Run on a Ray cluster: auto, or its address.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    together: Annotated[
        int | None, typer.Option(help="Seeds trained side by side in one go. Default: 1 on a CPU, 8 on a GPU.")
    ] = None,
    per_gpu: Annotated[
        int | None,
        typer.Option(help="Workers, or Ray tasks, that share a GPU. Default: 8 where NVIDIA's MPS is found, else 4."),
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Skip lengths above one that no seed solved, or was above its floor at.")
    ] = False,
    part: Annotated[str | None, typer.Option(help="Only one part of it, such as 2/4, to run on many machines.")] = None,
    limit_seconds: Annotated[
        float | None, typer.Option(help="Stop after this long; the next run goes on from there.")
    ] = None,
    cell_seconds: Annotated[
        float | None,
        typer.Option(help="What a cell may take; beyond that it has failed, and the next run goes on with it."),
    ] = None,
    weights: Annotated[bool, typer.Option("--weights/--no-weights", help="Keep the trained weights.")] = True,
    models: Annotated[
        list[str] | None, typer.Option("--model", help="A language model, for sweeps that ask for one.")
    ] = None,
    subjects: Annotated[
        list[str] | None,
        typer.Option(
            "--subject",
            help="Train this model in place of the file's, beside what the folder holds; repeatable.",
            autocompletion=completion.models,
        ),
    ] = None,
    rates: Annotated[
        str | None, typer.Option(help="Learning rates: a file of statetrack rates, a number, or several with commas.")
    ] = None,
    trusted: TrustedCode = None,
    trust_code: TrustCode = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be run and what that takes, as far as it is known.")
    ] = False,
) -> int:
    """Run every cell of a sweep that the folder does not hold yet. Kill it at any moment; the next run goes on.

    The exit code is 0 when every cell is finished or skipped, 1 when some failed or are left.

    Example: statetrack sweep demo --out demo-results
    Example: statetrack sweep groups --subject m2rnn --rates 1e-3,3e-3 --out groups
    """
    from statetrack.cli.results import print_asked
    from statetrack.own_code import addresses
    from statetrack.results import Store
    from statetrack.results.cell import ASK
    from statetrack.sweeps import Options, read, run
    from statetrack.sweeps.forecast import forecast, where

    with trust.trusting(*(trusted or ()), *addresses(subjects or ())):
        sweep = read(name, models or (), trust_code=trust_code, subjects=subjects, rates=rates)
    if part:
        sweep = sweep.part(*read_part(part))
    options = Options(workers, ray, device, together, per_gpu, prune, weights, limit_seconds, cell_seconds)
    options.check()
    if dry_run:
        say(f"{sweep.name}: {plural(len(sweep.entries), 'cell')}")
        for entry in sweep.entries:
            say(f"{entry.cell.key}  {entry.cell}, {entry.cell.protocol.get('name', '')}")
        forecasts.show(forecast(sweep, Store(out) if out and out.is_dir() else None, where(options)))
        return 0
    if out is None:
        raise BadInput("--out is missing: the folder for the cells, such as --out results")
    trusting, seen = trust.trusting(*(trusted or ()), *addresses(subjects or ()), everything=trust_code), Seen()
    with telling(lambda: kept(seen, out)), trusting, watch(sweep.name) as show:
        ahead = forecast(sweep, Store(out) if out.is_dir() else None, where(options))
        tally = run(sweep, out, options, seen.also(show))
    code = summary(tally, out)
    if line := forecasts.compared(ahead, tally.seconds):
        say(line)
    if any(cell.kind == ASK for cell in sweep.cells):
        print_asked(Store.existing(out))
    return code


@dataclass
class Seen:
    """The schedule of a run, for what is said when it is interrupted."""

    schedule: Schedule | None = None

    def also(self, show: Show) -> Show:
        def both(schedule: Schedule, workers: int) -> None:
            self.schedule = schedule
            show(schedule, workers)

        return both


def kept(seen: Seen, out: Path) -> Interrupted:
    """What a sweep that was interrupted leaves."""
    from statetrack.results import Store
    from statetrack.results.checkpoints import under_way

    if seen.schedule is None:
        return Interrupted("nothing was begun", goes_on=False)
    tally = seen.schedule.tally
    saved = len(under_way(Store(out)))
    begun = f", with {plural(saved, 'checkpoint')} of cells under way" if saved else ""
    return Interrupted(f"{tally.finished:,} of {plural(tally.total, 'cell')} are finished and kept in {out}{begun}")


def summary(tally: SweepProgress, out: Path) -> int:
    from statetrack.results.folder_status import by_reason
    from statetrack.results.records import FAILED, SKIPPED

    left = tally.total - tally.settled
    counts = [f"{tally.finished} done", f"{tally.counts[FAILED]} failed", f"{tally.counts[SKIPPED]} skipped"]
    before = f"{tally.found} {'was' if tally.found == 1 else 'were'} there before"
    say(f"{plural(tally.total, 'cell')}: {', '.join(counts)}, {left} left; {before}. Results in {out}")
    for line in by_reason(tally.failures):
        say(line, file=sys.stderr)
    return 1 if left or tally.counts[FAILED] else 0


def watch(name: str) -> AbstractContextManager[Show]:
    """The progress of a sweep."""
    from statetrack.sweeps.bar import sweep_bar

    return sweep_bar(name, shown=True)
