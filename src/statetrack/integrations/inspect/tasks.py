"""What is asked, for `inspect eval statetrack/...`. A bad parameter is refused in one line.

Parameters that a task does not explain are rules, which `statetrack.asking.Rules` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

from inspect_ai import Task, task
from inspect_ai.model import GenerateConfig

from statetrack.asking import Rules
from statetrack.asking.dialogue import default_length
from statetrack.errors import BadInput, unknown
from statetrack.integrations.inspect.failures import said_in_one_line
from statetrack.integrations.inspect.samples import dataset, rules, whole_number, words
from statetrack.integrations.inspect.scorer import answer, by_length, episode, episodes
from statetrack.integrations.inspect.solvers import implicit
from statetrack.tasks import Task as Machine
from statetrack.tasks import task as find_task
from statetrack.tasks.groups.task import GroupTask

VARIANTS = ("median", "mode")
LENGTHS = "5,10,20,50,100,200,500"
LONGEST = 10_000  # inputs in a sequence: no model holds more
VERSION = "1"
"""Raised whenever a change makes results incomparable with those before it."""


@task
def track_the_stat(
    variant: str = "mode",
    samples: int = 250,
    turns: int = 300,
    compat: bool = Rules.compat,
    regime: str = Rules.regime,
    keep_reasoning: bool = Rules.keep_reasoning,
    history: str = Rules.history,
    every: int = Rules.every,
    distractors: str | Sequence[str] = "",
    parser: str = Rules.parser,
    room: int = Rules.room,
    prompt: str = "",
    **more: Any,
) -> Task:
    """The running median or mode of a stream of integers, one per turn, until the first wrong reply.

    Args:
        variant: median or mode.
        samples: How many streams; sample i is the original's seed i - 1.
        turns: Integers in a stream.
        compat: By the original's rules: its prompt in our words, replies of any length, a perfect episode has 299.
        prompt: A file with a prompt of your own.
    """
    with said_in_one_line():
        _no_more(more, track_the_stat)
        if variant not in VARIANTS:
            raise unknown("variant", str(variant), VARIANTS)
        how = rules(locals())
        length = whole_number("turns", turns, most=LONGEST)
        rows = [(number, length) for number in range(whole_number("samples", samples))]
        return _task(find_task(f"track_the_stat.{variant}"), how, rows)


@task
def permutation_composition(
    group: str = "s5",
    lengths: str | int | Sequence[int] = LENGTHS,
    per_length: int = 20,
    style: str = Rules.style,
    shots: int = Rules.shots,
    relabel: int | None = Rules.relabel,
    regime: str = Rules.regime,
    parser: str = Rules.parser,
    room: int = Rules.room,
    prompt: str = "",
    **more: Any,
) -> Task:
    """The product of a sequence of permutations, the whole sequence in one prompt.

    Args:
        group: Any permutation group of statetrack's, such as s5, a5 or psl2_7.
        lengths: How long the sequences are, in the order in which `--limit` takes them.
        per_length: Sequences of each length.
        prompt: A file with a prompt of your own.
    """
    with said_in_one_line():
        _no_more(more, permutation_composition)
        how = rules(locals() | {"way": "whole"})
        over = "[over=generators]" if style == "generators" and "[" not in str(group) else ""
        chosen = find_task(f"{group}{over}")
        if not isinstance(chosen, GroupTask):
            raise BadInput(f"group {group} is the task {chosen.name}; ask that with statetrack/ask -T task={group}")
        asked = [_length(text) for text in words(lengths)]
        if not asked:
            raise BadInput("lengths should name at least one length, as in lengths=5,10,20")
        count = whole_number("per_length", per_length)
        rows = list(enumerate(asked * count))  # every length once, then again: `--limit N` covers them evenly
        return _task(chosen, how, rows)


@task
def ask(
    task: str = "txc",
    way: str = Rules.way,
    samples: int = 20,
    length: int | None = None,
    compat: bool = Rules.compat,
    style: str = Rules.style,
    shots: int = Rules.shots,
    relabel: int | None = Rules.relabel,
    regime: str = Rules.regime,
    keep_reasoning: bool = Rules.keep_reasoning,
    history: str = Rules.history,
    every: int = Rules.every,
    distractors: str | Sequence[str] = "",
    parser: str = Rules.parser,
    room: int = Rules.room,
    prompt: str = "",
    **more: Any,
) -> Task:
    """Any task of statetrack's, turn by turn or whole.

    Args:
        task: A task's text, such as txc, fsm[k=5] or mine.py:Mine; `statetrack list tasks` names those that are there.
        samples: How many sequences.
        length: Inputs in a sequence; 300 turn by turn and 20 whole where none is given.
        compat: By the rules of Track the Stat's original, for its two tasks.
        prompt: A file with a prompt of your own.
    """
    with said_in_one_line():
        _no_more(more, ask)
        how = rules(locals())
        inputs = default_length(how) if length is None else _length(length)
        rows = [(number, inputs) for number in range(whole_number("samples", samples))]
        return _task(find_task(str(task)), how, rows)


def _task(machine: Machine, how: Rules, rows: list[tuple[int, int]]) -> Task:
    whole = how.way == "whole"
    return Task(
        dataset=dataset(machine, how, rows, machine.name),
        solver=implicit(),
        scorer=answer() if whole else episode(how.compat),
        metrics=[by_length() if whole else episodes(how.compat)],
        config=GenerateConfig(max_tokens=how.most_tokens),
        version=VERSION,
        metadata={"task": machine.name, "rules": how.to_dict()},
    )


def _no_more(more: dict[str, Any], task: Callable[..., Task]) -> None:
    """Inspect passes on whatever `-T` names; otherwise a misspelt name would leave its parameter at the default."""
    names = [name for name in signature(task).parameters if name != "more"]
    for name in more:
        raise unknown("parameter", name, names)


def _length(value: Any) -> int:
    return whole_number("length", int(value) if isinstance(value, str) and value.isdecimal() else value, most=LONGEST)
