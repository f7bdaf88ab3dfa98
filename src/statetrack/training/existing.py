"""`st.evaluate`: weights that exist, on any task that they fit and at any length. Nothing is trained."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from statetrack import trust
from statetrack.errors import BadInput, refusing_unknown
from statetrack.files import check_writable
from statetrack.formatting import without_hash
from statetrack.models import SequenceModel, check
from statetrack.models.custom import own_name
from statetrack.own_code import addresses, blaming
from statetrack.progress import progress as bar
from statetrack.results import Cell, EvaluatedRecord
from statetrack.results.cell import EVALUATE, WEIGHTS
from statetrack.results.records import Weights
from statetrack.results.store import add, kept_in
from statetrack.tasks import Task, given_task
from statetrack.tasks.base import check_size, check_whole
from statetrack.training.evaluate import GENERALISE, NO_STREAM
from statetrack.training.evaluated import Evaluated
from statetrack.training.further import UNTOLD, Tick, Wanted, grown, measured
from statetrack.training.own_models import blaming_own, check_given
from statetrack.training.result import Result
from statetrack.training.run import check_length, check_numbers, pick_device
from statetrack.training.threads import threads_for
from statetrack.training.weight_file import WeightFile, check_not_nan, load_into, look_at, sha256_of
from statetrack.training.weights import built, check_size_fits, frozen, subject_of

MOST_LENGTHS = 256  # of one call
MOST_LENGTH = 2**20  # of whole rows, which a model runs in one piece


@refusing_unknown
def evaluate(
    task: Task | str, model: nn.Module | Result | str | None = None, *, weights: Path | str | None = None,
    lengths: Sequence[int] | int | None = None, stream: int = 0, words: int | None = None, trained: int | None = None,
    seed: int | None = None, out: Path | str | None = None, device: str = "auto", progress: bool | None = None,
    tick: Tick | None = None,
) -> Evaluated:  # fmt: skip
    """Test weights that exist on a task: nothing is trained, and they are left as they are.

    task      a task's text, "txc" or "fsm[k=5]", or a task: `st.task("txc")`
    model     a torch module that maps ids (B, T) to logits (B, T, classes); the `Result` of `st.train`, which knows
              `trained` and `seed` itself; or the name of the model that `weights` are of, "gru[hidden=32]" or
              "file.py:Class". A file that statetrack wrote says itself which model it is of
    weights   a safetensors file with the tensors of the model by their names
    lengths   of the rows to test on; None: 1, 2, 4, 8 and 16 times `trained`
    stream    also test on a stream of so many steps; the module needs `initial_state` and `forward_from` or `step`
    words     tokens of hard words to test on; None: as is usual on the device; 0: none
    trained   the length that the weights were trained on, if you know it; 64 stands in for it
    seed      of the test rows, which share none with those that statetrack trains on; None: that of the result, or 0
    out       a folder for the record, which says that nobody here trained these weights; what is there already is not
              measured again. A module needs a name for that: give "file.py:Class" and `weights`
    device    "auto" (where the module is; for a name the GPU where there is one), "cpu" or "cuda"
    progress  None: a bar in a terminal or a notebook; True: elsewhere too, as a line now and then; False: never
    tick      called with what is tested

    Gives an `Evaluated`: printed, it is a table of accuracies with floors and intervals; `.rows` has them as plain
    rows, `.to_pandas()` as a frame, `.record` every number.

    >>> from statetrack.models.witnesses import toggle
    >>> found = evaluate("txc", toggle([[0, 1], [1, 0]]), lengths=[8, 4096], words=0)
    >>> [(row["tested"], row["accuracy"], row["floor"]) for row in found.rows]
    [(8, 1.0, 0.5), (4096, 1.0, 0.5)]
    """
    the_task = given_task(task, kept=out is not None)
    if isinstance(model, Result):
        known, model = model.cell, model.model
        trained, seed = trained or known.length, known.seed if seed is None else seed
    seed = 0 if seed is None else seed
    file = look_at(weights) if weights is not None else None
    if trained is None and file is not None and file.cell is not None:
        trained = file.cell.length
    if trained is not None:
        check_size(trained, 1, 0, 0)
    check_numbers(trained or UNTOLD, [seed], stream, words)
    with trust.trusting(*addresses([task, model])):
        network = with_weights(named_model(model, file), the_task, file, device)
    subject = subject_of(network, the_task, kept=out is not None)
    with threads_for(network), as_it_was(network), blaming_own(network, subject, "when it is tested"):
        check_not_nan(network, file.name if file else own_name(network))
        check(network, the_task.inputs, the_task.outputs, to_train=False)
        wanted = Wanted(_lengths(lengths, trained, network), (int(stream),) if stream else (), words)
        check_wanted(wanted)
        for why in possible(wanted, network, the_task, subject)[1]:
            raise BadInput(why)
        check_given(network, the_task.inputs, wanted.lengths or (UNTOLD,), wanted.streams)
        record = _record(network, the_task, subject, trained or 0, seed, file)
        with kept_in(out) as store, _shown(subject, the_task, progress, tick) as told:
            if store:
                check_writable(store.folder)
                kept = store.read(record.cell)
                record = kept if isinstance(kept, EvaluatedRecord) else record
            began, lacking = time.monotonic(), wanted.lacking_in(record)
            if lacking:
                record = grown(record, measured(the_task, network, record.cell, lacking, told), began)
                record = replace(record, seconds=record.evaluation_seconds)
                record = add(store, record) if store else record
    return Evaluated(record, the_task)


def named_model(model: nn.Module | str | None, file: WeightFile | None) -> nn.Module | str:
    if isinstance(model, nn.Module):
        return model
    if file is None:
        what = f"{model!r} has no weights of its own" if isinstance(model, str) else "there are no weights"
        raise BadInput(f"{what}: give weights=FILE.safetensors, or a torch.nn.Module")
    if model is not None:
        return model
    if file.cell is None:
        raise BadInput(f"{file.name} does not say which model its weights are of; give the model's name")
    return file.cell.subject


def with_weights(model: nn.Module | str, the_task: Task, file: WeightFile | None, device: str) -> SequenceModel:
    """The network to be tested. Of a module that is given, a copy wherever something in it would change."""
    if isinstance(model, nn.Module):
        changes = file is not None or device != "auto"
        with blaming(f"{own_name(model)} cannot be copied"):
            network = built(copy.deepcopy(model) if changes else model, the_task, 0)
    else:
        if file is not None:
            check_size_fits(model, the_task, file.shapes, file.name, f"{without_hash(model)} for {the_task.name}")
        network = frozen(built(model, the_task, 0))
    if file is not None:
        load_into(network, file, without_hash(network.text or own_name(network)), the_task.name)
    stays = isinstance(model, nn.Module) and device == "auto"
    return network if stays else network.to(pick_device(device))


@contextmanager
def as_it_was(model: nn.Module) -> Iterator[None]:
    """Each part of a module is in the mode afterwards that it was in, training or not."""
    modes = {part: part.training for part in model.modules()}
    try:
        yield
    finally:
        for part, mode in modes.items():
            part.training = mode


def _lengths(given: Sequence[int] | int | None, trained: int | None, model: SequenceModel) -> tuple[int, ...]:
    """Those that are asked for; or the usual ones, as far as the model has positions."""
    if given is not None:
        asked = [given] if hasattr(given, "__index__") else list(given)
        for length in asked:
            check_whole(length=length)
        return tuple(dict.fromkeys(map(int, asked)))
    most = getattr(model, "positions", None) or MOST_LENGTH
    first = min(trained or UNTOLD, most)
    return tuple(times * first for times in (1, *GENERALISE) if times * first <= most)


def check_wanted(wanted: Wanted) -> None:
    """Refuse what no model could be tested on."""
    if not wanted:
        raise BadInput(
            "there is nothing to measure: ask for lengths, a stream or hard words (--lengths, --stream, --words)"
        )
    if len(wanted.lengths) > MOST_LENGTHS:
        raise BadInput(f"{len(wanted.lengths):,} lengths are more than {MOST_LENGTHS}; ask for fewer at a time")
    for length in wanted.lengths:
        check_size(length, 1, 0, 0)
        if length > MOST_LENGTH:
            raise BadInput(f"length {length}: whole rows are tested to {MOST_LENGTH}; a stream goes further")
    for steps in wanted.streams or (0,):
        check_numbers(1, [0], steps, wanted.words)


def possible(wanted: Wanted, model: SequenceModel, the_task: Task, subject: str) -> tuple[Wanted, list[str]]:
    """What this model can be tested on, and why not on the rest."""
    lengths, whys = [], []
    for length in wanted.lengths:
        try:
            check_length(the_task, subject, getattr(model, "positions", None), length)
            lengths.append(length)
        except BadInput as error:
            whys.append(str(error))
    if wanted.streams and not model.recurrent:
        whys.append(f"{subject} cannot be streamed: {NO_STREAM}")
    return Wanted(tuple(lengths), wanted.streams if model.recurrent else (), wanted.words), whys


def _record(
    network: SequenceModel, the_task: Task, subject: str, trained: int, seed: int, file: WeightFile | None
) -> EvaluatedRecord:
    """A record of these weights without a number yet."""
    device = next((p.device for p in network.parameters()), torch.device("cpu"))
    weights = Weights(
        sha256=sha256_of(network), parameters=network.parameter_count,
        state_size=network.state_size if network.recurrent else None, file=file.name if file else "",
        trained_as=str(file.cell) if file and file.cell else "",
        device=torch.cuda.get_device_name() if device.type == "cuda" else "cpu", torch=str(torch.__version__),
    )  # fmt: skip
    cell = Cell(the_task.name, subject, trained, seed, {"name": EVALUATE, WEIGHTS: weights.sha256})
    return EvaluatedRecord(cell=cell, weights=weights, evaluations=())


@contextmanager
def _shown(subject: str, the_task: Task, shown: bool | None, tick: Tick | None) -> Iterator[Tick]:
    with bar(
        "words spent", f"{without_hash(the_task.name)}, {without_hash(subject)}", verb="evaluate", shown=shown
    ) as move:

        def told(part: str) -> None:
            move(part, description=part)
            if tick:
                tick(part)

        yield told
