"""What a model is told: the seed document's prompt to the letter, descriptions whose examples are right."""

from __future__ import annotations

import re

import pytest

import statetrack as st
from statetrack.asking import Rules, description, question
from statetrack.asking.wording import wording
from statetrack.tasks.catalogue import names

PLAIN = [name for name in names() if not name.endswith("_composition")]
WHOLE = Rules(way="whole")


def test_the_permutation_prompt_is_the_documents() -> None:
    asked = question(st.task("psl2_7"), [3, 1, 4, 2, 5], WHOLE)
    assert asked.prompt == (
        "You are given a sequence of permutations from the group PSL(2,7), identified by their integer IDs. Your task"
        " is to compute their composed product.\n"
        "\n"
        "The composition must be performed sequentially from right to left, following the standard mathematical"
        " convention (p_n ∘ ... ∘ p_2 ∘ p_1).\n"
        "\n"
        "Sequence: 3 1 4 2 5\n"
        "\n"
        "Question: What is the single integer ID of the final composed permutation? Your response must be only the"
        " integer.\n"
        "\n"
        "Answer:"
    )
    assert asked.target == str(st.group("psl2_7").product([3, 1, 4, 2, 5]))
    assert asked.form.read(asked.target) == float(asked.target)


def test_shots_are_short_solved_rows() -> None:
    asked = question(st.task("s3"), [3, 1, 4], Rules(way="whole", shots=4), seed=7)
    shown = re.findall(r"Sequence: ([0-9 ]+)\nAnswer: ([0-9]+)\n", asked.prompt)
    assert len(shown) == 4
    for sequence, answer in shown:
        assert st.group("s3").product([int(each) for each in sequence.split()]) == int(answer)
    assert question(st.task("s3"), [3, 1, 4], Rules(way="whole", shots=4), seed=8).prompt != asked.prompt


def test_relabelled_ids_are_a_bijection_that_keeps_products() -> None:
    task, group = st.task("s4"), st.group("s4")
    said = wording(task, Rules(relabel=5))
    labels = [int(said.symbol(element)) for element in range(24)]
    assert sorted(labels) == list(range(24))
    assert labels != list(range(24))
    row = [5, 17, 3, 9]
    asked = question(task, row, Rules(way="whole", relabel=5))
    assert f"Sequence: {' '.join(str(labels[element]) for element in row)}\n" in asked.prompt
    assert asked.target == str(labels[group.product(row)])
    assert wording(task, Rules(relabel=5)).symbol(7) == said.symbol(7)


@pytest.mark.parametrize("style", ["table", "cycles", "generators"])
def test_styles_say_which_permutation_is_meant(style: str) -> None:
    """Compose from the prompt's text alone, and arrive at the target."""
    task = st.task("a5[over=generators]" if style == "generators" else "a5")
    row = task.sample(12, 1, seed=3, split="test").inputs[0].tolist()
    asked = question(task, row, Rules(way="whole", style=style))
    points = list(range(5))
    for word in _sequence(asked.prompt, style):
        images = _images(asked.prompt, word, style)
        points = [images[point] for point in points]
    assert asked.form.read(asked.target) == tuple(points)


def _sequence(prompt: str, style: str) -> list[str]:
    line = re.search(r"Sequence: (.*)\n", prompt)
    assert line
    return line[1].split(", ") if style == "cycles" else line[1].split()


def _images(prompt: str, word: str, style: str) -> list[int]:
    if style == "cycles":
        images = list(range(5))
        for cycle in re.findall(r"\(([0-9 ]+)\)", word):
            points = [int(point) for point in cycle.split()]
            for here, there in zip(points, points[1:] + points[:1]):
                images[here] = there
        return images
    line = re.search(rf"^{word} = (.*)$", prompt, re.MULTILINE)
    assert line
    return [int(image) for image in line[1].split()]


def test_styles_are_for_groups_and_generators_for_generators() -> None:
    with pytest.raises(st.BadInput, match="permutation groups"):
        question(st.task("rtc"), [1, 0], Rules(way="whole", style="table"))
    with pytest.raises(st.BadInput, match="over=generators"):
        question(st.task("s5"), [1, 0], Rules(way="whole", style="generators"))


@pytest.mark.parametrize("name", [*PLAIN, "s5", "cups[items=all]", "regex[pattern=(ab)*]", "stream.echo[k=4]"])
def test_every_task_can_be_told_and_its_example_is_right(name: str) -> None:
    task = st.task(name)
    said = wording(task, Rules())
    text = description(task, Rules())
    assert f"[{said.tag}: <answer>]" in text
    shown = re.findall(r"Input: (.*)\nReply: (.*)", text)
    assert len(shown) == 6
    symbols = {said.symbol(symbol): symbol for symbol in range(task.inputs)}
    state = task.start()
    for given, reply in shown:
        state = task.step(state, symbols[given])
        answer = task.answer(state)
        assert reply == ("[ok]" if answer is None else said.form.write(said.answer(answer)))
    asked = question(task, task.sample(9, 1, split="test").inputs[0].tolist(), WHOLE)
    assert asked.form.read(asked.target) is not None


@pytest.mark.parametrize(
    ("variant", "parts"),
    [
        ("median", ["median", "count is even", "mean", "one space", "[median: <answer>]", "[median: 9.5]"]),
        ("mode", ["mode", "several values share", "largest", "one space", "[mode: <answer>]"]),
    ],
)
def test_track_the_stat_says_what_the_facts_list(variant: str, parts: list[str]) -> None:
    text = description(st.task(f"track_the_stat.{variant}"), Rules())
    for part in parts:
        assert part in text
    assert text.count("Reply: ") == 6


def test_the_automaton_is_told_by_its_steps(tmp_path) -> None:
    (tmp_path / "lamp.yaml").write_text(
        "states: [off, on]\nalphabet: [press, wait]\nstart: off\nsteps:\n  off: {press: on, wait: off}\n"
        "  on: {press: off, wait: on}\nanswers: {off: 0, on: 1}\n"
    )
    text = description(st.task(f"automaton[file={tmp_path}/lamp.yaml]"), Rules())
    assert "off, press -> on" in text
    assert "on: 1" in text
