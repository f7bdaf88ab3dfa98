"""Replies that cost something, each on the disk before the next request: KEY.replies.jsonl beside the record.

An episode's record is written when it ends, is cut off, or fails. What a killed process had been given since stands
here, a line for each reply: its number in the episode, what came, the key of the cell, and a checksum
(`results/replies.py`). A line that is not whole ends the journal; what stands behind it was paid for too, and is set
aside before anything is written. As soon as the record holds the replies, the journal goes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from statetrack.asking.episode import Reply
from statetrack.errors import BadInput
from statetrack.files import read_bounded
from statetrack.results import replies, schema
from statetrack.results.cell import Cell
from statetrack.results.records import MOST_TOKENS
from statetrack.results.schema import BadRecord
from statetrack.results.store import Store


class Journal:
    """The replies of one episode that its record may not hold yet."""

    def __init__(self, store: Store, cell: Cell) -> None:
        self.path: Path = store.path(cell, replies.ENDING)
        self.key = cell.key
        self._ends: dict[int, int] | None = None  # where the line of each number ends

    def mended(self) -> Path | None:
        """Set a damaged journal aside, and keep the lines up to the damage; gives where all of it lies now. A last line
        that is not whole is no damage: its writer was killed.
        """
        whole = b"".join(line for _, _, line in self._lines())
        try:
            rest = read_bounded(self.path, replies.MOST_BYTES)[len(whole) :]
        except FileNotFoundError:
            return None
        except OSError:
            return replies.set_aside(self.path)
        return replies.set_aside(self.path, whole) if b"\n" in rest else None

    def append(self, number: int, reply: Reply) -> None:
        """Keep the reply with this number, counted from 0. What stands behind the one before it goes."""
        if self._ends is None:
            self._ends, size = {}, 0
            for before, _, line in self._lines():
                size += len(line)
                self._ends[before] = size
        begin = self._ends.get(number - 1, 0)
        try:
            with self.path.open("r+b" if self.path.exists() else "wb") as file:
                file.truncate(begin)  # a line that is not whole, or another try at this turn
                file.seek(begin)
                file.write(replies.write_line(number, asdict(reply), self.key))
                file.flush()
                os.fsync(file.fileno())
                self._ends[number] = file.tell()
        except OSError as error:
            raise BadInput(f"{self.path} cannot be written: {error.strerror or error}") from error

    def replies(self, begin: int) -> list[Reply]:
        """The replies from this number on, without a gap."""
        kept = {number: reply for number, reply, _ in self._lines()}
        there: list[Reply] = []
        while begin + len(there) in kept:
            there.append(kept[begin + len(there)])
        return there

    def clear(self) -> None:
        """Once the record holds them."""
        self.path.unlink(missing_ok=True)
        self._ends = None

    def _lines(self) -> Iterator[tuple[int, Reply, bytes]]:
        """Number, reply and bytes of every line up to the first that is not whole."""
        for line in replies.lines(self.path):
            try:
                reply = schema.read(Reply, line.reply)
            except BadRecord:
                return
            if reply.failure or not all(0 <= count <= MOST_TOKENS for count in reply.tokens.to_dict().values()):
                return
            yield line.number, reply, line.data
