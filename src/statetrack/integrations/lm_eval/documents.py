"""The rows that are asked, in an order in which every beginning covers the lengths evenly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, overload

from statetrack.integrations.lm_eval.definitions import LENGTHS
from statetrack.tasks.groups.task import GroupTask

Document = dict[str, Any]
"""A row in the published schema: input_sequence, target, sequence_length; and `row`, its place in this order."""


def spread(lengths: Iterable[int]) -> list[int]:
    """The lengths in an order in which any first few lie evenly among all: place by place, with the bits reversed.

    >>> spread(range(5, 45, 5))
    [5, 25, 15, 35, 10, 30, 20, 40]
    """
    ordered = sorted(lengths)
    bits = (len(ordered) - 1).bit_length()
    return [ordered[place] for place in sorted(range(len(ordered)), key=lambda place: f"{place:0{bits}b}"[::-1])]


def document(row: int, ids: Sequence[int], target: int) -> Document:
    sequence = " ".join(map(str, ids))
    return {"row": row, "input_sequence": sequence, "target": str(target), "sequence_length": len(ids)}


class Generated(Sequence[Document]):
    """Rows of the test split, each drawn when it is first asked for: `--limit 2` costs two rows.

    Round by round, each with one row of every length: document 100 r + i is row r of the i-th length's data. Fewer
    `lengths` have the same rows.
    """

    def __init__(self, task: GroupTask, per_length: int, seed: int, lengths: Sequence[int] = LENGTHS) -> None:
        self.task, self.per_length, self.seed = task, per_length, seed
        self.lengths = spread(lengths)
        self._drawn: dict[int, Document] = {}  # the harness comes twice: for the requests, and for the results

    def __len__(self) -> int:
        return self.per_length * len(self.lengths)

    @overload
    def __getitem__(self, place: int) -> Document: ...
    @overload
    def __getitem__(self, place: slice) -> list[Document]: ...
    def __getitem__(self, place: int | slice) -> Document | list[Document]:
        if isinstance(place, slice):
            return [self[index] for index in range(len(self))[place]]
        row = range(len(self))[place]
        if row not in self._drawn:
            turn, which = divmod(row, len(self.lengths))
            batch = self.task.sample(self.lengths[which], 1, seed=self.seed, split="test", first=turn)
            self._drawn[row] = document(row, batch.inputs[0].tolist(), int(batch.targets[0, -1]))
        return self._drawn[row]
