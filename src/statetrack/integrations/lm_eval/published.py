"""Rows of a local copy of the published data: exactly as long as the lengths asked for, audited when they are read."""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from statetrack.data.audit import audit
from statetrack.data.hub import located
from statetrack.data.identify import claim
from statetrack.data.maps import KEY, PermutationMap
from statetrack.data.read import DataSet, RowChunk, find
from statetrack.errors import BadInput
from statetrack.integrations.lm_eval.definitions import LENGTHS, LOGGER
from statetrack.integrations.lm_eval.documents import Document, document, spread
from statetrack.tasks.groups import group

log = logging.getLogger(LOGGER)
NAME_ENDINGS = ("", "_data", "_composition")
DEPTH = 3  # folders below the given one in which a group's data is looked for


def read(
    path: Path, name: str, per_length: int, labels: str, lengths: Sequence[int] = LENGTHS
) -> tuple[list[Document], list[str]]:
    """The first rows of every length in a group's test data, at most `per_length` of each; what its audit found, and
    with labels as published whether they answer the prompt.
    """
    place = locate(path, name)
    audited = audit(place, name)
    findings = audited.findings + (audited.warnings if labels == "published" else [])
    for finding in findings:
        log.warning("%s: %s", place, finding)
    data = find(place)
    rows = _by_length(data, set(lengths), per_length, _right_labels(data, name) if labels == "right" else None)
    if not rows:
        raise BadInput(f"{place} holds no row whose length is one of {_some(lengths)}")
    documents: list[Document] = []
    for turn in range(per_length):
        for length in spread(lengths):
            if turn < len(rows[length]):
                documents.append(document(len(documents), *rows[length][turn]))
    return documents, findings


def _some(lengths: Sequence[int]) -> str:
    """
    >>> _some([5, 50]), _some(LENGTHS)
    ('5, 50', '5, 10, ..., 500')
    """
    return ", ".join(map(str, lengths if len(lengths) < 4 else [*lengths[:2], "...", lengths[-1]]))


def locate(path: Path, name: str) -> Path:
    """A group's data: below the path under its name (`s5`, `s5_data`, `data/s5.parquet`), or the path itself; from the
    hub its files alone are fetched where they have its name.
    """
    root = located(path, stems=[f"{name}{ending}" for ending in NAME_ENDINGS])
    if not root.exists():
        raise BadInput(f"data: {path} does not exist")
    named = re.compile(rf"{re.escape(name)}({'|'.join(NAME_ENDINGS)})(\.jsonl|\.parquet)?", re.IGNORECASE)
    matches = sorted(place for place in _below(root, DEPTH) if named.fullmatch(place.name))
    if len(matches) > 1:
        raise BadInput(f"data: {path} holds {name} more than once: {', '.join(map(str, matches))}")
    if matches:
        return matches[0]
    claimed = claim(find(path), None)
    if claimed is None or claimed.name != name:
        raise BadInput(f"data: {path} holds no {name}; name its file or folder {name} or {name}_data")
    return path


def _below(path: Path, depth: int) -> Iterator[Path]:
    """Everything in a folder and in the folders below."""
    if depth and path.is_dir():
        for place in path.iterdir():
            yield place
            yield from _below(place, depth - 1)


Labels = dict[bytes, int]


def _right_labels(data: DataSet, name: str) -> tuple[PermutationMap, Labels]:
    """What every ID stands for, and back."""
    if KEY in data.metadata:
        id_map = PermutationMap.read(data.metadata[KEY], str(data.metadata_path))
    else:
        id_map = PermutationMap.of_group(group(name))
    return id_map, {images.tobytes(): element for images, element in zip(id_map.images, id_map.ids.tolist())}


def _by_length(
    data: DataSet, wanted: set[int], per_length: int, right: tuple[PermutationMap, Labels] | None
) -> defaultdict[int, list[tuple[list[int], int]]]:
    """The IDs and the label of rows, under their length."""
    kept: defaultdict[int, list[tuple[list[int], int]]] = defaultdict(list)
    split = "test" if "test" in data.splits else next(iter(data.splits))
    for rows in data.rows(split):
        for row, length in enumerate(rows.lengths.tolist()):
            if length in wanted and len(kept[length]) < per_length:
                ids = rows.ids[rows.starts[row] : rows.starts[row + 1]]
                target = int(rows.targets[row]) if right is None else _product(ids, right, rows, row)
                kept[length].append((ids.tolist(), target))
    return kept


def _product(ids: NDArray[np.int64], right: tuple[PermutationMap, Labels], rows: RowChunk, row: int) -> int:
    """p_n ∘ ... ∘ p_1: every point goes through p_1 first."""
    id_map, labels = right
    codes, inside = id_map.codes(ids)
    if not inside.all():
        raise BadInput(f"row {rows.first + row} holds an ID outside the map: its right label cannot be computed")
    points = np.arange(id_map.images.shape[1], dtype=id_map.images.dtype)
    for images in id_map.images[codes]:
        points = images[points]
    return labels[points.tobytes()]
