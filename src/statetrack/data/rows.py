"""The rows of a task as columns, chunk by chunk.

A data set's row i of length L is row i of `task.sample(L, ..., seed, split)`. Groups have the published columns,
tasks over plain numbers `seed`, `numbers` and `answers`, every other task `inputs` and `targets`.

Their `seed` is what makes the row again: in the split "original" the row's own sample seed, elsewhere the data
set's seed, with the row's number in it as `row`. Where no answer is asked for, a list of answers holds null.

The published columns of a group have the last answer alone. With `prefixes` a column `targets` holds the answer after
every input.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from statetrack.data.columns import Codebook, Column, Joined, Listed, Same, Whole
from statetrack.data.lengths import Lengths
from statetrack.data.text import Starts
from statetrack.errors import BadInput
from statetrack.tasks.base import Ints, Task, check_seed
from statetrack.tasks.groups import Group, family
from statetrack.tasks.groups.task import GroupTask

CONVENTIONS = ("mathematical", "published")
ORIGINAL = "original"
CHUNK_VALUES = 1 << 21  # inputs in memory at once, unless one row has more
CHUNK_ROWS = 1 << 15
BATCH_ROWS = 256  # rows of similar length that are drawn and answered together

Chunk = dict[str, Column]


@dataclass(frozen=True)
class DataRequest:
    """A data set that is asked for: equal requests give equal bytes."""

    task: Task
    lengths: Lengths
    count: int
    seed: int = 0
    split: str = "train"
    convention: str = "mathematical"
    prefixes: bool = False

    def __post_init__(self) -> None:
        if self.count < 1 or self.seed < 0:
            raise BadInput(f"count {self.count} should be at least 1, seed {self.seed} not negative")
        # a row of the original has a seed of its own: the data set's plus the row's number
        check_seed(self.seed + (self.count if self.split == ORIGINAL else 0), self.count)
        if self.split not in self.task.splits:
            raise BadInput(f"split {self.split!r} of {self.task.name} should be one of {', '.join(self.task.splits)}")
        if self.convention not in CONVENTIONS:
            raise BadInput(f"convention {self.convention!r} should be one of {', '.join(CONVENTIONS)}")
        if self.convention != "mathematical" and self.group is None:
            raise BadInput(f"convention {self.convention!r} is for groups, and {self.task.name} is not one")
        if self.prefixes and self.group is None:
            raise BadInput(f"prefixes are for groups; the rows of {self.task.name} hold all of their answers anyway")
        if self.prefixes and self.task.ask == "end":
            raise BadInput(f"{self.task.name} asks at the end alone, and prefixes hold every answer")

    @property
    def group(self) -> Group | None:
        return self.task.group_object if isinstance(self.task, GroupTask) else None

    def chunks(self) -> Iterator[tuple[int, Chunk]]:
        """All rows, in order: how many, and their columns."""
        rows = max(1, min(CHUNK_ROWS, CHUNK_VALUES // self.lengths.longest))
        for first in range(0, self.count, rows):
            indices = np.arange(first, min(first + rows, self.count))
            yield len(indices), self.columns(indices)

    def columns(self, indices: NDArray[np.int64]) -> Chunk:
        """The columns of these rows."""
        lengths = self.lengths.of(self.task, self.seed, self.split, indices)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        inputs = np.empty(starts[-1], np.int32)
        targets = np.empty(starts[-1], np.int32)
        for batch in _by_length(lengths):
            drawn = self.task.rows(lengths[batch], indices[batch], self.seed, self.split)
            _put(inputs, starts, batch, drawn)
            if self.group and not self.prefixes:
                targets[starts[batch + 1] - 1] = self._products(drawn, lengths[batch])
            else:
                answers = self._prefix_products(drawn) if self.group else self._answers(drawn, lengths[batch])
                _put(targets, starts, batch, answers)
        if self.group:
            return self._group_columns(inputs, starts, targets, lengths)
        return self._stream_columns(indices, inputs, starts, targets) if self.task.numbers else {
            "inputs": Listed(self._inputs, inputs, starts), "targets": Listed(self._targets, targets, starts)
        }  # fmt: skip

    def _products(self, drawn: Ints, lengths: NDArray[np.int64]) -> Ints:
        """p_n ∘ ... ∘ p_1 of each row; the published p_1 ∘ ... ∘ p_n is the same of the row read backwards."""
        if self.convention == "published":
            backwards = np.maximum(lengths[:, None] - 1 - np.arange(drawn.shape[1]), 0)
            drawn = np.take_along_axis(drawn, backwards, axis=1)
        products: Ints = self.task.run(drawn).targets[np.arange(len(drawn)), lengths - 1]
        return products

    def _prefix_products(self, drawn: Ints) -> Ints:
        """The product after every input; the published one grows at its other end, p_1 ∘ ... ∘ p_t."""
        if self.convention == "mathematical":
            return self.task.run(drawn).targets
        assert self.group is not None
        products = np.empty_like(drawn)
        so_far = np.zeros(len(drawn), np.int32)
        for t, element in enumerate(drawn.T):
            products[:, t] = so_far = self.group.then(element, so_far)
        return products

    def _answers(self, drawn: Ints, lengths: NDArray[np.int64]) -> Ints:
        """The class after every input, or the code of the gap where none is asked for."""
        run = self.task.run(drawn)
        asked = run.defined
        if self.task.ask == "end":
            asked = asked & (np.arange(drawn.shape[1]) == lengths[:, None] - 1)
        return np.where(asked, run.targets, np.int32(self.task.outputs))

    def _group_columns(self, inputs: Ints, starts: Starts, targets: Ints, lengths: NDArray[np.int64]) -> Chunk:
        assert isinstance(self.task, GroupTask)
        every: Chunk = {"targets": Listed(self._inputs, targets, starts)} if self.prefixes else {}
        last = targets[starts[1:] - 1]
        return {
            "input_sequence": Joined(self._inputs, inputs, starts),
            "target": Joined(self._inputs, last, np.arange(len(last) + 1)),
            "sequence_length": Whole(lengths),
            "group_degree": Same(self.task.group_object.degree),
            "group_order": Same(self.task.group_object.order),
            "group_type": Same(family(self.task.group)),
            **every,
        }

    def _stream_columns(self, indices: NDArray[np.int64], inputs: Ints, starts: Starts, targets: Ints) -> Chunk:
        origin: Chunk = {"seed": Same(self.seed), "row": Whole(indices)}
        if self.split == ORIGINAL:
            origin = {"seed": Whole(self.seed + indices)}
        answers = Listed(self._targets, targets, starts)
        return origin | {"numbers": Listed(self._inputs, inputs, starts), "answers": answers}

    @cached_property
    def _inputs(self) -> Codebook:
        return Codebook(np.arange(self.task.inputs, dtype=np.int32))

    @cached_property
    def _targets(self) -> Codebook:
        classes = np.arange(self.task.outputs, dtype=np.int32)
        return Codebook(self.task.value(classes) if self.task.numbers else classes, gaps=True)


def _by_length(lengths: NDArray[np.int64]) -> Iterator[NDArray[np.intp]]:
    """The rows in batches of similar length, so that little is drawn past a row's end."""
    order = np.argsort(lengths, kind="stable")
    for first in range(0, len(order), BATCH_ROWS):
        yield order[first : first + BATCH_ROWS]


def _put(flat: Ints, starts: Starts, batch: NDArray[np.intp], padded: Ints) -> None:
    """Copy padded rows, each up to its own end, to their places in the flat array of all rows."""
    for begin, end, row in zip(starts[batch].tolist(), starts[batch + 1].tolist(), padded):
        flat[begin:end] = row[: end - begin]
