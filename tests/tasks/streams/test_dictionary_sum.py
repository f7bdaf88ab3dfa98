"""The running sum against a plain loop over the words of the prompt, and how a dialogue names several keys at once."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import statetrack as st
from statetrack.asking import Rules, dialogue
from statetrack.asking.answers import SIGNED, Form
from statetrack.cli import main
from statetrack.theory.floors.simulation import _most_frequent


def told_values(task: st.Task) -> dict[str, int]:
    """The dictionary as the instruction tells it."""
    entries = re.search(r"each key: (.*?)\. A sum", task.instruction)
    assert entries
    return {key: int(value) for key, value in (entry.split() for entry in entries[1].split(", "))}


@pytest.mark.parametrize(
    ("text", "k", "largest"),
    [
        ("dictionary_sum", 1, 9999),
        ("dictionary_sum[k=4]", 4, 9999),
        ("dictionary_sum[k=2,words=3,low=-1,high=0,dictionary=9]", 2, 9999),
        ("dictionary_sum[words=5,low=20,high=90,largest=300]", 1, 300),
    ],
)
def test_the_sum_is_that_of_the_told_values(text: str, k: int, largest: int, agree: Callable[..., None]) -> None:
    task = st.task(text)
    values = told_values(task)

    def total(symbols: list[int]) -> int | None:
        summed = 0
        for symbol in symbols:
            summed += values[task.symbol_text(symbol)]
        if len(symbols) % k or not -largest <= summed <= largest:
            return None
        answer = summed + largest
        assert task.answer_text(answer) == str(summed) == f"{task.value(answer):g}"
        return answer

    agree(text, total)


def test_the_values_are_those_of_the_range_and_of_the_dictionary() -> None:
    values = st.task("dictionary_sum").values
    assert len(values) == 100
    assert values.min() >= -99
    assert values.max() <= 99
    assert len(set(values.tolist())) > 50
    assert np.array_equal(st.task("dictionary_sum[words=9]").values, values[:9])
    assert not np.array_equal(st.task("dictionary_sum[dictionary=1]").values, values)
    assert set(st.task("dictionary_sum[low=3,high=5]").values.tolist()) == {3, 4, 5}


def test_the_keys_are_the_same_for_any_number_a_turn() -> None:
    one, many = (st.task(text).sample(40, 6).inputs for text in ("dictionary_sum", "dictionary_sum[k=8,high=7]"))
    assert np.array_equal(one, many)


def test_a_message_names_k_keys_and_asks_once() -> None:
    task = st.task("dictionary_sum[k=3]")
    game, values = dialogue(task, Rules(), sample=2, length=11), told_values(task)
    assert [len(turn.text.split()) for turn in game.turns] == [3, 3, 3, 2]
    assert [turn.target is None for turn in game.turns] == [False, False, False, True]
    total = 0
    for turn in game.turns[:3]:
        total += sum(values[key] for key in turn.text.split())
        assert game.reply(turn) == f"[answer: {total}]"
    example = re.findall(r"Input: (.*)\nReply: \[answer: (-?\d+)\]", game.system)
    assert [len(keys.split()) for keys, _ in example] == [3, 3]
    assert int(example[1][1]) == sum(values[key] for keys, _ in example for key in keys.split())


@pytest.mark.parametrize(
    "distractors", [("chatter",), ("streams",), ("retractions",), ("chatter", "streams", "retractions")]
)
def test_distractors_go_by_messages(distractors: tuple[str, ...]) -> None:
    task = st.task("dictionary_sum[k=2]")
    game, values = dialogue(task, Rules(distractors=distractors), sample=1, length=60), told_values(task)
    shown: dict[str, list[int]] = {"A": [], "B": []}
    asked = 0
    for turn in game.turns:
        name, colon, text = turn.text.partition(": ")
        stream = shown[name if colon else "A"]
        text = text if colon else turn.text
        if text == "Take back the last input.":
            stream.pop()
        elif all(key in values for key in text.split()):
            stream.append(sum(values[key] for key in text.split()))
        else:
            assert turn.target is None
            continue
        asked += 1
        assert game.reply(turn) == f"[answer: {sum(stream)}]"
    assert asked == 30


def test_whole_rows_end_with_a_full_turn_and_too_short_ones_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    task = st.task("dictionary_sum[k=4]")
    values = told_values(task)
    turn = dialogue(task, Rules(way="whole", shots=2), sample=0, length=10).turns[0]
    sequences = re.findall(r"Sequence: (.*)", turn.text)
    answers = re.findall(r"Answer: \[answer: (-?\d+)\]", turn.text)
    assert [len(keys.split()) for keys in sequences] == [8, 8, 8]
    totals = [sum(values[key] for key in keys.split()) for keys in sequences]
    assert [int(answer) for answer in answers] == totals[:2]
    assert turn.target == totals[2] + task.largest
    assert main(["ask", "dictionary_sum[k=21]", "--way", "whole", "--solver", "oracle", "--samples", "1"]) == 2
    assert "dictionary_sum[k=21] asks nothing in 20 inputs; choose a longer length" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("reply", "strict", "lenient"),
    [
        ("[answer: -17]", -17, -17),
        ("[answer: 17]", 17, 17),
        ("[answer: -17.0]", -17, -17),
        ("[answer: - 17]", None, 17),
        ("[answer: --17]", None, None),
        ("The sum is -17.", None, -17),
        ("[answer: -0]", 0, 0),
    ],
)
def test_negative_answers_are_read(reply: str, strict: int | None, lenient: int | None) -> None:
    form = dialogue(st.task("dictionary_sum"), Rules(), 0, 3).form
    assert form == Form("answer", SIGNED)
    assert (form.read(reply), form.read_leniently(reply)) == (strict, lenient)


def test_a_sign_is_a_violation_where_no_answer_has_one() -> None:
    assert dialogue(st.task("stream.sum_mod"), Rules(), 0, 3).form.read("[answer: -5]") is None


@pytest.mark.parametrize("solver", ["oracle", "window-100"])
def test_an_exact_window_counts_turns(solver: str) -> None:
    found = st.ask("dictionary_sum[k=3]", solver=solver, samples=3, length=60)
    assert [record.episode.max_length for record in found.records] == [20, 20, 20]


def test_a_guess_is_a_sum_that_can_be() -> None:
    task, chance = st.task("dictionary_sum[low=2,high=5]"), np.random.default_rng(0)
    assert {int(task.value(task.guess([1, 1], chance))) for _ in range(300)} == set(range(4, 11))


def test_the_most_frequent_of_many_classes_is_that_of_few() -> None:
    """Where a table of all classes would be too large, the same answers are found without one."""
    chance = np.random.default_rng(4)
    seen, answers = chance.integers(0, 9, 400), chance.integers(0, 6, 400)
    seen[seen == 7] = 6  # nothing is known of the kind 7
    few = _most_frequent(seen, answers, 9, 6)
    assert np.array_equal(_most_frequent(seen, answers, 9, 2**20), few)
    assert few[7] == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dictionary_sum[k=0]", r"k=0 should lie in 1\.\.100000"),
        ("dictionary_sum[words=101]", r"words=101 should lie in 2\.\.100"),
        ("dictionary_sum[low=5,high=5]", "low=5 should be less than high=5"),
    ],
)
def test_dictionaries_that_cannot_be(text: str, said: str) -> None:
    with pytest.raises(st.BadInput, match=said):
        st.task(text)
