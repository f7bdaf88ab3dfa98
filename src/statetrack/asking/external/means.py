"""lm-evaluation-harness's means over a selector of groups, such as nc1_groups: each group counts once.

A length that no group was asked about is -1 in the file and in no mean here. A mean belongs to the runs of its tasks:
it stands where they do, under the name that they have, and goes where one of them was asked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from statetrack.asking.external.archive import Unreadable
from statetrack.asking.external.plain import mapping, name
from statetrack.errors import BadInput
from statetrack.results import schema
from statetrack.results.external import ExternalMean, ExternalScores
from statetrack.results.schema import BadRecord
from statetrack.tasks.groups.selectors import SELECTORS


def read(
    data: Mapping[str, Any], scores: Sequence[ExternalScores], generated: str
) -> Iterator[ExternalMean | Unreadable]:
    """The means of our selectors over tasks that were read, `scores`; the ending `generated` may follow their names."""
    found = {each.source.task: each for each in scores}
    for selector, told in mapping(data.get("groups")).items():
        tasks = sorted(set(_tasks(mapping(data.get("group_subtasks")), selector, set())))
        if selector.removesuffix(generated) not in SELECTORS or not isinstance(told, dict):
            continue
        if tasks and all(task in found for task in tasks):
            try:
                yield _mean(selector, told, [found[task] for task in tasks])
            except (BadRecord, BadInput, TypeError) as error:
                yield Unreadable(f"{name(selector)}: {name(str(error))}")


def _tasks(members: Mapping[str, Any], group: str, seen: set[str]) -> Iterator[str]:
    """The tasks of a selector, also of selectors within it."""
    if group in seen:
        return
    seen.add(group)
    inside = members.get(group)
    if not isinstance(inside, list):
        yield group
        return
    for each in inside:
        if isinstance(each, str):
            yield from _tasks(members, each, seen)


def _mean(selector: str, told: Mapping[str, Any], of: Sequence[ExternalScores]) -> ExternalMean:
    values = {key.partition(",")[0]: value for key, value in told.items()}
    asked = sorted({one.length for each in of for one in each.lengths})
    lengths = {length: values.get(str(length)) for length in asked}
    made = schema.read(ExternalMean, {
        "source": schema.plain(of[0].source) | {"task": name(selector)}, "selector": name(selector),
        "model": of[0].model, "how": of[0].how, "tasks": [each.source.task for each in of],
        "accuracy": values.get("acc"), "chance": values.get("chance"),
        "lengths": [{"length": length, "accuracy": value} for length, value in lengths.items()
                    if value not in (-1, None)],
    })  # fmt: skip
    if (why := made.problem()) is not None:
        raise BadRecord(why)
    return made


def named(means: Iterable[ExternalMean], scores: Iterable[ExternalScores]) -> Iterator[ExternalMean | tuple[str, str]]:
    """The means under the names of their runs; of those whose tasks do not all count, the file and why."""
    left = {(each.source.file, each.source.task): each for each in scores}
    for each in means:
        of = [left.get((each.source.file, task)) for task in each.tasks]
        kept = [one for one in of if one is not None]
        if len(kept) == len(of):
            yield each.called(kept[0].model, kept[0].how)
        else:
            yield each.source.file, f"the mean {each.selector} ({len(of) - len(kept)} of its tasks asked again)"
