"""Whole runs: a server that fails and recovers, keys and logs, a local model, the command line."""

from __future__ import annotations

import json
import logging
import math
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval_retry
from inspect_ai.log import read_eval_log
from inspect_ai.model import ModelOutput, get_model

from statetrack.cli import main
from statetrack.integrations.inspect import registry as st
from statetrack.integrations.inspect import solvers
from statetrack.integrations.inspect.scorer import records
from tests.integrations.inspect.loopback import Answer, error, good, serve
from tests.integrations.inspect.scripted import Said, numbers, scripted, true_mode

KEY = "loop-back-key-0123456789"


def contents(log: str) -> str:
    """All that an .eval file holds, unpacked."""
    with zipfile.ZipFile(log) as packed:
        return "".join(packed.read(name).decode() for name in packed.namelist())


def mode_of(body: dict[str, Any]) -> str:
    """The mode of the numbers in a request: the largest of the most frequent."""
    shown = [int(message["content"]) for message in body["messages"] if message["role"] == "user"]
    return f"[mode: {max(set(shown), key=lambda value: (shown.count(value), value))}]"


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_API_KEY", KEY)


def test_a_failing_server_ends_the_run_and_a_second_run_continues(run, key):
    healthy = False

    def script(n: int, body: dict[str, Any]) -> Answer:
        fails = not healthy and len(body["messages"]) == 6 and body["messages"][1]["content"] == "85"
        return error(401, f"no such key: {KEY}") if fails else good(mode_of(body))

    with serve(script) as server:
        model = get_model("openai-api/local/tiny", base_url=server.url, memoize=False)
        task = st.track_the_stat(samples=3, turns=6)
        log = run(task, model, fail_on_error=False, max_retries=0)
        failed = next(sample for sample in log.samples if sample.error)
        assert failed.scores in (None, {})  # counted for nothing, and least of all as wrong
        assert "no such key" in failed.error.message
        assert [record.max_length for record in records(log)] == [6, 6]
        assert any(sent == f"Bearer {KEY}" for sent in server.keys)
        assert KEY not in contents(log.location)
        asked = len(server.bodies)
        healthy = True
        [again] = eval_retry(log, display="none", log_dir=str(Path(log.location).parent), log_realtime=False)
        assert again.status == "success"
        assert [record.max_length for record in records(again)] == [6, 6, 6]
        assert len(server.bodies) == asked + 6  # the two that were done are not asked again
        assert KEY not in contents(again.location)


def test_a_failing_server_has_no_score_even_where_errors_are_scored(run, key):
    def script(n: int, body: dict[str, Any]) -> Answer:
        fails = len(body["messages"]) == 6 and body["messages"][1]["content"] == "85"
        return error(401, "no") if fails else good(mode_of(body))

    with serve(script) as server:
        model = get_model("openai-api/local/tiny", base_url=server.url, memoize=False)
        log = run(st.track_the_stat(samples=3, turns=6), model, fail_on_error=False, max_retries=0, score_on_error=True)
    failed = next(sample for sample in log.samples if sample.error)
    assert math.isnan(failed.scores["episode"].value)
    [scored] = log.results.scores
    assert (scored.scored_samples, scored.unscored_samples) == (2, 1)
    found = {name: each.value for name, each in scored.metrics.items()}
    assert (found["episodes"], found["avg_max_length"], found.get("half_failed_by")) == (2, 6, None)


def test_statetrack_ask_says_what_failed_and_goes_on(tmp_path, key, capsys):
    """The same at our own command line, with the samples side by side."""
    healthy = False

    def script(n: int, body: dict[str, Any]) -> Answer:
        fails = not healthy and len(body["messages"]) == 6 and body["messages"][1]["content"] == "85"
        return error(500, f"no such key: {KEY}") if fails else good(mode_of(body))

    with serve(script) as server:
        model = f"openai-api/local/tiny[base_url={server.url},max_retries=1]"
        command = ["ask", "track_the_stat.mode", "--model", model, "--samples", "3", "--length", "6", "--json"]
        assert main([*command, "--out", str(tmp_path)]) == 1
        first = capsys.readouterr()
        assert "the server failed in 1 episode (" in first.err
        assert "Error code: 500" in first.err
        assert json.loads(first.out)["ended"] == {
            "done": 2, "wrong": 0, "format": 0, "refusal": 0, "context": 0, "limit": 0, "server": 1,
            "truncated": 0, "time": 0,
        }  # fmt: skip
        asked, healthy = len(server.bodies), True
        assert main([*command, "--out", str(tmp_path)]) == 0
        second = capsys.readouterr()
        found = json.loads(second.out)
        assert (found["avg_max_length"], found["ended"]["done"]) == (6, 3)
        assert len(server.bodies) == asked + 4  # the turns after the two that the cut-off episode had answered
        assert found["tokens"]["generated"] == 18 * 6
    kept = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert KEY not in kept + first.out + first.err + second.out + second.err


def test_no_key_in_what_is_written_on_the_way(run, key, monkeypatch):
    noted: list[logging.LogRecord] = []
    watching = logging.Handler(level=1)
    monkeypatch.setattr(watching, "emit", noted.append)
    calls = logging.getLogger("inspect_ai.model._model")
    calls.addHandler(watching)
    try:
        with serve(lambda n, body: error(401, f"{server.keys[-1]} is not allowed")) as server:
            model = get_model("openai-api/local/tiny", base_url=server.url, memoize=False)
            log = run(st.track_the_stat(samples=1, turns=6), model, fail_on_error=False, log_realtime=True)
    finally:
        calls.removeHandler(watching)
    assert log.samples[0].error is not None
    assert KEY not in contents(log.location)
    assert any("is not allowed" in str(vars(record)) for record in noted)
    assert not any(KEY in str(vars(record)) for record in noted)


@pytest.mark.parametrize(
    "bad", [ModelOutput.from_content("scripted", ""), ModelOutput(model="scripted"),
            ModelOutput.from_content("scripted", "[mo", stop_reason="content_filter")]
)  # fmt: skip
def test_an_unusable_reply_is_asked_for_again(run, bad, monkeypatch):
    monkeypatch.setattr(solvers, "WAIT", 0.001)
    given = {"bad": 0}

    async def answer(said: Said) -> str | ModelOutput:
        if len(numbers(said)) == 2 and given["bad"] < 2:
            given["bad"] += 1
            return bad
        return await true_mode(said)

    [record] = records(run(st.track_the_stat(samples=1, turns=4), scripted("hiccups", answer)))
    refused = bad.choices and bad.choices[0].stop_reason == "content_filter"
    assert (record.outcomes, given["bad"]) == (("+r", 1) if refused else ("++++", 2))


def test_a_reply_that_stays_empty_is_the_servers_failure(run, monkeypatch):
    monkeypatch.setattr(solvers, "WAIT", 0.001)

    async def answer(said: Said) -> str | ModelOutput:
        return ModelOutput.from_content("scripted", "") if len(numbers(said)) == 3 else await true_mode(said)

    log = run(st.track_the_stat(samples=1, turns=4), scripted("mute", answer))
    assert log.status == "error"
    assert "an empty reply" in log.error.message
    assert records(log) == []


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random two-layer Llama with a tokenizer of characters and a chat template."""
    import torch
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    signs = [chr(code) for code in range(32, 127)]
    words = {sign: number for number, sign in enumerate(["<s>", "</s>", "<unk>", *signs])}
    raw = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="</s>"
    )
    tokenizer.chat_template = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }} {% endfor %}assistant:"
    shape = LlamaConfig(
        vocab_size=len(words), hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=4096, bos_token_id=0, eos_token_id=1, pad_token_id=1,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("tiny")
    LlamaForCausalLM(shape).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_local_model_of_transformers(run, tiny):
    model = get_model("hf/tiny", model_path=str(tiny), device="cpu", do_sample=False, memoize=False)
    log = run(st.track_the_stat(samples=2, turns=5, room=8), model)
    assert log.status == "success", log.error
    found = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
    assert (found["avg_max_length"], found["violation_rate"], found["episodes"]) == (0, 1, 2)
    assert all(record.tokens["generated"] <= 8 for record in records(log))
    assert all(record.replies[0] for record in records(log))


def test_the_command_line(tmp_path):
    """The entry point leads to task and solver; a bad parameter is refused in one line."""
    command = [
        sys.executable, "-m", "inspect_ai", "eval", "statetrack/permutation_composition", "--model", "none",
        "--solver", "statetrack/oracle", "--display", "plain", "--log-dir", "logs", "-T", "per_length=1",
    ]  # fmt: skip
    done = subprocess.run([*command, "-T", "group=s5"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    [path] = (tmp_path / "logs").glob("*.eval")
    log = read_eval_log(str(path))
    assert (log.eval.task, log.status) == ("statetrack/permutation_composition", "success")
    assert log.eval.task_args["group"] == "s5"
    found = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
    assert [found[length] for length in ("5", "10", "20", "50", "100", "200", "500")] == [1] * 7
    refused = subprocess.run([*command, "-T", "group=s55"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert refused.returncode != 0
    said = (refused.stdout + refused.stderr).strip()
    assert "Traceback" not in said
    assert "statetrack: unknown task 's55'; did you mean s5?" in said
