"""Join folders of cells, and pack a folder into one file and back.

The better record of a cell stays: a result before a reason why it was skipped, that before a failure; among equals the
one that is there, with the evaluations of both. Its diagnosis goes with it.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from statetrack.errors import BadInput
from statetrack.files import copy_whole, together
from statetrack.results.diagnosis import FOLDER, of_cell, path_of
from statetrack.results.records import Record, TrainingRecord, is_better, same_weights, unite
from statetrack.results.store import Damage, Store

ENDINGS = (".tar", ".tar.gz", ".tgz")
PLAN = re.compile(r"\.sweep/plans/[^/]+\.json")
SIDE = re.compile(r"[0-9a-f]{20}\.(json|safetensors)")
DIAGNOSIS = re.compile(rf"{FOLDER}/[0-9a-f]{{20}}\.json")
SCRATCH = re.compile(r"\.sweep/work/[0-9a-f]{20}/[0-9a-f]{20}\.[a-z.]+")


@dataclass
class MergeSummary:
    """What a merge did."""

    taken: int = 0
    kept: int = 0  # there already, as good or better
    evaluations: int = 0  # taken into records that were there
    diagnoses: int = 0  # taken
    damaged: list[Damage] = field(default_factory=list)


def merge(sources: list[Path], target: Path) -> MergeSummary:
    """Copy the cells of folders into one, with their weights, diagnoses and plans.

    What compares the diagnosed cells is not copied; `statetrack.verdicts.comparison` makes it again for the whole.
    """
    stores = [Store.existing(source) for source in sources]
    home, joined = Store(target), MergeSummary()
    for store in stores:
        if store.folder.resolve() == home.folder.resolve():
            continue
        for _, record in store.entries():
            if isinstance(record, Damage):
                joined.damaged.append(record)
                continue
            _take(store, home, record, joined)
            joined.diagnoses += _take_diagnosis(store, home, record)
        _take_hidden(store, home)
    return joined


def _take(store: Store, home: Store, record: Record, joined: MergeSummary) -> None:
    """A record that is new or better comes with its files as they are; of one that is as good, the evaluations."""
    there = home.record(record.cell)
    if there is None or is_better(record, there):
        home.path(record.cell, "safetensors").unlink(missing_ok=True)  # left by a run that was killed before its record
        home.adopt(record.cell, [*store.files(record.cell, "safetensors"), *store.files(record.cell)])
        joined.taken += 1
        return
    joined.kept += 1
    united = unite(there, record)
    if not (isinstance(united, TrainingRecord) and isinstance(there, TrainingRecord)):
        return
    if united != there:
        home.write(united)
        joined.evaluations += sum(each not in there.evaluations for each in united.evaluations)
    weights = store.weights(record.cell)
    if weights and same_weights(record, there) and home.weights(record.cell) is None:
        copy_whole(weights, home.path(record.cell, "safetensors"))


def _take_diagnosis(store: Store, home: Store, record: Record) -> bool:
    """A diagnosis is of one training's weights: it goes with them, and does not replace one that is there."""
    there = home.record(record.cell)
    if not (isinstance(record, TrainingRecord) and isinstance(there, TrainingRecord)):
        return False
    if of_cell(store, record.cell) is None or of_cell(home, record.cell) or there.training != record.training:
        return False
    path = path_of(store, record.cell)
    target = home.folder / FOLDER / path.name
    target.parent.mkdir(exist_ok=True)
    copy_whole(path, target)
    return True


def _take_hidden(store: Store, home: Store) -> None:
    """Plans, and the scratch of cells that are under way, where the target has none of that name."""
    for path in _hidden(store, checkpoints=True):
        target = home.folder / path.relative_to(store.folder)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            copy_whole(path, target)


def pack(folder: Path, archive: Path, weights: bool = False, checkpoints: bool = False, diagnoses: bool = True) -> int:
    """All whole records in one tar file, the same bytes for the same cells; how many there are.

    What compares the diagnosed cells is not packed: `unpack` works it out for the folder that they come into.
    """
    if not archive.name.endswith(ENDINGS):
        raise BadInput(f"{archive} should end in {', '.join(ENDINGS)}")
    store = Store.existing(folder)
    cells = [record.cell for record in store.records()]
    paths = [path for cell in cells for path in store.files(cell)]
    if weights:
        paths += [path for cell in cells for path in store.files(cell, "safetensors")]
    if diagnoses:
        paths += [path_of(store, cell) for cell in cells if of_cell(store, cell)]
    paths += _hidden(store, checkpoints)
    with together(archive) as (part,), part.open("wb") as file, _compressed(file, archive) as stream:
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for path in sorted(paths):
                _add(tar, path, str(path.relative_to(folder)))
        stream.flush()
    return len(cells)


def _hidden(store: Store, checkpoints: bool) -> Iterator[Path]:
    yield from (store.hidden / "plans").glob("*.json")
    if checkpoints:
        found = (store.hidden / "work").glob("*/*")
        yield from (path for path in found if SCRATCH.fullmatch(str(path.relative_to(store.folder))))


def _compressed(file: IO[bytes], archive: Path) -> Any:
    if archive.name.endswith(".tar"):
        return io.BufferedWriter(file)
    return gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0)


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    """A member with nothing of this machine in it."""
    data = path.read_bytes()
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), 0o644
    tar.addfile(member, io.BytesIO(data))


def unpack(archive: Path, folder: Path) -> MergeSummary:
    """Merge an archive into a folder. Only names that `pack` writes are taken out of it.

    It is read to its end before anything is taken: only there a compressed file shows that a bit of it has flipped.
    """
    with tempfile.TemporaryDirectory(dir=_parent(folder)) as place:
        try:
            with tempfile.TemporaryFile(dir=place) as plain:
                _decompress(archive, plain)
                with tarfile.open(fileobj=plain, mode="r:") as tar:
                    for member in tar:
                        _extract(tar, member, archive, Path(place))
                plain.seek(tar.offset)
                if plain.read().strip(b"\0"):  # a header that cannot be read looks like the end
                    raise tarfile.ReadError
        except (tarfile.ReadError, gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise BadInput(
                f"{archive} cannot be read: it is not a whole tar file, or not one that pack wrote"
            ) from error
        except (tarfile.TarError, OSError) as error:
            raise BadInput(f"{archive} cannot be read: {getattr(error, 'strerror', None) or error}") from error
        return merge([Path(place)], folder)


def _decompress(archive: Path, to: IO[bytes]) -> None:
    """The tar file itself, from its beginning."""
    with archive.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        with gzip.open(file) if compressed else file as source:
            shutil.copyfileobj(source, to)
    to.seek(0)


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, archive: Path, place: Path) -> None:
    known = any(pattern.fullmatch(member.name) for pattern in (SIDE, PLAN, SCRATCH, DIAGNOSIS))
    source = tar.extractfile(member) if member.isfile() and known and ".." not in member.name else None
    if source is None:
        raise BadInput(f"{archive} holds {member.name!r}, which does not belong in a packed folder; nothing was taken")
    target = place / member.name
    target.parent.mkdir(parents=True, exist_ok=True)
    with source, target.open("wb") as file:
        shutil.copyfileobj(source, file)


def _parent(folder: Path) -> Path:
    parent = Path(os.path.abspath(folder)).parent
    if not parent.is_dir():
        raise BadInput(f"{parent} is not a folder; make it first")
    return parent
