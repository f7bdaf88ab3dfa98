"""The trained cells of a folder, certified: what is found out about each stands in its record, and proofs beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from statetrack.certificates.certify import BROKEN, CERTIFY_SECONDS, Certificate, certify
from statetrack.models import SequenceModel
from statetrack.results import Store, TrainingRecord, proofs
from statetrack.results.diagnosis import NO_WEIGHTS, left_out
from statetrack.results.evaluations import OPEN, PRUNED, BreakingWord, ForEver
from statetrack.results.schema import BadRecord
from statetrack.results.store import add
from statetrack.tasks import Task, trusted_task
from statetrack.training import checkpoint
from statetrack.training.breaking import WordTest
from statetrack.training.folder import FolderTally, Show, over_cells
from statetrack.training.threads import threads_for
from statetrack.training.weight_file import check_not_nan
from statetrack.training.weights import load


def certify_folder(
    folder: Path | str, keys: Sequence[str] = (), seconds: float = CERTIFY_SECONDS, show: Show = lambda _: None,
    trust_code: bool = False, prune: bool = False,
) -> FolderTally:  # fmt: skip
    """Prove every trained cell of a folder right for ever, or find a word that breaks it, and keep that in its record.

    `keys` are beginnings of the keys of cells; none means all. What is known of these very weights is not searched
    again: a proof that lies there, a word, and what stayed open in at least so many `seconds`. So a run that was killed
    is taken up by the same call. With `prune` what is open is searched again, and a copy that reads less of its state
    is kept beside the network where that copy is proved. `left_out` names what cannot be certified, and nothing of it
    stops the others.
    """

    def one(store: Store, record: TrainingRecord, tally: FolderTally, show: Show) -> None:
        _one(store, record, seconds, prune, tally, show)

    return over_cells(folder, keys, one, torch.device("cpu"), show, trust_code)


def _one(store: Store, record: TrainingRecord, seconds: float, prune: bool, tally: FolderTally, show: Show) -> None:
    cell, path = record.cell, store.weights(record.cell)
    if path is None:
        tally.left_out.append(left_out(cell, "no weights are kept", NO_WEIGHTS))
        return
    weights = _hash_of(path)
    if not is_known(record, weights, seconds) or (prune and record.for_ever and record.for_ever.outcome == OPEN):

        def tick(part: str) -> None:
            tally.part = part
            show(tally)

        the_task, model = trusted_task(cell.task), load(store, cell)
        check_not_nan(model, path.name)
        with threads_for(model):
            found = known_word(the_task, model, record)
            found = found or certify(
                the_task, model, length=cell.length, seed=cell.seed, seconds=seconds, prune=prune, tick=tick
            )
        if found.pruned is not None:
            keep_pruned(store, record, found.pruned)
        sha256 = keep_proof(found, store.path(cell))  # before the record speaks of it: a kill leaves a proof too many
        record = add(store, record.with_evaluations([evaluation(found, weights, seconds, cell.seed, sha256)]))
        record = proofs.vouched(record, lambda ending: store.files(cell, ending))
        tally.grown += 1
    tally.records.append(record)


def is_known(record: TrainingRecord, weights: str, seconds: float) -> bool:
    """Whether a search of so many seconds would bring nothing new about the weights of this hash."""
    found = record.for_ever
    if found is None or found.weights != weights or found.reason:
        return False
    return found.outcome != OPEN or found.budget >= seconds


def known_word(task: Task, model: SequenceModel, record: TrainingRecord) -> Certificate | None:
    """A word that the record names already, if it breaks these weights now."""
    word = record.broken
    return (
        Certificate(BROKEN, word=word) if word is not None and breaks(task, model, record.cell.length, word) else None
    )


def breaks(task: Task, model: SequenceModel, length: int, word: BreakingWord) -> bool:
    """Whether a network answers the last token of a word wrong, and none before it."""
    alone = WordTest(task, model, length).alone(((), tuple(word.symbols)), word.tokens, word.family)
    return alone is not None and alone[1] == word.tokens


def evaluation(found: Certificate, weights: str, seconds: float, seed: int, sha256: str = "") -> ForEver:
    """What a record keeps of a search: all but the proof itself, whose file is named by its hash."""
    checked = found.checked
    return ForEver(
        seed=seed, outcome=found.outcome, weights=weights, budget=seconds, seconds=found.seconds, proof=sha256,
        epsilon=checked.epsilon if checked else None, margin=checked.margin if checked else None,
        float32=checked.float32 if checked else None, regions=checked.regions if checked else None,
        covered=found.covered, why=found.why, word=found.word,
    )  # fmt: skip


def keep_pruned(store: Store, record: TrainingRecord, model: SequenceModel) -> None:
    """Keep a network that was changed before it was proved, beside the one that was trained and apart from it."""
    note = {"cell": record.cell.to_dict(), "training": record.training.fingerprint, "pruned": True}
    checkpoint.save_weights(store.path(record.cell, proofs.PRUNED_WEIGHTS), model, note)


def keep_proof(found: Certificate, beside: Path) -> str:
    """Write the proof, if there is one, beside the record or the weights of this name; the SHA-256 of its file."""
    if found.proof is None:
        return ""
    ending = proofs.PRUNED_PROOF if found.outcome == PRUNED else proofs.PROOF
    return proofs.write(beside.with_suffix(f".{ending}"), found.proof)


def _hash_of(path: Path) -> str:
    """The hash by which a proof names weights; nothing for those that no proof can be about."""
    try:
        return proofs.weights_hash(path)
    except BadRecord:
        return ""
