"""The texts that a model sees: a description for a dialogue, or one prompt with the whole sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from statetrack.asking import compat, templates
from statetrack.asking.answers import Form
from statetrack.asking.rules import Rules
from statetrack.asking.wording import GroupWording, Wording, wording
from statetrack.errors import BadInput, shortened
from statetrack.secrets import scrub
from statetrack.tasks import Task
from statetrack.tasks.groups import usual_name
from statetrack.tasks.groups.task import GroupTask

EXAMPLE_LENGTH = 6
SHOT_LENGTH = 5
OK = "[ok]"
TABLED = ("table", "generators")  # styles whose prompt holds a table of the row's own permutations

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
    if rules.prompt:
        return _filled(said, rules, row)
    if rules.compat:
        return "\n\n".join([compat.about(said), compat.example(said), compat.form(said)])
    parts = [_about(said, row), _format(said, rules), *_distractors(rules), _example(said, rules)]
    return "\n\n".join(part for part in parts if part)


def state_message(said: Wording, rules: Rules, seen: Sequence[int]) -> str:
    """What a solver that is shown the state sees after these inputs."""
    template = templates.state_part(rules.prompt)
    if template is None:
        return compat.state_message(said, seen) if rules.compat else said.state(seen)
    label = said.task.original.state if said.task.original else "state"
    return templates.fill(template, {"task": lambda: said.tag, "state": lambda: said.state(seen),
                                     "label": lambda: label})  # fmt: skip


def check(task: Task, rules: Rules) -> None:
    """Refuse a prompt of one's own that lacks what the model has to be told, and compat where there is no original."""
    said = wording(task, rules)
    if rules.compat:
        compat.words(task)
    if not rules.prompt:
        return
    if (clean := scrub(rules.prompt)) != rules.prompt:
        raise BadInput(f"the prompt holds a key, or what looks like one, and is kept with results: {shortened(clean)}")
    whole = rules.way == "whole"
    first, needed = templates.first_part(rules.prompt), [("sequence", "a prompt with the whole sequence")] * whole
    needed += [("examples", f"shots={rules.shots}")] * bool(rules.shots)
    needed += [("about", f"the table of style {rules.style}")] * (rules.style in TABLED)
    needed += [("distractors", f"distractors {'+'.join(rules.distractors)}")] * bool(rules.distractors)
    needed += [("format", f"every={rules.every}")] * (rules.every > 1)
    allowed = [name for name in (templates.WHOLE if whole else templates.TURNS)
               if name != "group" or isinstance(task, GroupTask)]  # fmt: skip
    templates.check(first, allowed, needed)
    state = templates.state_part(rules.prompt)
    if state is not None:
        templates.check(state, templates.STATE, [("state", "the message behind === state ===")])
    told = "{format}" in first or f"[{said.tag}:" in first.replace("{task}", said.tag)
    if not told and not _is_bare(task, rules):
        raise BadInput(f"the prompt says nowhere how an answer is written: it lacks {{format}}, or [{said.tag}: ...]")


def _filled(said: Wording, rules: Rules, row: Sequence[int]) -> str:
    """A prompt of one's own, turn by turn."""
    return templates.fill(
        templates.first_part(rules.prompt),
        {
            "task": lambda: said.tag,
            "group": lambda: _group(said),
            "about": lambda: compat.about(said) if rules.compat else _about(said, row),
            "format": lambda: compat.form(said) if rules.compat else _format(said, rules),
            "example": lambda: compat.example(said) if rules.compat else _example(said, rules),
            "distractors": lambda: "\n\n".join(_distractors(rules)),
        },
    )


def _group(said: Wording) -> str:
    assert isinstance(said, GroupWording)
    return usual_name(said.task.group)


def _about(said: Wording, row: Sequence[int]) -> str:
    return f"{said.task.opening} {said.about(list(row))}"


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
    """The inputs of the example: the task's own, else six, in whole turns, of a row of the training split."""
    length = _in_turns(said.task, EXAMPLE_LENGTH)
    return said.task.example or tuple(said.task.sample(length, 1, seed=0, split="train").inputs[0].tolist())


def _in_turns(task: Task, inputs: int) -> int:
    """So many inputs, or the next number that whole turns have."""
    return -(-inputs // task.per_turn) * task.per_turn


@lru_cache(maxsize=256)
def _example(said: Wording, rules: Rules) -> str:
    if isinstance(said, GroupWording) and said.style in TABLED:
        return ""  # the example's permutations would have to be in the table, and the table is the row's
    row = example_row(said)
    batch = said.task.batch(np.asarray([row]))
    targets, asked, many = batch.targets[0].tolist(), batch.mask[0].tolist(), said.task.per_turn
    lines = []
    for end in range(many, len(row) + 1, many):
        reply = said.form.write(said.answer(targets[end - 1])) if asked[end - 1] else OK
        lines.append(f"Input: {said.message(row[end - many : end])}\nReply: {reply}")
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
    used = sorted({symbol for sequence in (row, *(shot for shot, _ in shots)) for symbol in sequence})
    if rules.prompt:
        return _own_question(said, rules, row, target, _worked(said, rules, shots), used)
    if _is_bare(task, rules):
        prompt = SEED_PROMPT.format(
            group=_group(said), sequence=said.message(row), examples=_worked(said, rules, shots)
        )
        return Question(prompt, target, replace(said.form, tag=""))
    parts = [f"You are given a sequence of inputs. {said.about(used)}"]
    parts += [_worked(said, rules, shots)] * bool(shots)
    parts += [
        f"Sequence: {said.message(row)}",
        f"Question: What is the answer after the last input? {_format_whole(said, rules)}",
        "Answer:",
    ]
    return Question("\n\n".join(parts), said.form.write(target), said.form)


def _own_question(
    said: Wording, rules: Rules, row: Sequence[int], target: str, worked: str, used: Sequence[int]
) -> Question:
    """A prompt of one's own. Where ours asks for a bare ID, it may name the brackets or not."""
    text = templates.fill(
        templates.first_part(rules.prompt),
        {
            "task": lambda: said.tag,
            "group": lambda: _group(said),
            "about": lambda: said.about(used),
            "format": lambda: _format_whole(said, rules),
            "examples": lambda: worked,
            "sequence": lambda: said.message(row),
        },
    )
    bare = _is_bare(said.task, rules) and f"[{said.tag}:" not in text
    form = replace(said.form, tag="") if bare else said.form
    return Question(text, form.write(target), form)


def _is_bare(task: Task, rules: Rules) -> bool:
    """Whether the answer is the bare ID of an element, as the permutation benchmark has it."""
    return isinstance(task, GroupTask) and (rules.way, rules.style, rules.thinking) == ("whole", "ids", False)


def _worked(said: Wording, rules: Rules, shots: Sequence[tuple[list[int], str]]) -> str:
    """The shots with their answers."""
    if _is_bare(said.task, rules):
        worked = [f"Sequence: {said.message(shot)}\nAnswer: {answer}\n\n" for shot, answer in shots]
        return "".join(["Examples:\n\n", *worked]) if shots else ""
    return "\n\n".join(
        f"Example:\nSequence: {said.message(shot)}\nAnswer: {said.form.write(answer)}" for shot, answer in shots
    )


def answerable(task: Task, row: Sequence[int]) -> list[int]:
    """The row up to the last input after which something is asked."""
    asked = np.flatnonzero(task.batch([list(row)]).mask[0])
    return list(row)[: int(asked[-1]) + 1] if len(asked) else list(row)


def _shots(said: Wording, rules: Rules, seed: int) -> list[tuple[list[int], str]]:
    """Short rows of the training split with their answers."""
    if not rules.shots:
        return []
    batch = said.task.sample(_in_turns(said.task, SHOT_LENGTH), rules.shots, seed=seed, split="train")
    rows = [answerable(said.task, row) for row in batch.inputs.tolist()]
    return [(row, said.answer(int(said.task.targets([row])[0, -1]))) for row in rows]


def _format_whole(said: Wording, rules: Rules) -> str:
    shape = f"[{said.tag}: <answer>]"
    if rules.thinking:
        return f"Reason first if it helps, then end your reply with {shape}."
    return f"Reply with {shape} and nothing else."
