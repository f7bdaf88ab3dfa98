"""Write a task's data set: a JSONL or Parquet file with FILE.meta.json beside it, or a folder for load_from_disk.

    write(DataRequest(task("s5"), Lengths.read("3..1024"), count=1000), out=Path("s5.parquet"))

It streams: memory does not grow with the number of rows. Either everything is there at the end or nothing is.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from statetrack.data.formats import ARROW_FILE, ArrowStream, Format, by_ending, describe_folder, json_lines
from statetrack.data.rows import Chunk, DataRequest
from statetrack.errors import BadInput
from statetrack.files import check_parent, clean, together
from statetrack.tasks.groups import Group

__all__ = ["METADATA", "DataRequest", "beside", "quiet", "write", "write_lines"]

METADATA = "metadata.json"
FOLDER_FILES = {ARROW_FILE, "state.json", "dataset_info.json", METADATA}
Progress = Callable[[int], Any]


def beside(data: Path) -> Path:
    """Where the metadata of a data file lies."""
    return data.with_name(data.name + ".meta.json")


def quiet(rows: int) -> None:
    """Tell nobody."""


def write(
    request: DataRequest,
    out: Path | None = None,
    hf: Path | None = None,
    progress: Progress = quiet,
    overwrite: bool = False,
) -> str:
    """Write the data set to the file `out` or the folder `hf`, tell `progress` of rows as they are done; its sha256.

    A folder that holds a data set is left as it is, and refused, unless `overwrite` says otherwise.
    """
    if (out is None) == (hf is None):
        raise BadInput("a data set goes to a file (out, --out) or to a folder (hf, --hf): give one of the two")
    if hf is not None:
        _check_folder(hf, overwrite)
        return _write_folder(request, hf, progress)
    return _write_file(request, Path(out or ""), progress)


def write_lines(request: DataRequest, file: BinaryIO) -> None:
    """Write the rows as JSON lines to an open file, such as the standard output, and nothing else."""
    for _, chunk in request.chunks():
        file.write(json_lines(chunk))
    file.flush()


def _write_file(request: DataRequest, out: Path, progress: Progress) -> str:
    kind = by_ending(out)
    if out.is_dir():
        raise BadInput(f"{out} cannot be written: it is a folder")
    clean(out)
    clean(beside(out))
    chunks = _begun(request)
    with together(out, beside(out)) as (data, about):
        sha256 = _fill(kind(data), chunks, progress)
        _write_metadata(about, request, out.name, sha256)
    return sha256


def _check_folder(folder: Path, overwrite: bool) -> None:
    if not folder.name:
        raise BadInput(f"{folder} cannot be written: give the new folder a name")
    check_parent(folder)
    if folder.is_file():
        raise BadInput(f"{folder} cannot be written: it is a file")
    there = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if strangers := there - FOLDER_FILES:
        raise BadInput(f"{folder} cannot be written: it holds other files, such as {min(strangers)}")
    if there and not overwrite:
        raise BadInput(f"{folder} holds a data set already; --overwrite (overwrite=True) puts this one in its place")


def _write_folder(request: DataRequest, folder: Path, progress: Progress) -> str:
    clean(folder)
    chunks = _begun(request)
    with together(folder) as (part,):
        part.mkdir()
        sha256 = _fill(ArrowStream(part / ARROW_FILE), chunks, progress)
        describe_folder(part, request.split, sha256)
        _write_metadata(part / METADATA, request, ARROW_FILE, sha256)
    return sha256


def _begun(request: DataRequest) -> Iterator[tuple[int, Chunk]]:
    """All rows, the first of them made before a file is: for them numba is imported and loops are compiled, and in the
    middle of that an interrupt may be lost.
    """
    chunks = request.chunks()
    return itertools.chain(list(itertools.islice(chunks, 1)), chunks)


def _fill(file: Format, chunks: Iterator[tuple[int, Chunk]], progress: Progress) -> str:
    try:
        for rows, chunk in chunks:
            file.write(rows, chunk)
            progress(rows)
        return file.finish()
    except BaseException:
        file.abandon()
        raise


def _write_metadata(path: Path, request: DataRequest, data: str, sha256: str) -> None:
    """What made the data and, for a group, the permutation of every ID; a large map is never whole in memory."""
    from statetrack.version import __version__

    fields: dict[str, Any] = {
        "task": request.task.name,
        "statetrack": __version__,
        "split": request.split,
        "seed": request.seed,
        "count": request.count,
        "length": request.lengths.text,
        "sha256": {data: sha256},
    }
    if request.group is not None:
        fields |= {"group": request.group.name, "convention": request.convention}
        fields |= {"prefixes": True} if request.prefixes else {}
    text = json.dumps(fields, indent=2)
    with path.open("w", encoding="utf-8") as file:
        if request.group is None:
            file.write(text + "\n")
        else:
            file.write(text.removesuffix("\n}") + ',\n  "permutation_map": {\n')
            file.writelines(_map_lines(request.group))
            file.write("  }\n}\n")


def _map_lines(group: Group) -> Iterator[str]:
    last = group.order - 1
    for element, images in enumerate(group.elements):
        yield f'    "{element}": {images.tolist()}{"," if element < last else ""}\n'
