"""Samples as dialogues: the original's 250 streams, and distractors whose answers are worked out from the words."""

from __future__ import annotations

import statistics
from collections import Counter

import numpy as np
import pytest

import statetrack as st
from statetrack.asking import Rules, dialogue
from statetrack.asking.dialogue import REMARKS, TAKE_BACK, spelled
from statetrack.asking.wording import wording

MEDIAN, MODE = st.task("track_the_stat.median"), st.task("track_the_stat.mode")


def number(value: float) -> str:
    return f"{value:g}"


def mode(numbers: list[int]) -> int:
    counts = Counter(numbers)
    return max(counts, key=lambda value: (counts[value], value))


@pytest.mark.parametrize("variant", ["median", "mode"])
def test_streams_and_answers_of_all_250_seeds(variant: str) -> None:
    task = st.task(f"track_the_stat.{variant}")
    for seed in range(250):
        stream = np.random.default_rng(seed).integers(0, 100, size=300).tolist()
        turns = dialogue(task, Rules(), seed).turns
        assert [turn.text for turn in turns] == [str(value) for value in stream]
        due = [statistics.median(stream[:t]) if variant == "median" else mode(stream[:t]) for t in range(1, 301)]
        assert [task.answer_text(turn.target) for turn in turns] == [number(value) for value in due]


def test_seed_zero_begins_as_the_facts_say() -> None:
    first = dialogue(MEDIAN, Rules(), 0)
    assert [turn.text for turn in first.turns[:4]] == ["85", "63", "51", "26"]
    assert [first.reply(turn) for turn in first.turns[:4]] == [f"[median: {v}]" for v in (85, 74, 63, 57)]


def test_distractors_from_the_words_alone() -> None:
    """Follow what is said, with all distractors at once, and arrive at the same answers."""
    words = {spelled(str(value)): value for value in range(100)}
    rules = Rules(distractors=("chatter", "streams", "words", "retractions"))
    kinds: Counter[str] = Counter()
    for sample in range(5):
        seen: dict[str, list[int]] = {"A": [], "B": []}
        for turn in dialogue(MEDIAN, rules, sample).turns:
            if turn.text in REMARKS:
                kinds["remark"] += 1
                assert turn.target is None
                continue
            stream, _, text = turn.text.partition(": ")
            kinds[stream] += 1
            if text == TAKE_BACK:
                kinds["back"] += 1
                seen[stream].pop()
            else:
                seen[stream].append(words[text])
            assert MEDIAN.answer_text(turn.target) == number(statistics.median(seen[stream]))
    assert min(kinds.values()) > 50
    assert dialogue(MEDIAN, rules, 3).turns == dialogue(MEDIAN, rules, 3).turns


def test_sparse_queries_ask_with_a_question_mark() -> None:
    full, sparse = dialogue(MODE, Rules(), 5, 40), dialogue(MODE, Rules(every=10), 5, 40)
    assert [at for at, turn in enumerate(sparse.turns, 1) if turn.target is not None] == [10, 20, 30, 40]
    for plain, turn in zip(full.turns, sparse.turns):
        asked = turn.target is not None
        assert turn.text == plain.text + "?" * asked
        assert not asked or turn.target == plain.target


def test_sparse_queries_count_the_inputs_that_can_be_asked_about() -> None:
    """An echo after 3 says nothing at the first three inputs; every second answer of the rest is asked for."""
    sparse = dialogue(st.task("stream.echo[k=3]"), Rules(every=2), 0, 12)
    assert [at for at, turn in enumerate(sparse.turns, 1) if turn.target is not None] == [5, 7, 9, 11]


def test_the_words_of_a_task_are_made_once() -> None:
    assert wording(st.task("s5"), Rules(history="own")) is wording(st.task("s5_composition"), Rules())
    assert wording(st.task("s5"), Rules(relabel=1)) is not wording(st.task("s5"), Rules())


def test_the_whole_way_is_one_turn_and_ends_where_something_is_asked() -> None:
    one = dialogue(st.task("modular_arithmetic"), Rules(way="whole"), 0, 8)
    assert len(one.turns) == 1
    assert len(one.turns[0].seen) == 7  # the eighth is an operator
    assert one.system == ""


def test_numbers_in_words() -> None:
    assert spelled("0 7 13 20 21 99 100 999 1000 372000") == (
        "zero seven thirteen twenty twenty-one ninety-nine one hundred nine hundred ninety-nine one thousand"
        " three hundred seventy-two thousand"
    )


@pytest.mark.parametrize(
    ("rules", "part"),
    [
        ({"way": "wohle"}, "did you mean whole"),
        ({"style": "tabel"}, "did you mean table"),
        ({"history": "onw"}, "did you mean own"),
        ({"distractors": ("chater",)}, "did you mean chatter"),
        ({"every": 0}, "every 0 should be at least 1"),
        ({"way": "whole", "history": "own"}, "one answer"),
        ({"shots": 2}, "shots belong"),
        ({"every": "2"}, "every='2' should be a whole number"),
        ({"every": 2.5}, "every=2.5 should be a whole number"),
        ({"limit": True}, "limit=True should be a whole number"),
        ({"way": 1}, "way=1 should be text"),
        ({"relabel": "x"}, "relabel='x' should be a whole number"),
        ({"keep_reasoning": 1}, "keep_reasoning=1 should be true or false"),
        ({"distractors": "chatter"}, "distractors='chatter' should be a list of names"),
    ],
)
def test_bad_rules_are_refused(rules: dict[str, object], part: str) -> None:
    with pytest.raises(st.BadInput, match=part):
        Rules(**rules)  # type: ignore[arg-type]


def test_a_dialogue_without_a_question_is_refused() -> None:
    with pytest.raises(st.BadInput, match="asks nothing in 2 turns"):
        dialogue(st.task("stream.echo[k=3]"), Rules(), 0, 2)


@pytest.mark.parametrize(("way", "most"), [("turns", 4096), ("whole", 131_072)])
def test_what_is_longer_than_can_be_asked_is_refused(way: str, most: int) -> None:
    with pytest.raises(st.BadInput, match=f"length {most + 1} is more than the {most} "):
        dialogue(MEDIAN, Rules(way=way), 0, most + 1)


def test_the_turns_of_a_long_dialogue_share_their_row() -> None:
    """Kept for every turn apart, those of 64 samples of 4,096 inputs would take gigabytes."""
    for distractors in ((), ("streams", "retractions")):
        turns = dialogue(MEDIAN, Rules(distractors=distractors), 0, 400).turns
        assert len({id(turn.row) for turn in turns}) < 150
        assert [len(turn.seen) for turn in turns] == [turn.count for turn in turns]
