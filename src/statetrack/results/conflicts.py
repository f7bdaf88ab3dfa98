"""Two records of one cell that differ in what was measured or answered: both are kept, and somebody has to look.

    DIR/3f0c...9a.json                        the one that counts
    DIR/3f0c...9a.1b2c3d4e.conflict.json      the other; `check` and `merge` name it, all else passes it by
    DIR/3f0c...9a.1b2c3d4e.conflict.safetensors   its weights, .conflict.proof their proof;
                                              .conflict.replies.jsonl are its replies (`replies.py`)

Seconds, machines and versions may differ. So may what one of the two does not hold: they are united.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from statetrack.files import copy_whole, read_bounded, write_whole
from statetrack.results import records, seal
from statetrack.results.evaluations import Evaluation, ForEver
from statetrack.results.networks import HasEvaluations
from statetrack.results.records import AskedRecord, EvaluatedRecord, Record, TrainingRecord
from statetrack.results.schema import BadRecord

ENDING = ".conflict.json"
NAME = re.compile(r"([0-9a-f]{20})\.[0-9a-f]{8}\.conflict\.json")
NOT_MEASURED = (
    "tokens_per_second",
    "train_seconds",
    "replicas",
    "device",
    "torch",
    "curve",
    "processor",
    "peak_memory",
    "peak_memory_of",
)
WEIGHTS, REPLIES = "weights", "replies"
SETTINGS = ("seed", "reason", "other_weights", "n")


@dataclass(frozen=True)
class Conflict:
    """A record that was set aside, and what it has otherwise than the one that counts."""

    path: Path
    cell: str
    what: str

    def __str__(self) -> str:
        return f"{self.path.name}: {self.cell}: {self.what}"


def difference(one: Record, other: Record) -> str | None:
    """What two finished records say differently of what was measured; None where they agree. Of one that is not
    finished, only replies count: those of a dialogue that does not begin like the other.
    """
    if not (one.finished and other.finished):
        return REPLIES if _parted(one, other) else None
    if isinstance(one, TrainingRecord) and isinstance(other, TrainingRecord):
        return _training(one, other)
    if isinstance(one, EvaluatedRecord) and isinstance(other, EvaluatedRecord):
        return _evaluations(one, other)
    if isinstance(one, AskedRecord) and isinstance(other, AskedRecord):
        names = ("replies", "outcomes", "max_length", "ended")
        return next((name for name in names if getattr(one.episode, name) != getattr(other.episode, name)), None)
    return "kind"


def _parted(one: Record, other: Record) -> bool:
    if not (isinstance(one, AskedRecord) and isinstance(other, AskedRecord)):
        return False
    return any(first != second for first, second in zip(one.episode.replies, other.episode.replies))


def what_differs(counts: Record | None, aside: Record) -> str:
    """What a record was set aside for."""
    return (difference(counts, aside) if counts else None) or (REPLIES if isinstance(aside, AskedRecord) else WEIGHTS)


def _training(one: TrainingRecord, other: TrainingRecord) -> str | None:
    if one.status != other.status:
        return "status"
    if name := _differing(one.training, other.training, NOT_MEASURED):
        return f"training.{name}"
    return _evaluations(one, other)


def _evaluations(one: HasEvaluations, other: HasEvaluations) -> str | None:
    theirs = {each.settings: each for each in other.evaluations if _counts(each)}
    for each in filter(_counts, one.evaluations):
        if (same := theirs.get(each.settings)) and (name := _differing(each, same, SETTINGS)):
            return f"{name} of the evaluation {' '.join(map(str, each.settings))}"
    return None


def _counts(each: Evaluation) -> bool:
    """Whether it was measured, so that another measurement must agree. A search depends on the clock."""
    return not each.reason and not each.other_weights and not isinstance(each, ForEver)


def _differing(one: Any, other: Any, left_out: tuple[str, ...]) -> str | None:
    """The first field that both hold and that differs. Floors are worked out, not measured."""
    for name in (each.name for each in fields(one)):
        if name in left_out or name.startswith(("floor", "skill")):
            continue
        first, second = getattr(one, name), getattr(other, name)
        if first not in (None, ()) and second not in (None, ()) and first != second:
            return name
    return None


def set_aside(folder: Path, record: Record, weights: Path | None, what: str) -> Conflict:
    """Keep a record beside the one that counts; one that is there already in other words only is not kept twice."""
    for path, held in aside(folder, record.cell.key):
        if isinstance(held, Record) and difference(held, record) is None and _as_long(held, record):
            return Conflict(path, str(record.cell), what)
    data = seal.seal(records.write(record), indent=1)
    path = path_for(folder, record.cell.key, data)
    if weights is not None:
        copy_whole(weights, path.with_suffix(".safetensors"))
        proof = weights.with_suffix(".proof")
        if proof.is_file() and proof.stat().st_size <= seal.MOST_JSON:
            copy_whole(proof, path.with_suffix(".proof"))
    write_whole(path, data)
    return Conflict(path, str(record.cell), what)


def path_for(folder: Path, key: str, data: bytes) -> Path:
    """Where a record of a cell is set aside, by what is told there."""
    return folder / f"{key}.{hashlib.sha256(data).hexdigest()[:8]}{ENDING}"


def _as_long(held: Record, record: Record) -> bool:
    """Whether a dialogue that is kept holds all of another that begins like it."""
    if not (isinstance(held, AskedRecord) and isinstance(record, AskedRecord)):
        return True
    return len(held.episode.replies) >= len(record.episode.replies)


def aside(folder: Path, key: str = "") -> Iterator[tuple[Path, Record | str]]:
    """The records that were set aside, of one cell or of all, or what is wrong with a file."""
    for path in sorted(folder.glob(f"{key or '*'}.*{ENDING}")):
        if NAME.fullmatch(path.name):
            try:
                yield path, records.read(seal.unseal(read_bounded(path, seal.MOST_JSON)))
            except OSError as error:
                yield path, error.strerror or str(error)
            except BadRecord as error:
                yield path, str(error)
