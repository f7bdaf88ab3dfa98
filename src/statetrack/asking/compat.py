"""Track the Stat as the original puts it: what its prompt says and leaves out, and how it shows the state.

The sentences are our own. In the prompt stand, in this order: what is shown and asked, the case that this leaves open,
an example of six steps with a remark at each, the form of an answer. It does not say which numbers there are, nor that
nothing else is to be written. The message with the state says what it is and names the data. `templates.py` takes the
original's own text, for those who have it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from statetrack.asking.wording import Wording
from statetrack.errors import BadInput
from statetrack.tasks import Task
from statetrack.tasks.original import OriginalWords

SHOWN = "Here is the current state, to help you with the task."


def words(task: Task) -> OriginalWords:
    """What the original says of a task; one that comes from elsewhere is refused."""
    if task.original is None:
        raise BadInput(f"compat is for track_the_stat.median and track_the_stat.mode; {task.name} has no original")
    return task.original


def about(said: Wording) -> str:
    told = words(said.task)
    return f"{told.about}\n\n{told.note}"


def example(said: Wording) -> str:
    """The example worked out, with a remark behind every answer."""
    task, remarks = said.task, words(said.task).remarks
    row = task.example or ()
    answers = task.batch(np.asarray([row])).targets[0].tolist()
    steps = [
        f"input: {said.symbol(symbol)}\nanswer: {said.form.write(said.answer(answer))}  # {remark}"
        for symbol, answer, remark in zip(row, answers, remarks, strict=True)
    ]
    return "This is an example of how it may go:\n\n" + "\n\n".join(steps)


def form(said: Wording) -> str:
    shape = f"[{said.tag}: <answer>]"
    return f"Write each answer as {shape}, with its brackets, as in the example. The first number comes now."


def state_message(said: Wording, seen: Sequence[int]) -> str:
    """The state with its announcement and its name.

    >>> from statetrack.asking import Rules
    >>> from statetrack.asking.wording import wording
    >>> from statetrack.tasks import task
    >>> print(state_message(wording(task("track_the_stat.median"), Rules()), [85, 63]))
    Here is the current state, to help you with the task.
    All numbers shown so far, sorted:
    [63, 85]
    """
    return f"{SHOWN}\n{words(said.task).state}:\n{said.state(seen)}"
