"""What a training gives back: a record, and the trained model."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from statetrack.errors import BadInput
from statetrack.models import SequenceModel
from statetrack.results import Cell, Store, TrainingRecord
from statetrack.training.weights import load


@dataclass(frozen=True)
class Result:
    """One cell: its record, and the trained model, which is read from its weights when it is first asked for."""

    record: TrainingRecord
    trained: SequenceModel | None = field(default=None, repr=False, compare=False)  # where it is at hand
    store: Store | None = field(default=None, repr=False, compare=False)  # the folder that keeps it
    found: bool = field(default=False, compare=False)  # whether it was there before, and was not trained now

    @cached_property
    def model(self) -> SequenceModel:
        """The trained model. A cell that was there before gives its model back from the weights that were kept; what
        stands in the way, such as a file of your own that has changed since, is said in one line (BadInput).
        """
        if self.trained is not None:
            return self.trained
        if self.store is None:
            raise BadInput(f"the model of {self.cell} is not at hand: its result was kept in no folder")
        return load(self.store, self.cell)

    @property
    def cell(self) -> Cell:
        return self.record.cell

    @property
    def accuracy(self) -> float | None:
        """Over all positions asked for, at the length trained on."""
        return self.record.at_length.accuracy

    @property
    def solved(self) -> bool:
        """At the length trained on, as `OnRows.solved` says it."""
        return self.record.solved

    def to_dict(self) -> dict[str, Any]:
        """Its numbers by name, as `statetrack train --json` prints them."""
        return self.record.flat()
