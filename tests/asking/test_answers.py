"""The reader of replies on the facts' examples, on 10,000 random strings, and on every task's own answers."""

from __future__ import annotations

import random
import string
import time

import pytest

import statetrack as st
from statetrack.asking import Rules
from statetrack.asking.answers import CYCLES, IMAGES, INTEGER, WORDS, Form, is_refusal, without_reasoning
from statetrack.asking.wording import wording
from statetrack.tasks.catalogue import names

MEDIAN, MODE = Form("median"), Form("mode")


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("[median: 5]", 5.0),
        ("[Median: 5.50]", 5.5),
        ("**[median: 5]**", 5.0),
        ("  The answer is [MEDIAN: 74.5], I think.\n", 74.5),
        ("[median: 5] [median: 6]", 5.0),
        ("[mode: 9] [median: 6]", 6.0),
        ("[median: 007]", 7.0),
        ("[median: 5.04]", 5.0),
    ],
)
def test_what_the_original_accepts(reply: str, value: float) -> None:
    assert MEDIAN.read(reply) == value
    assert MEDIAN.read_leniently(reply) == value


@pytest.mark.parametrize(
    "reply",
    ["[median:5]", "[median:  5]", "[median: -5]", "[median: 5.]", "[median: 1e1]", "[mode: 5]", "median: 5", "5", "",
     "[median: ]", "[median: 5 ]", "[median : 5]", "(median: 5)", "[median: .5]", "[median: 5,0]", "[median: ٥]"],
)  # fmt: skip
def test_what_the_original_rejects(reply: str) -> None:
    assert MEDIAN.read(reply) is None


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("[median:5]", 5.0),
        ("median = 7.5", 7.5),
        ("The median is 12.", 12.0),
        ("it must be 3 or 4", 4.0),
        ("none", None),
    ],
)
def test_the_lenient_reader(reply: str, value: float | None) -> None:
    assert MEDIAN.read_leniently(reply) == value


def test_after_reasoning_the_last_answer_counts() -> None:
    text = "first [median: 3], no: [median: 4]"
    assert (MEDIAN.read(text), MEDIAN.read(text, last=True)) == (3.0, 4.0)
    assert Form().read("I compose them.\n17", last=True) == 17.0
    assert Form().read("I compose them.\n17") is None


def fuzz(count: int) -> list[str]:
    chance = random.Random(0)
    pieces = ["[", "]", "median", "mode", "answer", ":", " ", "-", ".", "5", "74.5", "1e9", "(", ")", "(0 1)", "\n",
              "９", "İ", "\x00", "\x1c", "cup 3", "9" * 400, "**", "[median: 5]", "\ud800", "🙂"]  # fmt: skip
    made = ["".join(chance.choices(pieces, k=chance.randint(0, 12))) for _ in range(count // 2)]
    return made + ["".join(chance.choices(string.printable, k=chance.randint(0, 30))) for _ in range(count // 2)]


def test_no_string_breaks_a_reader_and_strict_implies_lenient() -> None:
    forms = [MEDIAN, MODE, Form(), Form("answer", IMAGES, 5), Form("answer", CYCLES, 5),
             wording(st.task("cups"), Rules()).form, wording(st.task("dyck"), Rules()).form]  # fmt: skip
    read = 0
    for text in fuzz(10_000):
        is_refusal(text)
        for form in forms:
            for last in (False, True):
                strict, lenient = form.read(text, last), form.read_leniently(text, last)
                if strict is not None:
                    read += 1
                    assert lenient == strict
                    found = form.find(text, last)
                    assert found is not None
                    assert form.read(found[0]) == strict
    assert read > 500  # the strings do hold answers


@pytest.mark.parametrize(
    "name", [name for name in names() if "_composition" not in name] + ["s5", "m11", "cups[items=all]"]
)
def test_every_answer_of_every_task_is_read_back_and_different_ones_differ(name: str) -> None:
    task = st.task(name)
    said = wording(task, Rules())
    classes = range(min(task.outputs, 250))
    values = [said.form.read(said.form.write(said.answer(answer))) for answer in classes]
    assert None not in values
    assert len(set(values)) == len(values)


@pytest.mark.parametrize("style", ["table", "cycles"])
def test_permutations_are_read_whatever_the_commas(style: str) -> None:
    said = wording(st.task("s5"), Rules(style=style))
    for element in range(120):
        text = said.answer(element)
        images = tuple(st.group("s5").elements[element].tolist())
        assert said.form.read(f"[answer: {text}]") == images
        spaced = text.replace(" ", ", ")
        assert said.form.read(f"[answer: {spaced}]") == images
    assert said.form.read("[answer: 0 1 2 3]" if style == "table" else "[answer: (0 9)]") is None
    assert said.form.read("[answer: 0 0 1 2 3]" if style == "table" else "[answer: (0 1)(1 2)]") is None


def test_refusals() -> None:
    assert is_refusal("I’m sorry, but I cannot do that.")
    assert not is_refusal("The median is 5")


@pytest.mark.parametrize(
    ("reply", "value"),
    [("[answer: 1]", 1), ("[answer: 1.0]", 1), ("[answer: 007]", 7), ("[answer: 0.96]", None), ("[answer: 1.04]", None),
     ("[answer: 1.5]", None)],
)  # fmt: skip
def test_classes_and_ids_are_integers(reply: str, value: int | None) -> None:
    for name in ("parity", "s5"):
        form = wording(st.task(name), Rules()).form
        assert form.kind == INTEGER
        assert (form.read(reply), form.read_leniently(reply)) == (value, value)
    assert wording(st.task("track_the_stat.median"), Rules()).form.read("[median: 74.46]") == 74.5  # as the original


@pytest.mark.parametrize(
    ("reply", "value"),
    [("12,345", 12345), ("it is 1,234,567.", 1234567), ("the answer is -3", -3), ("**5**", 5), ("_5_", 5), ("x5", None),
     ("5th", None), ("v1.2.3", None), ("3,4", None), ("I have seen 5 numbers, I don't know", None),
     ("I don’t know: 5?", None), ("0.96", None), ("1e1", 10), ("nonanswer 5", 5), ("5 apples", 5), ("9" * 400, None),
     ("1/2", None), ("of 6 it is 1 / 2", None), ("[answer: 1/2]", None), ("1⁄2", None), ("10^3", None), ("2-3", None),
     ("2 + 3 = 5", 5), ("2*3=6", 6), ("24/7 is 3", 3), ("−3", -3), ("[answer: −3]", -3), ("answer: –3", -3),
     ("answer — 3", 3), ("not 5", None), ("it isn't 5", None), ("not 5 but 6", 6), ("4, not 5", 4),
     ("answer ≠ 5", None), ("it is 9007199254740993", 9007199254740993), ("1e400", None),
     ("1e99999999999999999999", None),
     ("9" * 30, int("9" * 30))],
)  # fmt: skip
def test_a_number_is_read_whole_or_not_at_all(reply: str, value: int | None) -> None:
    assert Form("answer", INTEGER).read_leniently(reply) == value


def test_integers_are_read_to_the_last_digit() -> None:
    assert Form("answer", INTEGER).read("[answer: 9007199254740993]") == 2**53 + 1
    assert Form("answer", INTEGER).read("[answer: 9007199254740993.0]") == 2**53 + 1


@pytest.mark.parametrize(("reply", "value"), [("1/2", None), ("−7.5", -7.5), ("1e400", float("inf")), ("10^3", None)])
def test_numbers_with_a_fraction(reply: str, value: float | None) -> None:
    assert MEDIAN.read_leniently(reply) == value


def test_words_have_borders() -> None:
    balance = Form("answer", WORDS, words=("balanced", "open"))
    cup = Form("answer", WORDS, words=("cup 1", "cup 2"))
    cases = [("It is balanced.", "balanced"), ("unbalanced", None), ("reopened", None), ("not balanced", None),
             ("it isn't balanced", None), ("answer: open", "open"), ("_balanced_", "balanced")]  # fmt: skip
    assert [balance.read_leniently(reply) for reply, _ in cases] == [value for _, value in cases]
    assert [cup.read_leniently(reply) for reply in ("under cup 1!", "cup 10", "cup 1 or cup 2")] == [
        "cup 1",
        None,
        "cup 2",
    ]


ANSWER = "[answer: 1]"


@pytest.mark.parametrize(
    ("reply", "left"),
    [
        (f"<think>no</think>{ANSWER}", ANSWER),
        (f"<THINK>{ANSWER}</Think>", ""),
        (f"<think>{ANSWER}", ""),
        (f"<reasoning>{ANSWER}", ""),
        (f"<reasoning>{ANSWER}</reasoning>{ANSWER}", ANSWER),
        (f"hm <thinking effort='low'>{ANSWER}</thinking> so", " so"),
        (f"{ANSWER}</think>", ""),
        (f"<think>a</think>b<think>{ANSWER}", ""),
        (f"{ANSWER} <think>but no</think> I give up", " I give up"),
        (f"[THINK]{ANSWER}[/THINK]{ANSWER}", ANSWER),
        (f"◁think▷{ANSWER}", ""),
        (f"<seed:think>{ANSWER}</seed:think>", ""),
        (f"<|START_THINKING|>{ANSWER}<|END_THINKING|>{ANSWER}", ANSWER),
        (f"<|channel|>analysis<|message|>{ANSWER}<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}", ANSWER),
        (f"<|channel|>analysis<|message|>{ANSWER}", ""),
        (f"<cot>{ANSWER}</cot>{ANSWER}", ANSWER),
        (f"<rationale>{ANSWER}", ""),
        (f"< think >{ANSWER}< / think > so", " so"),
        (f"<Chain_of_Thought>{ANSWER}</Chain_of_Thought>", ""),
        (f"<cotton>{ANSWER}", f"<cotton>{ANSWER}"),
        (f"I think {ANSWER} is the reason", f"I think {ANSWER} is the reason"),
        ("1 < 2 [thinking: 3]", "1 < 2 [thinking: 3]"),
    ],
)
def test_nothing_inside_of_thinking_is_an_answer(reply: str, left: str) -> None:
    assert without_reasoning(reply) == left


@pytest.mark.parametrize(
    "text",
    [
        "<inner_thoughts>{}</inner_thoughts>{}", "<internal_monologue>{}</internal_monologue>{}",
        "<antThinking>{}</antThinking>{}", "<thinking_process>{}</thinking_process>{}",
        "&lt;think&gt;{}&lt;/think&gt;{}", "＜think＞{}＜/think＞{}", "<think/>{1}",
    ],
)  # fmt: skip
def test_reasoning_under_other_names_is_no_answer(text: str) -> None:
    form = Form("answer", INTEGER)
    assert form.read(without_reasoning(text.format("[answer: 3]", "[answer: 4]"))) == 4


@pytest.mark.parametrize("text", ["12’345", "12'345", "1_000", "1\u202f000", "√9", "not a 5", "it is not the 5"])
def test_no_part_of_a_number_that_others_write_is_read(text: str) -> None:
    assert Form("answer", INTEGER).read_leniently(text) is None


@pytest.mark.parametrize("part", ["<", "</", "&lt;", "<think ", "<thin-", "a-", "1'", "1_0"])
def test_long_replies_take_no_time_that_grows_with_their_square(part: str) -> None:
    began = time.monotonic()
    text = part * 50_000
    without_reasoning(f"<{text}think")
    Form("answer", INTEGER).read_leniently(text)
    assert time.monotonic() - began < 10
