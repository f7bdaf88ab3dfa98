"""Join folders of cells, and pack a folder into one file, or into parts, and back.

The better record of a cell stays: a result before a reason why it was skipped, that before a failure; among equals the
one that is there, with the evaluations, replies and weights of both. Its diagnosis and its proof go with it. Two
results, or two episodes, that differ are both kept (`results/conflicts.py`, `results/replies.py`).

An archive ends in a list of the SHA-256 of its files, as `sha256sum` writes it. One of an earlier version has none.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from statetrack.errors import BadInput
from statetrack.files import copy_whole, open_plain, read_bounded, together
from statetrack.results import conflicts, plans, proofs, replies
from statetrack.results.cell import Cell
from statetrack.results.conflicts import Conflict
from statetrack.results.diagnosis import FOLDER, of_cell, path_of
from statetrack.results.networks import HasEvaluations
from statetrack.results.parts import (
    HEAD,
    LIST,
    Part,
    as_member,
    check_ending,
    gzip_stream,
    in_order,
    line,
    piece_of,
    set_of,
    write_parts,
)
from statetrack.results.records import AskedRecord, Record, TrainingRecord, is_better, same_weights, unite
from statetrack.results.schema import BadRecord
from statetrack.results.seal import MOST_JSON, check_tensors, same_tensors
from statetrack.results.store import Damage, Store

PLAN = re.compile(r"\.sweep/plans/[^/]+\.json")
SIDE = re.compile(
    r"[0-9a-f]{20}(\.pruned\.(safetensors|proof)|(\.[0-9a-f]{8}\.conflict)?\.(json|safetensors|proof|replies\.jsonl))"
)
DIAGNOSIS = re.compile(rf"{FOLDER}/[0-9a-f]{{20}}\.json")
SCRATCH = re.compile(r"\.sweep/work/[0-9a-f]{20}/[0-9a-f]{20}\.[a-z.]+")
OURS = (SIDE, PLAN, SCRATCH, DIAGNOSIS)
MOST_UNPACKED, MOST_RATIO = 2**28, 100  # bytes of any archive; how often its own size one may have beyond that
MOST_FILE = 2**31  # bytes of one that is packed
PIECE = 2**20  # bytes read at a time


@dataclass
class MergeSummary:
    """What a merge did."""

    taken: int = 0
    kept: int = 0  # there already, as good or better
    evaluations: int = 0  # taken into records that were there
    diagnoses: int = 0  # taken
    damaged: list[Damage] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)  # results that differ from those that count


def merge(sources: list[Path], target: Path) -> MergeSummary:
    """Copy the cells of folders into one, with their weights, diagnoses and plans.

    What compares the diagnosed cells is not copied; `statetrack.verdicts.comparison` makes it again for the whole.
    """
    stores = [Store.existing(source) for source in sources]
    home, joined = Store(target), MergeSummary()
    for store in stores:
        if store.folder.resolve() == home.folder.resolve():
            continue
        spoken = replies.journals(store.folder).keys() | replies.journals(home.folder).keys()
        left = set(replies.journals(store.folder))
        for key, record in store.entries():
            if isinstance(record, Damage):
                joined.damaged.append(record)
                continue
            left.discard(key)
            asked = isinstance(record, AskedRecord) or (key in spoken and not record.finished)
            if asked and not (record.finished and home.read(record.cell)):
                _take_replies(store, home, record, joined)
            else:
                _take(store, home, record, joined)
            joined.diagnoses += _take_diagnosis(store, home, record)
        for key in sorted(left):  # of runs that were killed before they wrote a record, or whose record is damaged
            joined.conflicts += [conflict for conflict in [replies.take(store, home, key)[1]] if conflict]
        _take_aside(store, home, joined)
        _take_hidden(store, home)
    return joined


def _take(store: Store, home: Store, record: Record, joined: MergeSummary) -> None:
    """A record that is new or a result where there was none comes with its files as they are; of another, what the one
    that is there lacks.
    """
    there = home.record(record.cell)
    if there is None or (record.finished and not there.finished):
        if not _are_of(home.path(record.cell, "safetensors"), record):
            home.path(record.cell, "safetensors").unlink(missing_ok=True)  # of a run that was killed before its record
        beside = [path for ending in ("safetensors", *proofs.ENDINGS) for path in store.files(record.cell, ending)]
        home.adopt(record.cell, [*(path for path in beside if not _is_no_proof(path)), *store.files(record.cell)])
        joined.taken += 1
        return
    joined.taken += is_better(record, there)
    joined.kept += not is_better(record, there)
    ours, theirs = home.weights(record.cell), store.weights(record.cell)
    what = conflicts.difference(there, record)
    if what is None and record.finished and ours and theirs and not same_tensors(ours, theirs):
        what = "weights"
    if what:
        joined.conflicts.append(conflicts.set_aside(home.folder, record, theirs, what))
    united = unite(there, record)
    if united != there:
        home.write(united)
    if isinstance(united, HasEvaluations) and isinstance(there, HasEvaluations):
        joined.evaluations += sum(each not in there.evaluations for each in united.evaluations)
    if theirs and ours is None and same_weights(record, there):
        copy_whole(theirs, home.path(record.cell, "safetensors"))
    if what is None and isinstance(united, HasEvaluations):
        _take_proofs(store, home, united.cell, united, joined)


def _take_proofs(store: Store, home: Store, cell: Cell, united: HasEvaluations, joined: MergeSummary) -> None:
    """Those that the record speaks of and that do not lie here; a pruned one with the weights that it is about."""
    for ending in (proofs.PROOF, proofs.PRUNED_PROOF):
        comes = proofs.fitting(united, ending, store.files(cell, ending))
        if comes is None or proofs.fitting(united, ending, home.files(cell, ending)):
            continue
        if ending == proofs.PRUNED_PROOF:
            for path in store.files(cell, proofs.PRUNED_WEIGHTS):
                copy_whole(path, home.path(cell, proofs.PRUNED_WEIGHTS))
        copy_whole(comes, home.path(cell, ending))
    if united.contradiction:
        joined.conflicts.append(Conflict(home.path(cell), str(cell), f"for ever ({united.contradiction})"))


def _are_of(weights: Path, record: Record) -> bool:
    """Whether weights that lie beside no record, or a damaged one, are those of this one."""
    try:
        note = check_tensors(weights)
    except (OSError, BadRecord):
        return False
    return isinstance(record, TrainingRecord) and note.get("training") == record.training.fingerprint


def _take_replies(store: Store, home: Store, record: Record, joined: MergeSummary) -> None:
    """A record of an episode that may be under way."""
    taken, conflict = replies.take(store, home, record.cell.key)
    joined.taken += taken
    joined.kept += not taken
    joined.conflicts += [conflict] if conflict else []


def _take_aside(store: Store, home: Store, joined: MergeSummary) -> None:
    """What was set aside there is set aside here."""
    for path, record in conflicts.aside(store.folder):
        if isinstance(record, str):
            joined.damaged.append(Damage(path, record))
        elif not replies.beside(path).is_file():  # else it goes with its journal
            weights = path.with_suffix(".safetensors")
            what = conflicts.what_differs(home.record(record.cell), record)
            joined.conflicts.append(
                conflicts.set_aside(home.folder, record, weights if weights.exists() else None, what)
            )
    for path in filter(Path.is_file, replies.aside(store.folder)):
        joined.conflicts.append(replies.take_aside(path, home.folder))


def _take_diagnosis(store: Store, home: Store, record: Record) -> bool:
    """A diagnosis is of one training's weights: it goes with them, and does not replace one that is there."""
    there = home.record(record.cell)
    if not (isinstance(record, TrainingRecord) and isinstance(there, TrainingRecord)):
        return False
    if of_cell(store, record.cell) is None or of_cell(home, record.cell) or not same_weights(there, record):
        return False
    path = path_of(store, record.cell)
    target = home.folder / FOLDER / path.name
    target.parent.mkdir(exist_ok=True)
    copy_whole(path, target)
    return True


def _take_hidden(store: Store, home: Store) -> None:
    """Plans, and the scratch of cells that are under way, where the target has none of that name."""
    plans.merge(store, home)
    for path in filter(Path.is_file, _checkpoints(store)):
        target = home.folder / path.relative_to(store.folder)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            copy_whole(path, target)


def pack(folder: Path, archive: Path, weights: bool = False, checkpoints: bool = False, diagnoses: bool = True) -> int:
    """All whole records in one tar file, the same bytes for the same cells; how many there are.

    What compares the diagnosed cells is not packed: `unpack` works it out for the folder that they come into.
    """
    check_ending(archive)
    cells, paths = _packed(folder, weights, checkpoints, diagnoses)
    with together(archive) as (part,), part.open("wb") as file, _stream(file, archive) as stream:
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
            sums = []
            for name, data in _contents(folder, paths):
                sums.append(line(data, name))
                tar.addfile(as_member(name, len(data)), io.BytesIO(data))
            listed = "".join(sums).encode()
            tar.addfile(as_member(LIST, len(listed)), io.BytesIO(listed))
        stream.flush()
    return cells


def pack_parts(
    folder: Path, archive: Path, size: int, weights: bool = False, checkpoints: bool = False, diagnoses: bool = True
) -> tuple[int, list[Path]]:
    """The same in parts below a size, in bytes (`results/parts.py`); how many records there are, and where the parts.

    Parts of `demo.tar.gz` are `demo.1of3.tar.gz` and so on.
    """
    cells, paths = _packed(folder, weights, checkpoints, diagnoses)
    return cells, write_parts(_contents(folder, paths), archive, size)


def _packed(folder: Path, weights: bool, checkpoints: bool, diagnoses: bool) -> tuple[int, list[Path]]:
    """How many whole records a folder has, and all files that go into an archive of it."""
    store = Store.existing(folder)
    cells = [record.cell for record in store.records()]
    paths = [path for cell in cells for path in store.files(cell)]
    if weights:
        endings = ("safetensors", *proofs.ENDINGS)
        paths += [path for cell in cells for ending in endings for path in store.files(cell, ending)]
    if diagnoses:
        paths += [path_of(store, cell) for cell in cells if of_cell(store, cell)]
    paths += [path for path, record in conflicts.aside(folder) if isinstance(record, Record)]
    if weights:
        aside = (*folder.glob("*.conflict.safetensors"), *folder.glob("*.conflict.proof"))
        paths += [path for path in aside if SIDE.fullmatch(path.name)]
    paths += [*replies.journals(folder).values(), *replies.aside(folder)]
    paths += [*(store.hidden / plans.FOLDER).glob("*.json"), *(_checkpoints(store) if checkpoints else ())]
    return len(cells), sorted(path for path in paths if path.is_file() and not _is_no_proof(path))  # and no pipe


def _is_no_proof(path: Path) -> bool:
    """Whether a file has the name of a proof and is larger than one can be; `check` names it."""
    return path.suffix == f".{proofs.PROOF}" and path.is_file() and path.stat().st_size > proofs.MOST_PROOF


def _contents(folder: Path, paths: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    for path in paths:
        try:
            yield str(path.relative_to(folder)), read_bounded(path, MOST_FILE)
        except OSError as error:
            raise BadInput(f"{path} cannot be packed: {error.strerror or error}") from error


def _checkpoints(store: Store) -> Iterator[Path]:
    found = (store.hidden / "work").glob("*/*")
    yield from (path for path in found if SCRATCH.fullmatch(str(path.relative_to(store.folder))))


def _stream(file: IO[bytes], archive: Path) -> Any:
    return io.BufferedWriter(file) if archive.name.endswith(".tar") else gzip_stream(file)


def unpack(archive: Path | Sequence[Path], folder: Path) -> MergeSummary:
    """Merge an archive, or several, into a folder. Only names that `pack` writes are taken out of it.

    One part stands for all: the others are looked for beside it. All is read to its end before anything is taken: only
    there a compressed file shows that a bit of it has flipped.
    """
    with tempfile.TemporaryDirectory(dir=_parent(folder)) as place:
        places = []
        for number, parts in enumerate(in_order([archive] if isinstance(archive, Path) else archive)):
            places.append(Path(place, str(number)))
            places[-1].mkdir()
            lists = [_take_out(part, places[-1]) for part in parts]
            if parts[0].of and set_of(lists) != parts[0].of:
                raise BadInput(f"{parts[0]} and the parts that follow were not packed together; nothing was taken")
        return merge(places, folder)


def _take_out(part: Part, place: Path) -> str:
    """Take the files of one archive out; the list of them, which one of an earlier version does not have."""
    try:
        with tempfile.TemporaryFile(dir=place) as plain:
            _decompress(part, plain)
            with tarfile.open(fileobj=plain, mode="r:") as tar:
                sums = {member.name: _extract(tar, member, part, place) for member in tar}
            plain.seek(tar.offset)
            while piece := plain.read(PIECE):
                if piece.strip(b"\0"):  # a header that cannot be read looks like the end
                    raise tarfile.ReadError
            return _compare(sums, part, place)
    except (tarfile.ReadError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(f"{part} cannot be read: it is not a whole tar file, or not one that pack wrote") from error
    except (tarfile.TarError, OSError) as error:
        raise BadInput(f"{part} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _decompress(part: Part, to: IO[bytes]) -> None:
    """The tar file itself, from its beginning."""
    with open_plain(part.path) as file:
        compressed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        size, most = 0, max(MOST_UNPACKED, MOST_RATIO * os.fstat(file.fileno()).st_size)
        with gzip.open(file) if compressed else file as source:
            while piece := source.read(PIECE):
                size += len(piece)
                if size > most:
                    raise BadInput(f"{part} unpacks to more than {most:,} bytes; nothing was taken")
                to.write(piece)
    to.seek(0)


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, part: Part, place: Path) -> str:
    """Take a file out, or a piece of one, and give the SHA-256 of what was taken."""
    name, number = piece_of(member.name) if part.of else (member.name, 0)
    target, follows = place / name, number > 1
    known = member.name in (LIST, HEAD if part.of else LIST) or any(pattern.fullmatch(name) for pattern in OURS)
    plain = member.isfile() and not member.issparse()  # a sparse one has few bytes there and any number here
    source = tar.extractfile(member) if plain and known and ".." not in name else None
    if source is None or (follows and not target.exists()):
        raise BadInput(f"{part} holds {member.name!r}, which does not belong in a packed folder; nothing was taken")
    target.parent.mkdir(parents=True, exist_ok=True)
    size = member.size + (target.stat().st_size if follows else 0)
    if name.endswith((".json", ".proof", LIST)) and size > MOST_JSON:
        raise BadInput(f"{part} holds {name} of {size:,} bytes; more than {MOST_JSON:,} are not taken")
    digest = hashlib.sha256()
    with source, target.open("ab" if follows else "xb") as file:
        while piece := source.read(PIECE):
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()


def _compare(sums: dict[str, str], part: Part, place: Path) -> str:
    """The list, if all that it names is there as it was. An archive of an earlier version has none."""
    (place / HEAD).unlink(missing_ok=True)
    sums.pop(HEAD, None)
    if sums.pop(LIST, None) is None:
        return ""
    text = (place / LIST).read_text(errors="replace")
    (place / LIST).unlink()
    listed = {name: digest for digest, _, name in (each.partition("  ") for each in text.splitlines())}
    for name in sorted(listed.keys() | sums.keys()):
        if listed.get(name) != sums.get(name):
            raise BadInput(f"{part} is damaged: {name} is not what was packed; nothing was taken")
    return text


def _parent(folder: Path) -> Path:
    parent = Path(os.path.abspath(folder)).parent
    if not parent.is_dir():
        raise BadInput(f"{parent} is not a folder; make it first")
    return parent
