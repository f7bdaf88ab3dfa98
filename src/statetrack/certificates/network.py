"""`st.certify`: one network on one task, as it is at hand in Python."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

from torch import nn

from statetrack import trust
from statetrack.certificates.certify import CERTIFY_SECONDS, Certificate
from statetrack.certificates.certify import certify as search
from statetrack.errors import BadInput, refusing_unknown
from statetrack.formatting import without_hash
from statetrack.models.custom import own_name
from statetrack.own_code import addresses
from statetrack.progress import progress as bar
from statetrack.tasks import Task, given_task
from statetrack.tasks.base import check_size
from statetrack.training.existing import named_model, with_weights
from statetrack.training.result import Result
from statetrack.training.threads import threads_for
from statetrack.training.weight_file import check_not_nan, look_at
from statetrack.training.weights import frozen

UNTOLD = 16  # stands in for the length trained on where nobody says it


@refusing_unknown
def certify(
    task: Task | str, model: nn.Module | Result | str | None = None, *, weights: Path | str | None = None,
    trained: int | None = None, seed: int | None = None, seconds: float = CERTIFY_SECONDS,
    prune: bool = False, progress: bool | None = None, tick: Callable[[str], None] | None = None,
) -> Certificate:  # fmt: skip
    """Prove that a network is right after every word, of any length, or find a word that breaks it; it stays as it is.

    task      a task's text, "txc" or "s3_composition", or a task: `st.task("txc")`
    model     a torch module; the `Result` of `st.train`, which knows `trained` and `seed` itself; or the name of the
              model that `weights` are of. A file that statetrack wrote says itself which model it is of
    weights   a safetensors file with the tensors of the model by their names
    trained   the length trained on; None: that of the result or the file, or 16
    seed      of the words that are drawn; None: that of the result, or 0
    seconds   for the search for a proof
    prune     where the network itself is not proved, prove a copy that reads less of its state: `.pruned`
    progress  None: a bar in a terminal or a notebook; True: elsewhere too, as a line now and then; False: never
    tick      called with what is searched

    Gives a `Certificate`: `.outcome` is "proved as trained", "broken by a word" or "open", `.sentence` says it in
    words, `.word` is the word, `.proof` the proof as plain data: written as JSON it is what `statetrack verify` reads.

    >>> from statetrack.models.witnesses import automaton
    >>> certify("txc", automaton([[0, 1], [1, 0]], [0, 1])).outcome
    'proved as trained'
    """
    the_task = given_task(task)
    if isinstance(model, Result):
        if model.cell.task != the_task.name:
            raise BadInput(f"the result is of {model.cell.task}, not of {the_task.name}")
        known, model = model.cell, model.model
        trained, seed = trained or known.length, known.seed if seed is None else seed
    file = look_at(weights) if weights is not None else None
    trained = trained or (file.cell.length if file and file.cell else UNTOLD)
    check_size(trained, 1, seed or 0, 0)
    if not 0 < seconds <= 86_400:
        raise BadInput(f"seconds {seconds} should lie in 0..86400")
    with trust.trusting(*addresses([task, model])):
        network = with_weights(named_model(model, file), the_task, file, "auto" if file is None else "cpu")
    called = f"{without_hash(the_task.name)}, {without_hash(network.text or own_name(network))}"
    check_not_nan(network, file.name if file else own_name(network))
    with bar("words spent", called, verb="certify", shown=progress) as move:

        def told(part: str) -> None:
            move(part, description=part)
            if tick:
                tick(part)

        same = frozen(copy.deepcopy(network)).to("cpu")
        with threads_for(same):
            return search(the_task, same, length=trained, seed=seed or 0, seconds=seconds, prune=prune, tick=told)
