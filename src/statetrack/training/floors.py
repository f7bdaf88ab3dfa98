"""What a guess scores, set beside what a network did on rows."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

from statetrack.results.evaluations import END, Evaluation, OnRows
from statetrack.tasks import Task
from statetrack.theory import Floors, floors
from statetrack.theory.floors import strategies
from statetrack.training import metrics

CHEAP = 4096  # positions up to which the floor of a longer row is worth its time
CHEAP_END = 2048  # the same for that of the last positions alone, which hardly changes further out


def with_floors(the_task: Task, found: Evaluation, trained: int) -> Evaluation:
    """By position at the length trained on, on average at others."""
    if not isinstance(found, OnRows):
        return found
    known = floors_of(the_task, trained)
    if found.length != trained:
        cheap = known["position"].exact and found.length <= CHEAP
        return replace(found, floor=_average(the_task, found.length)) if cheap else found
    by_position = [None if math.isnan(value) else value for value in known["position"].by_position.tolist()]
    assert found.accuracy_by_position is not None
    return replace(
        found,
        floor=_average(the_task, trained),
        floor_exact=known["position"].exact,
        floors={floor.name: floor.average for floor in known.floors},
        floor_by_position=by_position,
        skill_by_position=metrics.skill(found.accuracy_by_position, by_position),
    )


def end_floor(the_task: Task, trained: int, length: int) -> float | None:
    """What a guess scores over the last positions of rows of a length, where that is known exactly."""
    if not floors_of(the_task, trained)["position"].exact:
        return None
    return strategies.end_floor(the_task, min(length, CHEAP_END), END)


def _average(the_task: Task, length: int) -> float | None:
    average = floors_of(the_task, length)["position"].average
    return average if math.isfinite(average) else None


@functools.lru_cache(maxsize=64)
def floors_of(the_task: Task, length: int) -> Floors:
    """What guesses score: for the record those that look at no more than the present input."""
    return floors(the_task, length, window=1)
