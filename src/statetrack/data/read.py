"""Read data sets in the published schema: a JSONL or Parquet file, a folder of them, or a load_from_disk folder.

Rows come in chunks, with their numbers already read. What cannot be read is named with its file and its row, counted
from 1.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.data.hub import located
from statetrack.data.text import NotNumbers, Starts, numbers
from statetrack.data.write import METADATA, beside
from statetrack.errors import BadInput, need, shortened
from statetrack.files import open_plain, read_bounded, too_many_values
from statetrack.tasks.base import SPLITS

ENDINGS = (".jsonl", ".parquet")
SEQUENCE, TARGET, PREFIXES = "input_sequence", "target", "targets"
DECLARED = ("sequence_length", "group_degree", "group_order", "group_type")
CHUNK_ROWS = 2048
MOST_LINE = 2**25  # bytes of a row in a JSONL file, and of the rows that are read at a time
MOST_ROWS = 2**26  # bytes of as many rows in an Arrow or Parquet file
MOST_METADATA, MOST_VALUES = 2**28, 2**24  # bytes of a file of metadata, and values in it: all permutations of 9 points
MOST_ID = 10**18
SPLIT_NAMES = {"train": "train", "test": "test", "val": "validation", "dev": "validation"}


@dataclass(frozen=True)
class RowChunk:
    """Consecutive rows: the IDs of all sequences in one array, where each starts, and what the other columns say."""

    first: int  # number of the first row in its split, from 1
    ids: NDArray[np.int64]
    starts: Starts
    targets: NDArray[np.int64]
    declared: dict[str, list[Any]]
    prefixes: NDArray[np.int64] | None = None  # the answer after every ID, where the data set has them

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.starts)


@dataclass(frozen=True)
class DataSet:
    """Where a data set lies: the files of each split, its metadata and the places whose names may name its group."""

    path: Path
    splits: dict[str, list[Path]]
    metadata: dict[str, Any]
    metadata_path: Path | None

    def rows(self, split: str) -> Iterator[RowChunk]:
        """The rows of a split, chunk by chunk."""
        before = 0
        for file in self.splits[split]:
            for first, columns in _columns(file):
                rows = _read_numbers(file, first, before, columns)
                yield rows
                before += len(rows.targets)


def find(path: Path) -> DataSet:
    """What lies at a path, or on the hub under a name such as hub:OWNER/NAME."""
    place = located(path)
    if not place.exists():
        raise BadInput(f"{path} does not exist")
    if not (place.is_file() or place.is_dir()):
        raise BadInput(f"{path} cannot be read: it is a pipe or a device, not a plain file")
    splits = {_split_of(place): [place]} if place.is_file() else _in_order(_splits_in(place))
    metadata_path = _metadata_path(place, [file for files in splits.values() for file in files])
    metadata = _load(metadata_path) if metadata_path else {}
    if place.is_file() and "split" in metadata:
        splits = {str(metadata["split"]): [place]}
    return DataSet(path, splits, metadata, metadata_path)


def _in_order(splits: dict[str, list[Path]]) -> dict[str, list[Path]]:
    """The splits that everyone knows first, in their usual order."""
    usual = [split for split in SPLITS if split in splits]
    return {split: splits[split] for split in dict.fromkeys([*usual, *splits])}


def recorded_sha256(file: Path) -> str | None:
    """The sha256 that the metadata of a data file gives for it."""
    for place in (beside(file), file.with_name(METADATA)):
        if place.is_file():
            recorded = _load(place).get("sha256")
            return recorded.get(file.name) if isinstance(recorded, dict) else None
    return None


def _splits_in(folder: Path) -> dict[str, list[Path]]:
    files = sorted(path for path in [*folder.glob("*"), *folder.glob("data/*")] if path.suffix.lower() in ENDINGS)
    below = sorted(path for path in folder.iterdir() if (path / "state.json").is_file())
    saved = [path for path in (folder / "dataset_dict.json", folder / "state.json") if path.is_file()] or below
    if files and saved:
        one, other = ([str(path.relative_to(folder)) for path in paths] for paths in (files, saved))
        raise BadInput(
            f"{folder} holds data files ({', '.join(one)}) and a data set for load_from_disk ({', '.join(other)}): "
            "audit one at a time"
        )
    if (folder / "dataset_dict.json").is_file():
        names = _load(folder / "dataset_dict.json").get("splits", [])
        return {name: _arrow_files(folder / name) for name in _plain_names(names, folder / "dataset_dict.json")}
    if (folder / "state.json").is_file():
        return {str(_load(folder / "state.json").get("_split") or "all"): _arrow_files(folder)}
    if below:
        return {path.name: _arrow_files(path) for path in below}
    if not files:
        raise BadInput(f"{folder} holds no {' or '.join(ENDINGS)} file and no folder that load_from_disk would open")
    splits: dict[str, list[Path]] = {}
    for file in files:
        splits.setdefault(_split_of(file), []).append(file)
    return splits


def _split_of(file: Path) -> str:
    """train-00000-of-00002.parquet is of the split train; a file of another name is a split of its own."""
    for start, split in SPLIT_NAMES.items():
        if file.name.lower().startswith(start):
            return split
    return re.sub(r"-\d+-of-\d+$", "", file.stem)


def _arrow_files(folder: Path) -> list[Path]:
    state = _load(folder / "state.json")
    entries = state.get("_data_files", [])
    names = (
        [entry.get("filename") if isinstance(entry, dict) else None for entry in entries]
        if isinstance(entries, list)
        else entries
    )
    return [folder / name for name in _plain_names(names, folder / "state.json")]


def _plain_names(names: Any, where: Path) -> list[str]:
    """Names of files or folders that a file lists; they lie beside it."""
    if not isinstance(names, list) or not all(isinstance(name, str) and _is_plain(name) for name in names):
        raise BadInput(f"{where} cannot be read: it should list names of files or folders beside it")
    return names


def _is_plain(name: str) -> bool:
    return name not in ("", ".", "..") and name == Path(name).name and "\0" not in name


def _metadata_path(path: Path, files: list[Path]) -> Path | None:
    """The metadata beside the file, in the folder, or with the first data file."""
    near = files[0].parent if files else path
    places = [*(beside(file) for file in files), path / METADATA, near / METADATA, near.parent / METADATA]
    return next((place for place in places if place.is_file()), None)


def _load(path: Path) -> dict[str, Any]:
    try:
        data = read_bounded(path, MOST_METADATA)
        if too_many_values(data, MOST_VALUES):
            raise BadInput(f"{path} cannot be read: it holds more than the {MOST_VALUES:,} values that are read")
        fields = json.loads(data.decode())
    except BadInput:
        raise
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} cannot be read: {error}") from error
    if not isinstance(fields, dict):
        raise BadInput(f"{path} cannot be read: it should hold one JSON object")
    return fields


# ---- columns, file by file -------------------------------------------------------------------------------------------

Columns = dict[str, list[Any]]


def _columns(file: Path) -> Iterator[tuple[int, Columns]]:
    """Chunks of a file: the number of their first row in the file, from 1, and the published columns that are there."""
    try:
        yield from _json_columns(file) if file.suffix.lower() == ".jsonl" else _arrow_columns(file)
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} cannot be read: {error}") from error


def _json_columns(file: Path) -> Iterator[tuple[int, Columns]]:
    with open_plain(file) as lines:
        first, held, objects = 1, 0, []
        for number, line in enumerate(iter(lambda: lines.readline(MOST_LINE + 1), b""), 1):
            if len(line) > MOST_LINE:
                raise BadInput(f"{file}, row {number}: it has more than the {MOST_LINE:,} bytes that are read")
            objects.append(_json_row(file, number, line.decode()))
            held += len(line)
            if len(objects) == CHUNK_ROWS or held > MOST_LINE:
                yield first, _turned(objects)
                first, held, objects = number + 1, 0, []
        if objects:
            yield first, _turned(objects)


def _json_row(file: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line.rstrip("\n"))
    except json.JSONDecodeError as error:
        raise BadInput(f"{file}, row {number}: broken JSON ({error.msg} at character {error.pos + 1})") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{file}, row {number}: broken JSON ({error})") from None
    if not isinstance(row, dict):
        raise BadInput(f"{file}, row {number}: a row should be a JSON object")
    for name in (SEQUENCE, TARGET):
        if name not in row:
            raise BadInput(f"{file}, row {number}: no column {name!r}; there are {', '.join(row) or 'none'}")
    return row


def _turned(objects: list[dict[str, Any]]) -> Columns:
    """Rows to columns; what a row does not say is None."""
    names = [name for name in (PREFIXES, *DECLARED) if any(name in row for row in objects)]
    return {name: [row.get(name) for row in objects] for name in (SEQUENCE, TARGET, *names)}


def _arrow_columns(file: Path) -> Iterator[tuple[int, Columns]]:
    pa = need("pyarrow", "data", f"reading {file.name}")
    first = 1
    try:
        for batch in _batches(file):
            there = batch.schema.names
            for name in (SEQUENCE, TARGET):
                if name not in there:
                    raise BadInput(f"{file}, row {first}: no column {name!r}; there are {', '.join(there)}")
            if len(set(there)) < len(there):
                raise BadInput(f"{file}: two columns have one name")
            names = [name for name in (SEQUENCE, TARGET, PREFIXES, *DECLARED) if name in there]
            for begin in range(0, batch.num_rows, CHUNK_ROWS):
                part = batch.slice(begin, CHUNK_ROWS)
                if part.nbytes > MOST_ROWS:
                    raise BadInput(f"{file}, from row {first}: its rows are longer than are read")
                yield first, {name: part.column(name).to_pylist() for name in names}
                first += part.num_rows
    except pa.ArrowException as error:
        raise BadInput(f"{file}, after row {first - 1}: {str(error).splitlines()[0]}") from error


def _batches(file: Path) -> Iterator[Any]:
    if file.suffix.lower() == ".parquet":
        parquet = need("pyarrow.parquet", "data", f"reading {file.name}")
        with parquet.ParquetFile(file) as opened:
            yield from opened.iter_batches(batch_size=CHUNK_ROWS)
    else:
        ipc = need("pyarrow.ipc", "data", f"reading {file.name}")
        with file.open("rb") as opened, ipc.open_stream(opened) as stream:
            yield from stream


def _read_numbers(file: Path, first: int, before: int, columns: Columns) -> RowChunk:
    """`first` is the number of the first row in its file; `before` counts the rows of the split that came earlier."""
    ids, starts = _numbers(file, first, columns, SEQUENCE)
    targets, target_starts = _numbers(file, first, columns, TARGET)
    several = np.flatnonzero(np.diff(target_starts) != 1)
    if len(several):
        raise BadInput(f"{file}, row {first + several[0]}: {TARGET} should be the number of one element")
    declared = {name: columns[name] for name in DECLARED if name in columns}
    return RowChunk(before + 1, ids, starts, targets, declared, _prefixes(file, first, columns, starts))


def _prefixes(file: Path, first: int, columns: Columns, starts: Starts) -> NDArray[np.int64] | None:
    """The column of lists with an answer for every ID of the sequence."""
    if PREFIXES not in columns:
        return None
    for row, (answers, length) in enumerate(zip(columns[PREFIXES], np.diff(starts).tolist())):
        whole = isinstance(answers, list) and all(type(answer) is int and 0 <= answer < MOST_ID for answer in answers)
        if not whole or len(answers) != length:
            raise BadInput(f"{file}, row {first + row}: {PREFIXES} should be a list of {length} numbers of elements")
    return np.fromiter(itertools.chain.from_iterable(columns[PREFIXES]), np.int64, int(starts[-1]))


def _numbers(file: Path, first: int, columns: Columns, name: str) -> tuple[NDArray[np.int64], Starts]:
    try:
        return numbers(_texts(file, first, columns, name))
    except NotNumbers as error:
        raise BadInput(f"{file}, row {first + error.row}: {name}: {error.problem}") from None


def _texts(file: Path, first: int, columns: Columns, name: str) -> list[str]:
    """A column of strings; whole numbers will do for targets."""
    values = columns[name]
    for row, value in enumerate(values):
        if not isinstance(value, str):
            if name != TARGET or not isinstance(value, int) or isinstance(value, bool):
                raise BadInput(f"{file}, row {first + row}: {name} should be text, not {_shown(value)}")
            values[row] = str(value)
    return values


def _shown(value: Any) -> str:
    """As JSON, where it can be, and no more of it than one reads."""
    try:
        return json.dumps(value)[:40]
    except (TypeError, ValueError):  # bytes or dates of a Parquet file
        return shortened(value)
