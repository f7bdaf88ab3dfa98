"""The harness's own API model against a server that repeats our key in twelve ways."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.asking.echoes import ECHOES, KEY, leaks
from tests.integrations.inspect.loopback import Answer, error, good, serve

Evaluate = Callable[..., dict[str, Any]]
ALL = " | ".join(way(KEY) for way in ECHOES.values())


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def ask(evaluate: Evaluate, url: str, **more: Any) -> dict[str, Any]:
    given = {"model": "tiny", "base_url": f"{url}/chat/completions", "max_retries": 2, "num_concurrent": 1}
    return evaluate("local-chat-completions", ["c2_composition_gen"], limit=2, apply_chat_template=True,
                    model_args=given, **more)  # fmt: skip


def test_errors_in_the_harness_log(evaluate: Evaluate, caplog: pytest.LogCaptureFixture) -> None:
    def script(n: int, body: dict[str, Any]) -> Answer:
        return error(500, f"no such key: {ALL}") if n == 0 else good("0")

    with serve(script) as server, caplog.at_level(logging.DEBUG):
        found = ask(evaluate, server.url)
        assert set(server.keys) == {f"Bearer {KEY}"}
    assert found["results"]["c2_composition_gen"]["n_per_length,none"] == 1
    assert "no such key" in caplog.text
    assert leaks(caplog.text) == []


def test_replies_in_the_harness_samples(evaluate: Evaluate, caplog: pytest.LogCaptureFixture) -> None:
    with serve(lambda n, body: good(ALL)) as server, caplog.at_level(logging.DEBUG):
        found = ask(evaluate, server.url)
    samples = json.dumps(found["samples"], default=str)
    assert "***" in samples
    assert leaks(samples + caplog.text) == []


def test_replies_in_the_harness_cache(evaluate: Evaluate, tmp_path: Path) -> None:
    with serve(lambda n, body: good(ALL)) as server:
        ask(evaluate, server.url, use_cache=str(tmp_path / "replies"))
    [cache] = tmp_path.iterdir()
    kept = cache.read_bytes().decode("latin-1")
    assert "***" in kept
    assert leaks(kept) == []


def test_an_answer_inside_of_thinking_is_none(evaluate: Evaluate) -> None:
    with serve(lambda n, body: good("<THINK>0")) as server:
        found = ask(evaluate, server.url)
    assert found["results"]["c2_composition_gen"]["violations,none"] == 1
