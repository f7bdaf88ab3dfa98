"""Whether a folder holds what was written into it: checksums, names, and files that belong together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from statetrack.errors import shortened
from statetrack.files import ABANDONED
from statetrack.results import conflicts, diagnosis, leftovers, plans, proofs, replies, seal
from statetrack.results.cell import Cell
from statetrack.results.conflicts import Conflict
from statetrack.results.evaluations import ForEver
from statetrack.results.networks import HasEvaluations
from statetrack.results.records import Record, TrainingRecord
from statetrack.results.schema import BadRecord
from statetrack.results.store import KEY, Damage, Store

NAME_OF_PROOF = re.compile(r"([0-9a-f]{20})(\.pruned|\.[0-9a-f]{8}\.conflict)?\.proof")


@dataclass
class Findings:
    """What is wrong with a folder. Only what is damaged or in conflict needs somebody to act."""

    damaged: list[str] = field(default_factory=list)  # does not hold what was written; its cell is made again
    conflicts: list[Conflict] = field(default_factory=list)  # two results of one cell
    stale: list[str] = field(default_factory=list)  # belongs to what is no longer here, or to what is done
    foreign: list[str] = field(default_factory=list)  # not of statetrack
    records: int = 0
    weights: int = 0
    proofs: int = 0

    def to_dict(self) -> dict[str, object]:
        told = {"damaged": self.damaged, "conflicts": [str(each) for each in self.conflicts]}
        return {**told, "stale": self.stale, "foreign": self.foreign, "records": self.records, "weights": self.weights,
                "proofs": self.proofs}  # fmt: skip


def check(store: Store) -> Findings:
    """Read every file of a folder."""
    found = Findings(foreign=store.foreign())
    kept: dict[str, Record] = {}
    for key, entry in store.entries():
        if isinstance(entry, Damage):
            found.damaged.append(str(entry))
        else:
            kept[key] = entry
    found.records = len(kept)
    found.damaged += [str(plan) for plan in plans.found(store) if isinstance(plan, Damage)]
    _check_aside(store, kept, found)
    _check_weights(store, kept, found)
    _check_proofs(store, kept, found)
    _check_diagnoses(store, kept, found)
    old = [*leftovers.half_written(store, ABANDONED), *leftovers.done_with(store)]
    found.stale += [f"{path.relative_to(store.folder)}: left by a run that was killed" for path in old]
    return found


def _check_aside(store: Store, kept: dict[str, Record], found: Findings) -> None:
    journals = replies.journals(store.folder)
    for path, record in conflicts.aside(store.folder):
        if isinstance(record, str):
            found.damaged.append(f"{path.name}: {record}")
        elif record.cell.key not in kept and record.cell.key not in journals:
            found.stale.append(f"{path.name}: set aside, and the result that it differs from is gone")
        elif not replies.beside(path).is_file():  # else it is one with its journal
            what = conflicts.what_differs(kept.get(record.cell.key), record)
            found.conflicts.append(Conflict(path, str(record.cell), what))
    found.conflicts += [replies.conflict(path) for path in replies.aside(store.folder)]
    for path in (*journals.values(), *replies.aside(store.folder)):
        if why := replies.problem(path):
            found.damaged.append(f"{path.name}: {why}")
    for path in replies.damaged(store.folder):
        found.stale.append(f"{path.name}: a damaged journal, set aside; its whole lines are replies that were paid for")


def _check_weights(store: Store, kept: dict[str, Record], found: Findings) -> None:
    """Those of records, of what was set aside, and of checkpoints."""
    for path in sorted((*store.folder.glob("*.safetensors"), *store.hidden.glob("work/*/*.safetensors"))):
        name = str(path.relative_to(store.folder))
        try:
            note = seal.check_tensors(path)
            cell = Cell(**note["cell"]).identity if "cell" in note else None
        except OSError as error:
            found.damaged.append(f"{name}: {error.strerror or error}")
        except (BadRecord, TypeError, KeyError) as error:
            found.damaged.append(f"{name}: {error}")
        else:
            found.weights += 1
            if cell is not None and KEY.fullmatch(path.stem) and not _belongs(store, path, cell):
                found.damaged.append(f"{name}: the weights of another cell, {cell}")
            elif cell is not None and ".conflict." not in name:
                found.stale += [f"{name}: {why}" for why in _why_stale(path, cell, kept.get(cell.key), note)]


def _belongs(store: Store, path: Path, cell: Cell) -> bool:
    """Whether a file has the name of its cell, or the one that 0.1.0 gave it."""
    return path.stem in {cell.key, *(each.stem for each in store.files(cell))}


def _why_stale(path: Path, cell: Cell, record: Record | None, note: dict[str, object]) -> Iterator[str]:
    if record is None:
        yield "weights without a result; their cell is trained again"
    elif path.stem == cell.key and isinstance(record, TrainingRecord) and "training" in note:
        told = record.training.fingerprint
        yield from ["weights of another training of its cell"] if note["training"] != told else []


def _check_proofs(store: Store, kept: dict[str, Record], found: Findings) -> None:
    """That each can be read, and is of the cell beside which it lies; that those which records speak of are there.
    Whether one holds is for `statetrack verify` to say.
    """
    for path in sorted(store.folder.glob("*.proof")):
        name = NAME_OF_PROOF.fullmatch(path.name)
        if name is None:
            found.foreign.append(path.name)
            continue
        try:
            proof = proofs.read(path)
        except OSError as error:
            found.damaged.append(f"{path.name}: {error.strerror or error}")
        except BadRecord as error:
            found.damaged.append(f"{path.name}: {error}")
        else:
            found.proofs += 1
            if "conflict" not in path.name:
                found.stale += [f"{path.name}: {why}" for why in _why_idle(path, proof, kept.get(name[1]))]
    for record in (each for each in kept.values() if isinstance(each, HasEvaluations)):
        found.stale += [f"{record.cell.key}: {each.sentence}" for each in record.of(ForEver) if each.reason]
        if record.contradiction:
            what = f"for ever ({record.contradiction})"
            found.conflicts.append(Conflict(store.path(record.cell), str(record.cell), what))


def _why_idle(path: Path, proof: proofs.Proof, record: Record | None) -> Iterator[str]:
    """Why a whole proof says nothing of the cell by whose name it is called."""
    weights = path.with_suffix(".safetensors")
    if record is None:
        yield "a proof without a result"
    elif proof.task != record.cell.task:
        yield f"a proof about {shortened(proof.task)}, and its cell is of {record.cell.task}"
    elif weights.is_file() and proof.weights != _hash_of(weights):
        yield "a proof about other weights than those of its cell; certify the cell again"
    elif isinstance(record, HasEvaluations) and not proofs.fitting(record, path.name.partition(".")[2], [path]):
        yield "its cell's record does not speak of it; certify the cell again"


def _hash_of(weights: Path) -> str:
    try:
        return proofs.weights_hash(weights)
    except (OSError, BadRecord):  # damaged, which is said where weights are checked
        return ""


def _check_diagnoses(store: Store, kept: dict[str, Record], found: Findings) -> None:
    for path, each in diagnosis.all_of(store):
        name = str(path.relative_to(store.folder))
        if isinstance(each, BadRecord):
            found.damaged.append(f"{name}: {each}")
        elif each.cell is not None and not _belongs(store, path, each.cell):
            found.damaged.append(f"{name}: the diagnosis of another cell, {each.cell}")
        elif each.key not in kept:
            found.stale.append(f"{name}: the diagnosis of a cell that is not here")
    try:
        diagnosis.comparison(store)
    except (OSError, BadRecord) as error:
        found.damaged.append(f"{diagnosis.FOLDER}/{diagnosis.COMPARISON}: {error}")
