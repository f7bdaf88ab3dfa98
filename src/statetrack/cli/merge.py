"""`statetrack merge`: join folders of cells."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statetrack.cli.output import say
from statetrack.formatting import plural

if TYPE_CHECKING:
    from statetrack.results.archive import MergeSummary


def command(
    folders: Annotated[list[Path], typer.Argument(help="Folders of cells.")],
    out: Annotated[Path, typer.Option(help="The folder that gets them all; it may hold cells already.")],
) -> int:
    """Join folders from several machines. Of two records of a cell the better one stays, with what only the other has.

    Two results of one cell that differ are both kept, one of them aside, and named; then the exit code is 1.

    Example: statetrack merge from-laptop from-cluster --out all
    """
    from statetrack.results import merge

    return report(merge(folders, out), out)


def report(joined: MergeSummary, out: Path) -> int:
    """Say what came in, and compare the diagnosed cells again if there are more."""
    from statetrack.results import Store
    from statetrack.verdicts.comparison import compare_again

    for damage in joined.damaged:
        say(f"damaged, left out: {damage.path}: {damage.why}", file=sys.stderr)
    for conflict in joined.conflicts:
        say(f"conflict, kept aside: {conflict} differs", file=sys.stderr)
    there = f"{joined.kept} {'was' if joined.kept == 1 else 'were'} there already"
    more = f"; {plural(joined.evaluations, 'evaluation')} added to them" if joined.evaluations else ""
    noun = "diagnosis" if joined.diagnoses == 1 else "diagnoses"
    diagnosed = f"; {joined.diagnoses:,} {noun} taken" if joined.diagnoses else ""
    if joined.diagnoses:
        compare_again(Store(out))
    say(f"{out}: {plural(joined.taken, 'cell')} taken, {there}{more}{diagnosed}")
    return 1 if joined.conflicts else 0
