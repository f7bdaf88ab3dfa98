"""`statetrack diagnose`: why the trained models of a folder stop tracking."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statetrack import trust
from statetrack.cli.interrupts import Interrupted, telling
from statetrack.cli.options import TrustCode, TrustedCode
from statetrack.cli.output import print_json, print_table, say
from statetrack.errors import BadInput, need
from statetrack.formatting import plural, short_names, without_hash
from statetrack.progress import progress

if TYPE_CHECKING:
    from statetrack.diagnosis.folder import FolderProgress
    from statetrack.results.diagnosis import Comparison


def command(
    folder: Annotated[Path, typer.Argument(help="A folder of cells with their weights, as train and sweep leave it.")],
    cells: Annotated[int | None, typer.Option(help="At most this many cells.")] = None,
    key: Annotated[
        list[str] | None, typer.Option(help="Only the cell whose key begins with this; may be repeated.")
    ] = None,
    length: Annotated[
        int | None, typer.Option(help="Positions to look at: else 16 times the length trained on, up to 1,024.")
    ] = None,
    stream: Annotated[
        int | None, typer.Option(help="Most steps run to see where it fails: else 16,384, or fewer for a large model.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Diagnose again what is diagnosed already.")] = False,
    trusted: TrustedCode = None,
    trust_code: TrustCode = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what compares the cells as JSON.")] = False,
) -> int:
    """Say why each trained model of a folder stops tracking: probes, gradients, separation, eigenvalues, automaton.

    Writes DIR/diagnosis/KEY.json for each cell and DIR/diagnosis/folder.json for what compares them. Cells that cannot
    be diagnosed are named. The exit code is 1 when one of those asked for should have been (damaged, failed), else 0.

    Example: statetrack diagnose results
    """
    need("torch", "train", "diagnose")
    from statetrack.diagnosis.folder import Selection, diagnose_folder
    from statetrack.results import Store
    from statetrack.results.diagnosis import HARMLESS, rounded, write_comparison
    from statetrack.tasks.base import check_size
    from statetrack.verdicts.comparison import compare

    if cells is not None and cells < 1:
        raise BadInput(f"--cells {cells} should be at least 1")
    for steps in (length, stream):
        check_size(1 if steps is None else steps, 1, 0, 0)
    store = Store.existing(folder)
    seen: list[FolderProgress] = []
    named = trust.trusting(*(trusted or ()), everything=trust_code)
    with telling(lambda: _kept(seen, folder)), named, progress("bar count spent words", verb="diagnose") as move:

        def show(tally: FolderProgress) -> None:
            seen[:] = [tally]
            now = f"{without_hash(tally.now)}: {tally.part}"
            move(f"{tally.done} of {tally.total}, {now}", completed=tally.done, total=tally.total, description=now)

        tally = diagnose_folder(folder, Selection(tuple(key or ()), cells, length, stream, again), show)
    comparison = compare(store, tally.left_out)
    write_comparison(store, comparison)
    if as_json:
        print_json(rounded(dataclasses.asdict(comparison)))
    else:
        _print(comparison, folder, tuple(key or ()))
    asked = [left for left in comparison.left_out if not key or left.key.startswith(tuple(key))]
    return 1 if any(left.code not in HARMLESS for left in asked) else 0


def _kept(seen: Sequence[FolderProgress], folder: Path) -> Interrupted:
    done, total = (seen[0].done, seen[0].total) if seen else (0, 0)
    if not done:
        return Interrupted("no cell was diagnosed yet", goes_on=False)
    return Interrupted(f"{done} of {plural(total, 'cell')} are diagnosed and kept in {folder / 'diagnosis'}")


def _print(comparison: Comparison, folder: Path, keys: tuple[str, ...]) -> None:
    """A line for each cell, what compares them, and all that is said of cells that were asked for by key."""
    from statetrack.results.diagnosis import lines_of

    if not comparison.cells and not comparison.left_out:
        say(f"{folder} holds no cells; `statetrack train TASK MODEL --out {folder}` makes one")
        return
    headers = ["task", "model", "trained", "seed", "conclusion", "90 % up to", "predicted", "machine", "why"]
    names = short_names(entry[name] for entry in comparison.cells for name in ("task", "model"))
    rows = [_row(entry | {name: names[entry[name]] for name in ("task", "model")}) for entry in comparison.cells]
    if sys.stdout.isatty():  # sentences would squeeze the other columns of a narrow window
        print_table(headers[:-1], [row[:-1] for row in rows], groups=2)
        say()
        say(*(f"{', '.join(row[:2])}, trained at {row[2]}, seed {row[3]}: {row[-1]}" for row in rows), sep="\n")
    else:
        print_table(headers, rows)
    for entry in comparison.cells:
        if keys and entry["key"].startswith(keys):
            say(f"\n{entry['task']}, {entry['model']}, trained at {entry['trained']}, seed {entry['seed']}")
            say(*(f"  {sentence}" for sentence in _sentences(entry)), sep="\n")
    if not keys:
        _print_comparison(comparison)
    for line in lines_of(comparison.left_out):
        say(line, file=sys.stderr)
    say(f"\n{len(comparison.cells)} diagnosed, {len(comparison.left_out)} left out; in {folder / 'diagnosis'}")


def _sentences(entry: dict[str, Any]) -> list[str]:
    """What was found, and what is known of the network at every length, if somebody asked `certify`."""
    return [*entry["sentences"], *filter(None, [entry.get("for_ever")])]


def _print_comparison(comparison: Comparison) -> None:
    for table in comparison.ablations:
        say(f"\n{table['base']} on {table['task']} at {table['length']}: {table['says']}")
    judged = [pattern for pattern in comparison.patterns if pattern["task"]]
    if judged:
        say()
        place = ("section", "says", "task", "subject")
        rows = [[pattern[name] for name in place] + _outcome(pattern) for pattern in judged]
        print_table(["section", "the document expects", "task", "model", "outcome", "why"], rows, groups=2)


def _outcome(pattern: dict[str, Any]) -> list[str]:
    before = f" (by rules 1: {pattern['before']})" if pattern.get("before") else ""
    return [f"{pattern['outcome']}{before}", pattern["why"]]


def _row(entry: dict[str, Any]) -> list[str]:
    reach = f"{entry['at_90']:,.0f}" if entry["at_90"] is not None else f"beyond {entry['streamed']:,}"
    predicted, equal = entry["predicted_at_90"], entry["machine_equal"]
    errs = ", errs" if entry.get("machine_errs") else ""
    return [
        entry["task"], entry["model"], str(entry["trained"]), str(entry["seed"]), entry["conclusion"], reach,
        "-" if predicted is None else f"{predicted:,.0f}",
        "-" if equal is None else f"the task's{errs}" if equal else "another", entry["sentence"],
    ]  # fmt: skip
