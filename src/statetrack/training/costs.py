"""How much work a training is, and what one took."""

from __future__ import annotations

from collections.abc import Iterable

from statetrack.results import TrainingRecord
from statetrack.results.cell import STREAM, Cell
from statetrack.results.history import CPU, Measured
from statetrack.training.protocol import Protocol


def rules_of(cell: Cell) -> Protocol:
    """The protocol that a cell is trained by."""
    held = {key: value for key, value in cell.protocol.items() if key != STREAM}
    return Protocol(**held | {"rates": tuple(held["rates"])})


def cost_of(cell: Cell, streams: Iterable[int], words: int | None, numbers: int) -> float:
    """Tokens at most trained on, times the numbers (weights and state) that one of them touches."""
    rules = rules_of(cell)
    steps = rules.check_every * rules.most_checks
    tokens = rules.batch_at(cell.length) * steps * sum(rules.stages(cell.length)) * len(rules.rates)
    return float(tokens + 64 * sum(streams) + (words or 0)) * numbers


def step_of(cell: Cell) -> int:
    """Tokens of its largest step, of one replica."""
    return rules_of(cell).batch_at(cell.length) * cell.length


def what_it_took(record: TrainingRecord) -> Measured:
    """What a training took, with its tests. Of one that was killed and went on, all of it."""
    cell, training = record.cell, record.training
    streams, numbers = [stream.steps for stream in record.streams], training.parameters + (training.state_size or 0)
    seeds = max(1, training.replicas // len(rules_of(cell).rates))
    whole = (training.train_seconds or 0.0) / seeds + (record.evaluation_seconds or 0.0)
    return Measured(
        device=(training.processor or CPU) if training.device == "cpu" else training.device,
        task=cell.task, subject=cell.subject, length=cell.length, siblings=cell.siblings,
        cost=cost_of(cell, streams, 0, numbers),
        seconds=max(record.seconds or 0.0, whole), step=step_of(cell), replicas=training.replicas,
        memory=training.peak_memory,
    )  # fmt: skip
