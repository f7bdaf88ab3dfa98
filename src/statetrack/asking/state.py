"""The state of a task in words, for the solver that is shown it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from statetrack.tasks import Task


def state_text(task: Task, seen: Sequence[int]) -> str:
    """The state after these inputs: the sorted list for a median, the counts in first-seen order for the mode.

    >>> from statetrack.tasks import task
    >>> state_text(task("track_the_stat.median"), [85, 63, 51]), state_text(task("track_the_stat.mode"), [7, 3, 7])
    ('[51, 63, 85]', '{7: 2, 3: 1}')
    """
    if task.base_name == "track_the_stat.median":
        return str(sorted(map(int, seen)))
    if task.base_name == "track_the_stat.mode":
        return str(dict(Counter(map(int, seen))))
    state = task.start()
    for symbol in seen:
        state = task.step(state, symbol)
    return str(state)
