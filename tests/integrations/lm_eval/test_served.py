"""Models that think before they answer, and servers that do not answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from tests.integrations.inspect.loopback import Answer, good, serve
from tests.integrations.lm_eval import tiny_model
from tests.integrations.lm_eval.scripted_models import Scripted, symmetric_by_id

Evaluate = Callable[..., dict[str, Any]]
OPENS = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
    "{% if add_generation_prompt %}<assistant><think>{% endif %}"
)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


def served(evaluate: Evaluate, script: Callable[[int, dict[str, Any]], Answer]) -> dict[str, Any]:
    with serve(script) as server:
        given = {"model": "tiny", "base_url": f"{server.url}/chat/completions", "max_retries": 1, "num_concurrent": 1}
        found = evaluate("local-chat-completions", ["c2_composition_gen"], limit=4, apply_chat_template=True,
                         model_args=given)  # fmt: skip
    result: dict[str, Any] = found["results"]["c2_composition_gen"]
    return result


def right(body: dict[str, Any]) -> str:
    """C2 by adding up."""
    prompt = body["messages"][-1]["content"]
    return str(sum(map(int, prompt.partition("Sequence: ")[2].partition("\n")[0].split())) % 2)


@pytest.mark.parametrize(
    "nothing",
    [
        good(None), good(""), good("0", "error"), good("0", None), good([{"type": "text"}]),
        {"body": b'{"error": {"message": "overloaded"}}'}, {"body": b'{"choices": "none"}'},
    ],
)  # fmt: skip
def test_what_a_server_did_not_answer_is_in_no_mean(evaluate: Evaluate, nothing: Answer) -> None:
    found = served(evaluate, lambda n, body: nothing if n == 1 else good(right(body)))
    assert (found["acc,none"], found["violations,none"], found["unanswered,none"]) == (1, 0, 1)
    lengths = [found[f"{length},none"] for length in (5, 325, 165, 485)]  # the first four rows
    assert sorted(lengths) == [-1, 1, 1, 1]


def test_a_server_that_never_answered_has_no_accuracy(evaluate: Evaluate) -> None:
    found = served(evaluate, lambda n, body: good(None))
    assert found["unanswered,none"] == 4
    assert not {"acc,none", "violations,none", "5,none"} & found.keys()


def test_a_local_models_empty_reply_is_its_own(evaluate: Evaluate) -> None:
    found = evaluate(Scripted(lambda prompt: ""), ["c2_composition_gen"], limit=2)["results"]["c2_composition_gen"]
    assert (found["acc,none"], found["violations,none"], found["unanswered,none"]) == (0, 1, 0)


def test_reasoning_in_a_field_of_its_own_is_no_answer(evaluate: Evaluate) -> None:
    def script(n: int, body: dict[str, Any]) -> Answer:
        whole = json.loads(good(right(body))["body"])
        whole["choices"][0]["message"]["reasoning_content"] = "it may be 0 or 1"
        return {"body": json.dumps(whole).encode()}

    assert served(evaluate, script)["acc,none"] == 1


@pytest.mark.parametrize("regime", ["instant", "thinking"])
def test_the_last_answer_after_the_end_of_thinking_counts(evaluate: Evaluate, regime: str) -> None:
    solve = symmetric_by_id(3)
    tagged = "[answer: {}]" if regime == "thinking" else "{}"

    def greedy(prompt: str) -> str:
        wrong, answer = tagged.format("99"), tagged.format(solve(prompt).strip())
        return f"<think>{wrong}, or rather {answer}</think>\n{wrong}? No:\n{answer}"

    found = evaluate(Scripted(greedy), ["s3_composition_gen"], {"regime": regime}, limit=3)["results"]
    assert found["s3_composition_gen"]["acc,none"] == 1


@pytest.fixture
def thinker(tmp_path: Path) -> Path:
    tiny_model.make(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    tokenizer.chat_template = OPENS
    tokenizer.save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("task", "metadata", "said"),
    [
        ("c2_composition", {}, "scores log-likelihoods and is not for models that think before they answer"),
        ("c2_composition_gen", {}, "ends a reply at the end of its line"),
        ("c2_composition_gen", {"regime": "thinking", "room": 8}, None),
    ],
)
def test_a_model_that_thinks_is_told_of(
    evaluate: Evaluate, thinker: Path, caplog: pytest.LogCaptureFixture, task: str, metadata: dict[str, Any],
    said: str | None,
) -> None:  # fmt: skip
    given = {"pretrained": str(thinker), "dtype": "float32", "device": "cpu"}
    with caplog.at_level(logging.WARNING):
        found = evaluate("hf", [task], metadata, limit=1, model_args=given, apply_chat_template=True, batch_size=1)
    told = [line for line in map(logging.LogRecord.getMessage, caplog.records) if "thinking" in line]
    assert len(told) == (said is not None)
    assert all(said in line and 'c2_composition_gen with --metadata \'{"regime": "thinking"}' in line for line in told)
    assert found["configs"][task]["metadata"]["for_thinking_models"] is task.endswith("_gen")


def test_a_model_that_does_not_think_is_told_nothing(
    evaluate: Evaluate, tiny: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        evaluate("hf", ["c2_composition"], limit=1, model_args={"pretrained": str(tiny), "device": "cpu"}, batch_size=1)
    assert "think" not in caplog.text


def test_no_tokenizer_is_made_only_to_see_whether_a_model_thinks(evaluate: Evaluate) -> None:
    """The harness's `dummy` would download one; the hub is not asked in these tests, so that this would fail."""
    found = evaluate("dummy", ["c2_composition", "c2_composition_gen"], limit=2)["results"]
    assert found["c2_composition_gen"]["violations,none"] == 1
    assert found["c2_composition"]["too_long,none"] == 0


def test_thinking_that_the_template_begins_and_nobody_ends_is_no_answer(evaluate: Evaluate) -> None:
    class Opening(Scripted):
        tokenizer_name = "opening"

        def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
            return f"{chat_history[-1]['content']}<assistant><think>"

    for reply, right_share in (("perhaps [answer: 0], perhaps [answer: 1]", 0.0), ("hm</think>[answer: {}]", 1.0)):
        model = Opening(lambda prompt, reply=reply: reply.format(right({"messages": [{"content": prompt}]})))
        found = evaluate(model, ["c2_composition_gen"], {"regime": "thinking"}, limit=4, apply_chat_template=True)
        assert found["results"]["c2_composition_gen"]["acc,none"] == right_share
