"""A dialogue of `statetrack.asking` as a sample of Inspect's, and back.

A sample's metadata name the dialogue completely, so any solver can play any task.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from inspect_ai.dataset import MemoryDataset, Sample

from statetrack import spec
from statetrack.asking import Dialogue, Episode, Rules, dialogue, templates
from statetrack.errors import BadInput
from statetrack.integrations.inspect.replies import MessageHistory
from statetrack.tasks import Task, trusted_task

MOST_SAMPLES = 1_000_000


def whole_number(name: str, value: Any, least: int = 1, most: int = MOST_SAMPLES) -> int:
    """A parameter of the command line that counts something."""
    number: int = spec.typed(value, int, name)
    if not least <= number <= most:
        raise BadInput(f"{name}={number} should lie in {least}..{most}")
    return number


def words(value: Any) -> list[Any]:
    """A parameter that lists things: Inspect splits `-T name=a,b` and leaves `-T name=a` as it is.

    >>> words("chatter, words"), words(["chatter"]), words(5), words(None)
    (['chatter', 'words'], ['chatter'], [5], [])
    """
    if value is None or value == "":
        return []
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    return list(value) if isinstance(value, list | tuple) else [value]


def rules(given: dict[str, Any]) -> Rules:
    """The rules among parameters from the command line; `prompt` names a file there."""
    prompt = given.get("prompt")
    text = templates.read(spec.typed(prompt, str, "prompt")) if prompt else ""
    return Rules.among(given | {"distractors": words(given.get("distractors")), "prompt": text})


def dataset(task: Task, how: Rules, rows: Iterable[tuple[int, int | None]], name: str) -> MemoryDataset:
    """The samples of some rows (number, length), in their order."""
    return MemoryDataset([_sample(dialogue(task, how, number, length), length) for number, length in rows], name=name)


def _sample(asked: Dialogue, length: int | None) -> Sample:
    whole = asked.rules.way == "whole"
    request = Episode(asked).request()
    assert request is not None
    return Sample(
        id=asked.sample + 1,  # Inspect counts samples from 1
        input=MessageHistory().of(request.messages),
        target=asked.reply(asked.turns[0]) if whole else str(asked.asked),
        metadata={
            "task": asked.task.name,
            "rules": asked.rules.to_dict(),
            "sample": asked.sample,
            "length": length,
            "chance": 1 / asked.task.outputs,
        },
    )


def dialogue_of(metadata: dict[str, Any]) -> Dialogue:
    """The dialogue of a sample's metadata."""
    if not {"task", "rules", "sample", "length"} <= metadata.keys():
        raise BadInput("this solver plays statetrack's tasks only (statetrack/track_the_stat, statetrack/ask, ...)")
    how = Rules.of_protocol(metadata["rules"])
    return dialogue(trusted_task(metadata["task"]), how, metadata["sample"], metadata["length"])
