"""The file formats of data sets. Each takes chunks of columns and writes them from front to back.

Nothing that changes from run to run (time, place, machine) goes into a file: equal chunks give equal bytes.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from statetrack.data.columns import Same, arrow
from statetrack.data.rows import Chunk
from statetrack.errors import BadInput, need
from statetrack.files import Hashed

ARROW_FILE = "data-00000-of-00001.arrow"


class Format(ABC):
    """An open data file."""

    def __init__(self, path: Path) -> None:
        self.file = Hashed(path)

    @abstractmethod
    def write(self, rows: int, chunk: Chunk) -> None:
        """Append a chunk of this many rows."""

    def finish(self) -> str:
        """Write what belongs at the end and give the sha256 of the whole."""
        self.file.close()
        return self.file.sha256

    def abandon(self) -> None:
        """Let go of the file, whatever state it is in; what stopped the writing is already on its way to the caller."""
        with suppress(OSError):
            self.file.close()


class JsonLines(Format):
    """One JSON object per line, as json.dumps writes it."""

    def write(self, rows: int, chunk: Chunk) -> None:
        self.file.write(json_lines(chunk))


def json_lines(chunk: Chunk) -> bytes:
    """The rows of a chunk as JSON, a line for each."""
    pieces, varying = [], []
    for name, column in chunk.items():
        text = column.json()
        pieces.append(
            json.dumps(name).encode() + b": " + (text.replace(b"%", b"%%") if isinstance(text, bytes) else b"%b")
        )
        if not isinstance(text, bytes):
            varying.append(text)
    line = b"{" + b", ".join(pieces) + b"}\n"
    return b"".join([line % values for values in zip(*varying)])


class ArrowFormat(Format):
    """A format that pyarrow writes. Its writer is made for the first chunk, which says what the columns are."""

    module: ClassVar[str]
    purpose: ClassVar[str]

    def __init__(self, path: Path) -> None:
        self.library: Any = need(self.module, "data", self.purpose)
        super().__init__(path)
        self.writer: Any = None

    def write(self, rows: int, chunk: Chunk) -> None:
        table = arrow().table({name: column.arrow(rows) for name, column in chunk.items()})
        if self.writer is None:
            self.writer = self.opened(arrow().PythonFile(self.file, mode="w"), table.schema, chunk)
        self.writer.write_table(table, rows)  # a chunk stays together

    @abstractmethod
    def opened(self, file: Any, schema: Any, chunk: Chunk) -> Any:
        """The writer of chunks like this one."""

    def finish(self) -> str:
        self.writer.close()
        return super().finish()


class Parquet(ArrowFormat):
    """Parquet with zstd. Long strings and lists of numbers hardly repeat, so only what repeats gets a dictionary."""

    module, purpose = "pyarrow.parquet", "a Parquet file"

    def opened(self, file: Any, schema: Any, chunk: Chunk) -> Any:
        repeating = [name for name, column in chunk.items() if isinstance(column, Same)]
        return self.library.ParquetWriter(
            file, schema, compression="zstd", compression_level=1,
            use_dictionary=repeating, write_statistics=repeating, store_schema=False,
        )  # fmt: skip

    def abandon(self) -> None:
        if self.writer is not None:
            self.writer.is_open = False  # or it would try to write the footer when it is collected
        super().abandon()


class ArrowStream(ArrowFormat):
    """The file inside a data set folder: Arrow's streaming format, one record batch for each chunk."""

    module, purpose = "pyarrow.ipc", "a data set folder"

    def opened(self, file: Any, schema: Any, chunk: Chunk) -> Any:
        return self.library.new_stream(file, schema)


ENDINGS: dict[str, type[Format]] = {".jsonl": JsonLines, ".parquet": Parquet}


def by_ending(path: Path) -> type[Format]:
    """The format that a file's name asks for."""
    if path.suffix.lower() not in ENDINGS:
        raise BadInput(f"{path}: the file should end in {' or '.join(ENDINGS)}")
    return ENDINGS[path.suffix.lower()]


def describe_folder(folder: Path, split: str, sha256: str) -> None:
    """What datasets.load_from_disk wants to find beside the data; it reads the types off the Arrow file itself."""
    state: dict[str, Any] = {
        "_data_files": [{"filename": ARROW_FILE}],
        "_fingerprint": sha256[:16],
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": split,
    }
    info = {"citation": "", "description": "", "homepage": "", "license": ""}
    for name, fields in (("state.json", state), ("dataset_info.json", info)):
        (folder / name).write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
