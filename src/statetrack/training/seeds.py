"""`st.train` and `st.train_many`: one seed, or several as replicas of one model. `training/run.py` does the work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from torch import nn

from statetrack import trust
from statetrack.errors import refusing_unknown
from statetrack.files import check_writable
from statetrack.formatting import without_hash
from statetrack.models.matching import Match
from statetrack.own_code import addresses
from statetrack.results import Cell
from statetrack.results.store import kept_in
from statetrack.tasks import Task, given_task
from statetrack.training.bar import training_bar
from statetrack.training.curves import Callback
from statetrack.training.loop import Report
from statetrack.training.protocol import Protocol, fuse_from
from statetrack.training.protocol import protocol as protocol_of
from statetrack.training.result import Result, Results
from statetrack.training.run import Job, Tick, cell_protocol, check_numbers, checkpoint_path, pick_device, run_job
from statetrack.training.weights import of_size, subject_of

Told = TypeVar("Told")


def _say(line: str) -> None:
    print(f"statetrack: {line}", file=sys.stderr, flush=True)


@refusing_unknown
def train(
    task: Task | str, model: nn.Module | str, *, length: int = 64, seed: int = 0,
    protocol: Protocol | str = "curriculum", batch: int | None = None, rates: Sequence[float] | float | None = None,
    weight_decay: float | None = None, clip: float | None = None, warmup: int | None = None,
    check_every: int | None = None, most_checks: int | None = None, patience: int | None = None,
    first_length: int | None = None, polish: int | None = None, most_tokens: int | None = None,
    validation_rows: int | None = None, precision: str | None = None, state_noise: float | None = None,
    noise_kind: str | None = None,
    hard_rows: float | None = None,
    settings: Mapping[str, Any] | None = None, match: Mapping[str, Any] | str | None = None, stream: int = 0,
    words: int | None = None,
    out: Path | str | None = None, device: str = "auto", progress: bool | None = None,
    callback: Callback | None = None, report: Report | None = None, tick: Tick | None = None,
    warn: Callable[[str], None] | None = None,
) -> Result:  # fmt: skip
    """Train one model on one task at one length, and test it there, on longer rows, and on hard words.

    task      a task's text, "txc" or "fsm[k=5]", a class of yours as "file.py:Class", or a task: `st.task("txc")`
    model     a model's name, "gru" or "gru[hidden=32]", a class of yours as "file.py:Class", or a torch module
    length    of the rows trained on
    seed      of the weights and of the rows
    protocol  "curriculum" (short rows first), "design" (that of the design document) or "hold" (a curriculum with
              noise on the state and hard rows, for what is to hold for ever)

    Every number of the protocol can be given by its name; None leaves it as the protocol has it:

    batch            rows in a step (at most: `most_tokens` limits it)
    rates            one learning rate or several, of which validation chooses
    weight_decay, clip, warmup      of AdamW, the norm of the gradient, steps in which the rate rises
    check_every      steps between two checks on validation data
    most_checks      checks at most, in each stage of a curriculum or in all
    patience         checks without a better accuracy before it stops; 0: any number
    first_length     where a curriculum begins; 0: at the full length
    polish           steps at the end of a curriculum in which the rate falls to nothing
    most_tokens      tokens in a step at most
    validation_rows  rows of a check
    precision        "float32" or "bfloat16"
    state_noise      how far each number of the state is moved, up or down, after every step of training
    noise_kind       "sign" (up or down by that much) or "gaussian" (of that deviation; slower)
    hard_rows        the share of a batch that is long runs, sparse inputs, u v v v ... and words that broke it so far
    settings         the same as a mapping, such as a sweep file has it; what is given by name counts

    match     how many parameters the model is to have, within 2 %, by its width: {"parameters": "100k"}; with "task"
              another one, as many as it would have there; with "width" the option that is the width of a model of yours
    stream    also test on a stream of so many steps
    words     tokens of hard words to test on; None: as is usual on the device; 0: none
    out       a folder for the record, the weights and a checkpoint: what is there already is not done again, a run
              that was killed goes on where it was, and what `stream` or `words` ask for later is measured on the
              weights that were kept
    device    "auto" (the GPU where there is one), "cpu" or "cuda"
    progress  None: a bar in a terminal or a notebook; True: elsewhere too, as a line now and then; False: never
    callback  called with a `TrainingCheck` at every check on validation data: for TensorBoard and the like
    report, tick, warn  called with the run after each check, with what is tested, and with a line about a damaged
              result that is made again (None: printed on standard error)

    Gives a `Result`: `.record` holds every number, `.model` the trained model, `.solved` and `.accuracy` the main ones.

    >>> result = train("txc", "gru[hidden=8]", length=8, seed=0, batch=16, most_checks=1, polish=20, words=0)
    >>> result.cell.length, result.model.parameter_count == result.record.training.parameters
    (8, True)
    """
    changes = Protocol.changes(locals(), settings)
    return train_many(
        task, model, length=length, seeds=[seed], protocol=protocol, settings=changes, match=match, stream=stream,
        words=words, out=out, device=device, progress=progress, callback=callback, report=report, tick=tick, warn=warn,
    )[0]  # fmt: skip


@refusing_unknown
def train_many(
    task: Task | str, model: nn.Module | str, *, length: int = 64, seeds: Sequence[int],
    protocol: Protocol | str = "curriculum", batch: int | None = None, rates: Sequence[float] | float | None = None,
    weight_decay: float | None = None, clip: float | None = None, warmup: int | None = None,
    check_every: int | None = None, most_checks: int | None = None, patience: int | None = None,
    first_length: int | None = None, polish: int | None = None, most_tokens: int | None = None,
    validation_rows: int | None = None, precision: str | None = None, state_noise: float | None = None,
    noise_kind: str | None = None,
    hard_rows: float | None = None,
    settings: Mapping[str, Any] | None = None, match: Mapping[str, Any] | str | None = None, stream: int = 0,
    words: int | None = None,
    out: Path | str | None = None, device: str = "auto", progress: bool | None = None,
    callback: Callback | None = None, report: Report | None = None, tick: Tick | None = None,
    warn: Callable[[str], None] | None = None,
) -> Results:  # fmt: skip
    """Train several seeds side by side, as replicas of one batched model, and test each; a result for each seed.

    Each seed comes out as it would alone, up to rounding. `train` says what all other arguments are.

    >>> results = train_many("txc", "mlp[hidden=4]", length=8, seeds=[0, 1], most_checks=1, polish=0, words=0)
    >>> [result.cell.seed for result in results]
    [0, 1]
    """
    the_task = given_task(task, kept=out is not None)
    rules = protocol_of(protocol).with_changes(**Protocol.changes(locals(), settings))
    place = pick_device(device)
    check_numbers(length, seeds, stream, words)
    stream = int(stream)
    fuse_from()
    size = None if match is None else Match.read(match)
    with trust.trusting(*addresses([task, model, size.task if size else ""])):
        model = model if size is None else of_size(model, the_task, size)
        subject = subject_of(model, the_task, kept=out is not None)
        cells = tuple(Cell(the_task.name, subject, length, seed, cell_protocol(rules)) for seed in seeds)
        streams = (stream,) if stream else ()
        called = f"{without_hash(the_task.name)}, {without_hash(subject)}"
        with kept_in(out) as store, training_bar(called, progress) as (moved, testing):
            job = Job(the_task, model, cells, rules, place, streams, words, _both(moved, report),
                      _both(testing, tick), warn or _say, callback)  # fmt: skip
            if store:
                check_writable(store.folder)
            saved = checkpoint_path(store, cells) if store else None
            results = {result.cell.seed: result for result in run_job(job, store, saved)}
            if saved:
                saved.unlink(missing_ok=True)
    return Results(results[seed] for seed in seeds)


def _both(one: Callable[[Told], None], other: Callable[[Told], None] | None) -> Callable[[Told], None]:
    if other is None:
        return one

    def tell(told: Told) -> None:
        one(told)
        other(told)

    return tell
