"""`statetrack evaluate`: weights that exist, at other lengths, along streams, on hard words; nothing is trained."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statetrack import trust
from statetrack.cli import completion
from statetrack.cli.interrupts import Interrupted, telling
from statetrack.cli.options import TrustCode, TrustedCode, read_part
from statetrack.cli.output import print_json, print_table, say
from statetrack.errors import BadInput, need
from statetrack.formatting import plural, short_names, shortened, without_hash
from statetrack.progress import progress
from statetrack.results.evaluations import OnRows, OnStream

if TYPE_CHECKING:
    from statetrack.results.long_table import Row
    from statetrack.training.evaluated import Evaluated
    from statetrack.training.folder import FolderTally
    from statetrack.training.further import Wanted

OF_FILES = ("--model", "--trained", "--seed", "--out")


def command(
    what: Annotated[
        str,
        typer.Argument(
            metavar="DIR | TASK", help="A folder of cells with weights; or a task.", autocompletion=completion.tasks
        ),
    ],
    weights: Annotated[
        Path | None, typer.Argument(help="After a task: a safetensors file with a model's tensors by their names.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Whose weights the file holds: NAME[option=value] or file.py:Class.", autocompletion=completion.models
        ),
    ] = None,
    lengths: Annotated[
        str | None, typer.Option(help="Lengths of rows, 128,1024; of a file else 1, 2, 4, 8, 16 times --trained.")
    ] = None,
    stream: Annotated[int, typer.Option(help="A stream of this many steps.")] = 0,
    words: Annotated[
        int | None, typer.Option(help="Tokens of hard words: 0 for none; of a file else the usual number.")
    ] = None,
    key: Annotated[
        list[str] | None, typer.Option(help="Of a folder only cells whose key begins with this; may be repeated.")
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(help="Of a folder one part of its cells, such as 2/4, while others do the rest."),
    ] = None,
    workers: Annotated[
        int, typer.Option(help="Of a folder: processes that measure side by side, each a cell at a time.")
    ] = 1,
    trained: Annotated[
        int | None, typer.Option(help="Of a file: the length trained on, if you know it; else 64 stands in for it.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of a file: the seed of the test rows; else 0.")] = None,
    out: Annotated[Path | None, typer.Option(help="Of a file: a folder for the record.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    trusted: TrustedCode = None,
    trust_code: TrustCode = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Test weights that exist. Nothing is trained, and the weights stay as they are.

    Of a folder that train or sweep made, every trained cell gets what is asked for added to its record: what is there
    already is not measured again, and a run that was killed goes on. Cells that cannot be tested are named; the exit
    code is 1 if one of them should have been, 2 if none could be. Of a file, a table is printed, and --out keeps a
    record, which says that the weights were not trained here.

    Example: statetrack evaluate results --stream 1048576

    Example: statetrack evaluate results --lengths 128,1024 --words 1000000 --key 3f0c

    Example: statetrack evaluate txc weights.safetensors --model "gru[hidden=32]" --lengths 64,4096

    Example: statetrack evaluate fsm results/3f0c9a1b.safetensors --out other
    """
    need("torch", "train", "evaluate")
    asked = read_lengths(lengths) if lengths is not None else None
    with trust.trusting(*(trusted or ()), everything=trust_code):
        if weights is None and Path(what).is_dir():
            of_files = dict(zip(OF_FILES, (model, trained, seed, out)))
            if given := next((option for option, value in of_files.items() if value is not None), None):
                raise BadInput(f"{given} is for weights in a file; the cells of {what} say it themselves")
            from statetrack.training.further import Wanted

            wanted = Wanted(asked or (), (stream,) if stream else (), words or 0)
            keys = tuple(key or ())
            keys = keys_of_part(Path(what), part, keys) if part else keys
            return _of_folder(Path(what), wanted, keys, device, workers, as_json)
        if weights is None:
            raise BadInput(f"{what} is no folder of results; of a task, the weights are needed too: {_form(what)}")
        if weights.is_dir():
            raise BadInput(f"{weights} is a folder: name one file of weights in it, or leave out the task")
        if key or part:
            option = "--key" if key else "--part"
            raise BadInput(f"{option} chooses cells of a folder; here the weights are those of a file")
        if workers != 1:
            raise BadInput("--workers share the cells of a folder; here the weights are those of a file")
        if model is None and not _names_its_model(weights):
            raise BadInput(f"{weights} does not say which model its weights are of: {_form(what, weights)}")
        from statetrack.training.existing import evaluate

        found = evaluate(
            what, model, weights=weights, lengths=asked, stream=stream, words=words, trained=trained, seed=seed or 0,
            out=out, device=device, progress=True,
        )  # fmt: skip
    if as_json:
        print_json(found.to_dict())
    else:
        _print_one(found, out)
    return 0


def keys_of_part(folder: Path, part: str, begins: tuple[str, ...]) -> tuple[str, ...]:
    """The keys of every so-many-th cell, among those that begin as asked: the parts together are all of them."""
    from statetrack.results import Store

    number, parts = read_part(part)
    if not 1 <= number <= parts:
        raise BadInput(f"--part {part} should lie in 1/{parts} to {parts}/{parts}")
    keys = [key for key, _ in Store.existing(folder).entries() if not begins or key.startswith(begins)]
    if not (mine := keys[number - 1 :: parts]):
        raise BadInput(f"part {part} holds none of {plural(len(keys), 'cell')} of {folder}")
    return tuple(mine)


def _form(task: str, weights: Path | str = "FILE.safetensors") -> str:
    return f"statetrack evaluate {task} {weights} --model NAME"


def _names_its_model(weights: Path) -> bool:
    from statetrack.training.weight_file import look_at

    return look_at(weights).cell is not None


def read_lengths(text: str) -> tuple[int, ...]:
    """
    >>> read_lengths("128,1024")
    (128, 1024)
    """
    try:
        return tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        raise BadInput(f"--lengths {text} should be a whole number, or several with commas between") from None


def _print_one(found: Evaluated, out: Path | None) -> None:
    from statetrack.training.evaluated import HEADERS, about, lengths_shown, on_words, reasons

    say(about(found.record))
    print_table(HEADERS, lengths_shown(found.rows))
    say(*reasons(found.rows), on_words(found.record, found.rows), sep="\n")
    if out:
        say(f"\n1 result in {out}: {found.record.cell.key}")


def _of_folder(folder: Path, wanted: Wanted, keys: tuple[str, ...], device: str, workers: int, as_json: bool) -> int:
    from statetrack.results.diagnosis import HARMLESS, lines_of
    from statetrack.training.folder import CANNOT, FolderTally, evaluate_folder

    last = FolderTally()
    with progress("bar count spent words", verb="evaluate") as move:

        def show(tally: FolderTally) -> None:
            nonlocal last
            last, now = tally, without_hash(tally.now)
            line = f"{tally.done} of {tally.total}, {now}: {tally.part}"  # in a terminal the end of it may be cut
            move(line, completed=tally.done, total=tally.total, description=f"{tally.part}; {now}")

        def kept() -> Interrupted:
            if not last.done:
                return Interrupted("no cell was measured yet", goes_on=False)
            grown = plural(last.grown, "record", "has grown and is", "have grown and are")
            return Interrupted(f"{grown} kept, {last.done} of {plural(last.total, 'cell')} looked at")

        with telling(kept):
            tally = evaluate_folder(folder, wanted, keys, device, show, workers=workers)
    _leave_out_unreadable(tally)
    if not tally.records and len(tally.left_out) == 1:
        raise BadInput(f"{tally.left_out[0].what}: {tally.left_out[0].why}")
    for line in lines_of(tally.left_out):
        say(line, file=sys.stderr)
    if not tally.records:
        raise BadInput(f"no cell of {folder} could be evaluated" if tally.left_out else f"{folder} holds no cells")
    if as_json:
        print_json(_plain(tally))
    else:
        _print_folder(tally, wanted)
        say(f"\n{plural(tally.grown, 'record')} of {folder} {'has' if tally.grown == 1 else 'have'} grown; "
              f"{len(tally.records) - tally.grown:,} held it already; {len(tally.left_out):,} left out")  # fmt: skip
    return 1 if any(left.code not in (*HARMLESS, CANNOT) for left in tally.left_out) else 0


def _leave_out_unreadable(tally: FolderTally) -> None:
    """Name the cells whose task cannot be had any more, such as one of a file that has changed: without it there is no
    floor. They held all that was asked for already, or they would be left out.
    """
    from statetrack.results.diagnosis import ERROR, left_out
    from statetrack.tasks import trusted_task

    for record in list(tally.records):
        try:
            trusted_task(record.cell.task)
        except BadInput as error:
            tally.records.remove(record)
            tally.left_out.append(left_out(record.cell, str(error), ERROR))


def _plain(tally: FolderTally) -> dict[str, Any]:
    from statetrack.tasks import trusted_task
    from statetrack.training.evaluated import told

    cells = [told(record, trusted_task(record.cell.task)) for record in tally.records]
    left = [{"key": each.key, "what": each.what, "why": each.why} for each in tally.left_out]
    return {"cells": cells, "grown": tally.grown, "left_out": left}


def _print_folder(tally: FolderTally, wanted: Wanted) -> None:
    """A row for each cell and each length that was asked for; of a stream its last mark. A word that breaks a network
    is told whatever was asked for: rows that it is right on say nothing of it.
    """
    from statetrack.reports.folder import protocols_told_apart
    from statetrack.tasks import trusted_task
    from statetrack.training.evaluated import on_words, rows_of

    names = short_names(name for record in tally.records for name in (record.cell.task, record.cell.subject))
    protocols = protocols_told_apart(record.cell for record in tally.records)
    shown = any(protocols[record.cell.key] != record.cell.protocol["name"] for record in tally.records)
    rows, lines = [], []
    broken = any(record.broken for record in tally.records)
    for record in tally.records:
        cell = record.cell
        how = [protocols[cell.key]] if shown else []
        first = [names[cell.task], names[cell.subject], *how]
        every, word = rows_of(record, trusted_task(cell.task)), [shortened(record.broken_by, 14)] if broken else []
        rows += [[*first, f"{cell.length:,}", str(cell.seed), *told, *word] for told in _asked_rows(every, wanted)]
        if wanted.words != 0 or record.broken:
            lines.append(f"{', '.join(first)}, trained at {cell.length:,}, seed {cell.seed}: {on_words(record, every)}")
    headers = ["task", "model", *(["protocol"] if shown else []), "trained", "seed", "tested", "accuracy", "95 %",
               "floor", "solved", *(["broken by"] if broken else [])]  # fmt: skip
    print_table(headers, rows, groups=2)
    if lines:
        say("", *lines, sep="\n")


def _asked_rows(every: list[Row], wanted: Wanted) -> list[list[str]]:
    from statetrack.training.evaluated import lengths_shown

    asked = {OnRows.kind: wanted.lengths, OnStream.kind: wanted.streams}
    rows = [row for row in every if row["tested"] in asked.get(row["of"], ())]
    return [[f"{of} of {length}", accuracy, between, floor, solved]
            for of, length, _, accuracy, between, floor, _, _, solved in lengths_shown(rows)]  # fmt: skip
