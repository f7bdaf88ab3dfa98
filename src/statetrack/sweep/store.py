"""A folder of results: one JSON file a cell, named by the cell's key, beside the weights of what was trained."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from statetrack.errors import BadInput
from statetrack.files import write_whole
from statetrack.sweep.cell import Cell


class Store:
    """Reads and writes the cells of one folder, which is made when it is not there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if folder.exists() and not folder.is_dir():
            raise BadInput(f"{folder} is a file; results go into a folder")
        if not folder.parent.is_dir():
            raise BadInput(f"{folder.parent} is no folder; make it first")
        folder.mkdir(exist_ok=True)

    def path(self, cell: Cell, ending: str = "json") -> Path:
        return self.folder / f"{cell.key}.{ending}"

    def write(self, cell: Cell, record: dict[str, Any]) -> Path:
        """Keep a cell's record; a second writer of the same cell replaces it by its equal."""
        path = self.path(cell)
        write_whole(path, (json.dumps(record, indent=1, allow_nan=False) + "\n").encode())
        return path

    def read(self, cell: Cell) -> dict[str, Any] | None:
        """A cell's record, or None where there is none or it is damaged."""
        record = self._read(self.path(cell))
        return record if record and record.get("cell") == cell.to_dict() else None

    def records(self) -> Iterator[dict[str, Any]]:
        """All whole records of the folder."""
        for path in sorted(self.folder.glob("*.json")):
            record = self._read(path)
            if record is not None and "cell" in record:
                yield record

    @staticmethod
    def _read(path: Path) -> dict[str, Any] | None:
        try:
            record = json.loads(path.read_text())
        except (FileNotFoundError, ValueError):
            return None
        return record if isinstance(record, dict) else None
