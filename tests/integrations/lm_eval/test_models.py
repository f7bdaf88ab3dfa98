"""The harness with a real, if tiny, transformer: log-likelihoods, contexts that are too small, the command line."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from statetrack.errors import BadInput
from statetrack.integrations.lm_eval.documents import Generated
from statetrack.tasks.groups.task import GroupTask
from tests.integrations.lm_eval import tiny_model

Evaluate = Callable[..., dict[str, Any]]


def arguments(folder: Path) -> dict[str, str]:
    return {"pretrained": str(folder), "dtype": "float32", "device": "cpu"}


def test_log_likelihoods_are_the_models_own(evaluate: Evaluate, tiny: Path) -> None:
    found = evaluate("hf", ["c2_composition"], limit=4, model_args=arguments(tiny), batch_size=1)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(tiny), AutoTokenizer.from_pretrained(tiny)
    for sample in found["samples"]["c2_composition"]:
        prompt, answer = sample["arguments"][0]
        assert answer == f" {sample['doc']['target']}"
        context, tokens = tokenizer(prompt)["input_ids"], tokenizer(answer)["input_ids"]
        with torch.no_grad():
            scores = model(torch.tensor([context + tokens])).logits[0, len(context) - 1 : -1].log_softmax(-1)
        expected = sum(scores[place, token].item() for place, token in enumerate(tokens))
        (said, greedy) = sample["filtered_resps"][0]
        assert said == pytest.approx(expected, abs=1e-3)
        assert bool(sample["acc"]) == bool(greedy) == (scores.argmax(-1).tolist() == tokens)


@pytest.mark.parametrize(("kind", "room"), [("", 700), ("_gen", 732)])
def test_prompts_that_do_not_fit_are_reported_and_left_out(
    evaluate: Evaluate, tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str, room: int
) -> None:
    """One token a byte: a prompt and all but the last byte of its answer, or 32 tokens of reply, must fit."""
    name = f"s3_composition{kind}"
    folder = tiny_model.make(tmp_path, context=room)
    with caplog.at_level(logging.WARNING):
        found = evaluate("hf", [name], limit=20, model_args=arguments(folder), batch_size=1)
    prompts = {sample["doc_id"]: sample["arguments"][0][0] for sample in found["samples"][name]}
    assert all(len(prompt.encode()) + 1 <= 700 for prompt in prompts.values())
    rows = Generated(GroupTask(group="s3"), 20, 0)[:20]
    frame = len(prompts[0].encode()) - len(rows[0]["input_sequence"])
    fits = [row["row"] for row in rows if frame + len(row["input_sequence"]) + 1 <= 700]
    assert sorted(prompts) == fits
    assert 0 < len(fits) < 20
    got = found["results"][name]
    assert got["too_long,none"] == 20 - len(fits)
    assert got["sample_len"] == len(fits)
    assert all(got[f"{row['sequence_length']},none"] == -1 for row in rows if row["row"] not in fits)
    said = [record.getMessage() for record in caplog.records]
    assert any(f"{name}: {20 - len(fits)} of 20 prompts do not fit into the model's context" in line for line in said)
    assert not any("runcat" in line for line in said)


def test_a_context_that_is_too_small_for_all_is_refused(evaluate: Evaluate, tmp_path: Path) -> None:
    folder = tiny_model.make(tmp_path, context=100)
    with pytest.raises(BadInput, match="none is left to ask"):
        evaluate("hf", ["s3_composition"], limit=3, model_args=arguments(folder))


def test_a_chat_template_wraps_the_prompt(evaluate: Evaluate, tmp_path: Path) -> None:
    tiny_model.make(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    tokenizer.chat_template = (
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    tokenizer.save_pretrained(tmp_path)
    found = evaluate(
        "hf", ["c3_composition"], limit=1, model_args=arguments(tmp_path), apply_chat_template=True,
        system_instruction="Be brief.",
    )  # fmt: skip
    sample = found["samples"]["c3_composition"][0]
    prompt, answer = sample["arguments"][0]
    assert prompt.startswith("<system>Be brief.</><user>You are given a sequence of permutations from the group C3,")
    assert prompt.endswith("Answer:</><assistant>")
    assert answer == sample["doc"]["target"]


def test_the_command_line_knows_the_tasks_by_name(tiny: Path, tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "lm_eval", "--model", "hf", "--model_args", f"pretrained={tiny}", "--device", "cpu",
        "--tasks", "matched_order_groups,s3_composition_gen", "--limit", "1", "--batch_size", "1",
        "--metadata", '{"per_length": 3, "seed": 7}', "--output_path", str(tmp_path), "--log_samples",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    assert done.returncode == 0, done.stderr[-2000:]
    assert "|a5_composition" in done.stdout
    (file,) = tmp_path.rglob("results_*.json")
    found = json.loads(file.read_text())
    matched = {"a5_composition", "z60_composition", "a4xz5_composition"}
    assert set(found["results"]) == {*matched, "s3_composition_gen"}
    assert set(found["versions"].values()) == {2.0}
    assert all(found["results"][name]["chance,none"] == 1 / 60 for name in matched)
    assert found["n-samples"]["a5_composition"] == {"original": 300, "effective": 1}
    assert found["configs"]["a5_composition"]["metadata"]["options"]["seed"] == 7
    assert found["results"]["a5_composition"]["10,none"] == -1
    assert found["results"]["a5_composition"]["5,none"] in (0, 1)
