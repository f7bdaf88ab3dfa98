"""Trainings under way in a folder, as far as their checkpoints tell: where each stood when it was last saved.

DIR/3f0c...9a.checkpoint.safetensors                     of `statetrack train`
DIR/.sweep/work/3f0c...9a/77b1...0e.checkpoint.safetensors   of a sweep
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statetrack.formatting import plural, without_hash
from statetrack.results import seal
from statetrack.results.pace import duration
from statetrack.results.schema import BadRecord
from statetrack.results.store import Store

ENDING = ".checkpoint.safetensors"


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint says of itself. One of before 0.4.0 does not say of which task and model it is."""

    path: Path
    task: str
    model: str
    length: int
    seeds: tuple[int, ...]
    update: int  # of the replica that is furthest behind
    stage: int  # the length that it has come to
    saved: float  # when

    def described(self, now: float | None = None) -> str:
        """In one line: `txc, gru, length 64, seeds 0 to 2: update 450, at length 16; saved 12 s ago`."""
        what = f"{self.task}, {without_hash(self.model)}, length {self.length}, " if self.task else ""
        ago = duration(max(0.0, (time.time() if now is None else now) - self.saved))
        return f"{what}{_seeds(self.seeds)}: update {self.update:,}, at length {self.stage:,}; saved {ago} ago"


def _seeds(seeds: tuple[int, ...]) -> str:
    """
    >>> _seeds((3,)), _seeds((0, 1, 2)), _seeds((0, 4))
    ('seed 3', 'seeds 0 to 2', '2 seeds from 0 to 4')
    """
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    first, last = min(seeds), max(seeds)
    between = f"{first} to {last}"
    return f"seeds {between}" if last - first + 1 == len(seeds) else f"{plural(len(seeds), 'seed')} from {between}"


def under_way(store: Store) -> list[Checkpoint]:
    """The checkpoints of a folder that can be read; one that cannot is named by whoever goes on from it."""
    paths = [*store.folder.glob(f"*{ENDING}"), *store.hidden.glob(f"work/*/*{ENDING}")]
    return [found for path in sorted(paths) if (found := _read(path)) is not None]


def _read(path: Path) -> Checkpoint | None:
    try:
        note, saved = seal.note_of(path), path.stat().st_mtime
        return _checkpoint(path, note, saved)
    except (OSError, BadRecord, KeyError, TypeError, ValueError, AttributeError, IndexError):
        return None  # not whole, or gone meanwhile


def _checkpoint(path: Path, note: dict[str, Any], saved: float) -> Checkpoint:
    behind = min(note["progress"], key=lambda each: (each["done"], each["step"]))
    of = note.get("of") or {"task": "", "model": "", "length": behind["stages"][-1]}
    seeds = tuple(sorted({int(seed) for seed in note["seeds"]}))
    return Checkpoint(
        path, str(of["task"]), str(of["model"]), int(of["length"]), seeds, int(behind["step"]),
        int(behind["stages"][behind["stage"]]), saved,
    )  # fmt: skip
