"""The texts that a model sees: a description for a dialogue, or one prompt with the whole sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from statetrack.asking.answers import Form
from statetrack.asking.rules import Rules
from statetrack.asking.wording import GroupWording, Wording, wording
from statetrack.tasks import Task
from statetrack.tasks.groups import usual_name
from statetrack.tasks.groups.task import GroupTask

EXAMPLE_LENGTH = 6
SHOT_LENGTH = 5
OK = "[ok]"

SEED_PROMPT = """\
You are given a sequence of permutations from the group {group}, identified by their integer IDs. Your task is to \
compute their composed product.

The composition must be performed sequentially from right to left, following the standard mathematical convention \
(p_n ∘ ... ∘ p_2 ∘ p_1).

{examples}Sequence: {sequence}

Question: What is the single integer ID of the final composed permutation? Your response must be only the integer.

Answer:"""


@dataclass(frozen=True)
class Question:
    """One prompt with the whole sequence; the target follows after one space."""

    prompt: str
    target: str
    form: Form


def description(task: Task, rules: Rules, row: Sequence[int] = ()) -> str:
    """The system message of a dialogue: the task, the format, what else may come, an example worked out."""
    said = wording(task, rules)
    parts = [
        f"{task.opening} {said.about(list(row))}",
        _format(said, rules),
        *_distractors(rules),
        _example(said, rules),
    ]
    return "\n\n".join(part for part in parts if part)


def _format(said: Wording, rules: Rules) -> str:
    shape = f"[{said.tag}: <answer>]"
    when = "Reply to every message" if rules.every == 1 else "When a message ends with a question mark, reply"
    text = (
        f"{when} in exactly this format: {shape} - square brackets, the word {said.tag}, a colon, one space and the"
        " answer."
    )
    if rules.every > 1:
        text += f" Acknowledge every other message with {OK}."
    elif OK in _example(said, rules):
        text += f" Acknowledge a message after which nothing is asked with {OK}."
    if rules.thinking:
        return f"{text} You may reason first; the last {shape} in your reply counts."
    return f"{text} Write nothing else: no reasoning, no explanation."


def _distractors(rules: Rules) -> list[str]:
    """What the distractors mean, as far as they are in use."""
    meanings = {
        "chatter": f"Some messages are unrelated remarks without an input; acknowledge them with {OK}, they change"
        " nothing.",
        "streams": "Two streams, A and B, are interleaved; each input is tagged with its stream, as in 'A: ...'. Keep"
        " them apart, and answer for the stream of the newest input only.",
        "words": "Numbers in the inputs are written in words; write your answers in digits.",
        "retractions": "The message 'Take back the last input.' removes the newest input that has not been taken back,"
        " as if it had never been shown; answer for what is left.",
    }
    return [meanings[name] for name in meanings if name in rules.distractors]


@lru_cache(maxsize=256)  # samples of one task share it
def example_row(said: Wording) -> tuple[int, ...]:
    """The inputs of the example: the task's own, else six of a row of the training split."""
    return said.task.example or tuple(said.task.sample(EXAMPLE_LENGTH, 1, seed=0, split="train").inputs[0].tolist())


@lru_cache(maxsize=256)
def _example(said: Wording, rules: Rules) -> str:
    if isinstance(said, GroupWording) and said.style in ("table", "generators"):
        return ""  # the example's permutations would have to be in the table, and the table is the row's
    row = example_row(said)
    batch = said.task.batch(np.asarray([row]))
    lines = []
    for symbol, target, asked in zip(row, batch.targets[0].tolist(), batch.mask[0].tolist()):
        reply = said.form.write(said.answer(target)) if asked else OK
        lines.append(f"Input: {said.symbol(symbol)}\nReply: {reply}")
    where = "a single plain stream in which every input is asked about" if rules.distractors or rules.every > 1 else ""
    return f"Example{f' ({where})' if where else ''}:\n" + "\n".join(lines)


def question(task: Task, row: Sequence[int], rules: Rules, seed: int = 0) -> Question:
    """The prompt for a whole row, and its answer.

    Over a group in the style `ids` it is the permutation benchmark's own prompt. `seed` draws the worked examples.
    """
    said = wording(task, rules)
    row = answerable(task, row)
    shots = _shots(said, rules, seed)
    target = said.answer(int(task.targets([row])[0, -1]))
    if isinstance(task, GroupTask) and rules.style == "ids" and not rules.thinking:
        worked = [f"Sequence: {_sequence(said, shot)}\nAnswer: {answer}\n\n" for shot, answer in shots]
        examples = "".join(["Examples:\n\n", *worked]) if shots else ""
        prompt = SEED_PROMPT.format(group=usual_name(task.group), sequence=_sequence(said, row), examples=examples)
        return Question(prompt, target, replace(said.form, tag=""))
    used = sorted({symbol for sequence in (row, *(shot for shot, _ in shots)) for symbol in sequence})
    parts = [f"You are given a sequence of inputs. {said.about(used)}"]
    parts += [
        f"Example:\nSequence: {_sequence(said, shot)}\nAnswer: {said.form.write(answer)}" for shot, answer in shots
    ]
    parts += [
        f"Sequence: {_sequence(said, row)}",
        f"Question: What is the answer after the last input? {_format_whole(said, rules)}",
        "Answer:",
    ]
    return Question("\n\n".join(parts), said.form.write(target), said.form)


def answerable(task: Task, row: Sequence[int]) -> list[int]:
    """The row up to the last input after which something is asked."""
    asked = np.flatnonzero(task.batch([list(row)]).mask[0])
    return list(row)[: int(asked[-1]) + 1] if len(asked) else list(row)


def _shots(said: Wording, rules: Rules, seed: int) -> list[tuple[list[int], str]]:
    """Short rows of the training split with their answers."""
    if not rules.shots:
        return []
    batch = said.task.sample(SHOT_LENGTH, rules.shots, seed=seed, split="train")
    rows = [answerable(said.task, row) for row in batch.inputs.tolist()]
    return [(row, said.answer(int(said.task.targets([row])[0, -1]))) for row in rows]


def _sequence(said: Wording, row: Sequence[int]) -> str:
    texts = [said.symbol(symbol) for symbol in row]
    plain = all(" " not in text for text in texts)
    return (" " if plain else ", ").join(texts)


def _format_whole(said: Wording, rules: Rules) -> str:
    shape = f"[{said.tag}: <answer>]"
    if rules.thinking:
        return f"Reason first if it helps, then end your reply with {shape}."
    return f"Reply with {shape} and nothing else."
