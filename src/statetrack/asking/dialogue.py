"""A sample as a dialogue: what is said at every turn, and the answer that is due.

Distractors change what is said, and the answers with it: two tagged streams side by side, inputs that are taken back,
remarks between them, numbers in words. They are drawn from the sample's number, so a sample is the same for everyone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from statetrack.asking import prompts
from statetrack.asking.answers import Form
from statetrack.asking.rules import Rules
from statetrack.asking.wording import Wording, wording
from statetrack.errors import BadInput
from statetrack.tasks import Batch, Task

ORIGINAL = "original"
TURNS, WHOLE = 300, 20  # the length of a sample where none is given
MOST_TURNS = 4096  # each sends all before it again, so that the tokens grow with the square
MOST_WHOLE = 2**17  # inputs of one prompt: no context holds more
CHATTER_RATE, RETRACTION_RATE = 0.25, 0.2
TAKE_BACK = "Take back the last input."
REMARKS = (
    "The library closes at nine tonight.",
    "I had soup for lunch.",
    "It looks like rain again.",
    "My neighbour is learning the cello.",
    "The train was late, as always.",
    "Somebody left an umbrella in the hall.",
)


@dataclass(frozen=True)
class Turn:
    """One message of the stream. `seen` are the inputs that count for the answer: of a row, which turns share, so many
    as come first. Without a target nothing is asked.
    """

    text: str
    target: int | None
    row: Sequence[int]
    count: int

    @property
    def seen(self) -> Sequence[int]:
        return self.row[: self.count]


@dataclass(frozen=True)
class Dialogue:
    """One sample of a task under some rules."""

    task: Task
    rules: Rules
    sample: int
    system: str
    turns: list[Turn]
    wording: Wording
    form: Form = field(repr=False)

    @cached_property
    def asked(self) -> int:
        """The number of turns at which an answer is due."""
        return sum(turn.target is not None for turn in self.turns)

    def reply(self, turn: Turn) -> str:
        """The canonical reply."""
        assert turn.target is not None
        return self.form.write(self.wording.answer(turn.target))

    def state_message(self, turn: Turn) -> str:
        """What a solver that is shown the state sees at a turn."""
        return prompts.state_message(self.wording, self.rules, turn.seen)


def default_length(rules: Rules) -> int:
    return TURNS if rules.way == "turns" else WHOLE


def length_of(rules: Rules, length: int | None) -> int:
    """The inputs of a sample. More than can be asked are refused (BadInput)."""
    steps = default_length(rules) if length is None else length
    most, what = (MOST_TURNS, "inputs in turns") if rules.way == "turns" else (MOST_WHOLE, "inputs of one prompt")
    if steps > most:
        raise BadInput(f"length {steps} is more than the {most} {what} that can be asked")
    return steps


def dialogue(task: Task, rules: Rules, sample: int, length: int | None = None) -> Dialogue:
    """The dialogue of one sample: of Track the Stat's own stream of that seed, elsewhere of a row of the test split.

    >>> from statetrack.tasks import task
    >>> first = dialogue(task("track_the_stat.median"), Rules(), sample=0, length=4)
    >>> [(turn.text, first.reply(turn)) for turn in first.turns][1:3]
    [('63', '[median: 74]'), ('51', '[median: 63]')]
    """
    steps = length_of(rules, length)
    _check(task, rules)
    split = ORIGINAL if ORIGINAL in task.splits else "test"
    batch = task.sample(steps, 1, seed=0, split=split, first=sample)
    row: list[int] = batch.inputs[0].tolist()
    said = wording(task, rules)
    if rules.way == "whole":
        asked = prompts.question(task, row, rules, seed=sample)
        row = prompts.answerable(task, row)
        if not task.batch([row]).mask[0, -1]:
            raise BadInput(f"{task.name} asks nothing in {steps} inputs; choose a longer length")
        turns = [Turn(asked.prompt, int(task.targets([row])[0, -1]), row, len(row))]
        return Dialogue(task, rules, sample, "", turns, said, asked.form)
    turns = list(_turns(task, rules, said, batch, sample))
    if not any(turn.target is not None for turn in turns):
        raise BadInput(f"{task.name} asks nothing in {steps} turns; choose a longer length")
    return Dialogue(task, rules, sample, prompts.description(task, rules, row), turns, said, said.form)


@lru_cache(maxsize=256)
def _check(task: Task, rules: Rules) -> None:
    """What is said is checked once for all samples."""
    prompts.check(task, rules)


def _turns(task: Task, rules: Rules, said: Wording, batch: Batch, sample: int) -> Iterator[Turn]:
    plain = not {"streams", "retractions"} & set(rules.distractors)
    steps = _plain(batch, said) if plain else _disturbed(task, rules, batch.inputs[0].tolist(), said, sample)
    chance = np.random.default_rng([1, sample])
    askable = 0
    for turn in steps:
        text = spelled(turn.text) if "words" in rules.distractors else turn.text
        if "chatter" in rules.distractors and chance.random() < CHATTER_RATE:
            before = (turn.count - 1) // task.per_turn * task.per_turn  # inputs, all but those of this turn
            yield Turn(REMARKS[int(chance.integers(len(REMARKS)))], None, turn.row, before)
        if rules.every == 1:
            yield Turn(text, turn.target, turn.row, turn.count)
        else:
            askable += turn.target is not None
            asked = turn.target is not None and askable % rules.every == 0
            yield Turn(f"{text}?" if asked else text, turn.target if asked else None, turn.row, turn.count)


def _plain(batch: Batch, said: Wording) -> Iterator[Turn]:
    row, targets, asked = (part[0].tolist() for part in (batch.inputs, batch.targets, batch.mask))
    end = 0
    for inputs in _messages(row, said.task):
        end += len(inputs)
        yield Turn(said.message(inputs), targets[end - 1] if asked[end - 1] else None, row, end)


def _messages(row: list[int], task: Task) -> list[list[int]]:
    """The inputs of each turn."""
    return [row[begin : begin + task.per_turn] for begin in range(0, len(row), task.per_turn)]


def _disturbed(task: Task, rules: Rules, row: list[int], said: Wording, sample: int) -> Iterator[Turn]:
    """As many turns as the row has, on one stream or on two, with inputs that are taken back."""
    streams = {"A": row}
    if "streams" in rules.distractors:
        streams["B"] = task.sample(len(row), 1, seed=0, split="validation", first=sample).inputs[0].tolist()
    left = {name: iter(_messages(numbers, task)) for name, numbers in streams.items()}
    seen: dict[str, list[list[int]]] = {name: [] for name in streams}
    inputs: dict[str, list[int]] = {name: [] for name in streams}
    chance = np.random.default_rng([0, sample])
    for _ in _messages(row, task):
        name = "AB"[int(chance.integers(len(streams)))]
        tag = f"{name}: " if len(streams) > 1 else ""
        back = "retractions" in rules.distractors and chance.random() < RETRACTION_RATE and len(seen[name]) > 1
        if back:
            inputs[name] = inputs[name][: -len(seen[name].pop())]
        else:
            seen[name].append(next(left[name]))
            inputs[name].extend(seen[name][-1])  # of turns before, the first so many count as ever
        batch = task.batch([inputs[name]])
        target = int(batch.targets[0, -1]) if batch.mask[0, -1] else None
        text = tag + (TAKE_BACK if back else said.message(seen[name][-1]))
        yield Turn(text, target, inputs[name], len(inputs[name]))


_SMALL = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def spelled(text: str) -> str:
    """The whole numbers of a text in words.

    >>> spelled("A: 85"), spelled("set b to 0"), spelled("1240")
    ('A: eighty-five', 'set b to zero', 'one thousand two hundred forty')
    """
    return re.sub(r"[0-9]+", lambda digits: _in_words(int(digits[0])), text)


def _in_words(number: int) -> str:
    if number < 20:
        return _SMALL[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return _TENS[tens - 2] + (f"-{_SMALL[ones]}" if ones else "")
    unit, word = (100, "hundred") if number < 1000 else (1000, "thousand")
    many, rest = divmod(number, unit)
    return f"{_in_words(many)} {word}" + (f" {_in_words(rest)}" if rest else "")
