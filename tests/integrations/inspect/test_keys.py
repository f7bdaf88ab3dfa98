"""A server that repeats our key in twelve ways: in no log of Inspect's, no record and no line of `statetrack ask`."""

from __future__ import annotations

import json
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import get_model

from statetrack.cli import main
from statetrack.integrations.inspect import tasks
from tests.asking.echoes import ECHOES, KEY, leaks
from tests.integrations.inspect.loopback import Answer, error, good, serve

WAYS = list(ECHOES.values())


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_API_KEY", KEY)


def written(place: Path) -> str:
    """All that lies in a folder, archives unpacked."""
    parts = []
    for path in place.rglob("*"):
        if path.is_file() and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                parts += [archive.read(name).decode(errors="replace") for name in archive.namelist()]
        elif path.is_file():
            parts.append(path.read_bytes().decode(errors="replace"))
    return "\n".join(parts)


def echo(n: int) -> str:
    """All twelve, the n-th first: Inspect keeps the beginning of what is long."""
    return " | ".join(way(KEY) for way in (*WAYS[n % 12 :], *WAYS[: n % 12]))


@pytest.mark.parametrize("status", [500, 401])
def test_inspects_logs_of_samples_that_fail_and_that_are_cancelled(run, tmp_path, status):
    """The first sample that fails ends the run, and the others are cancelled in the midst of their retries."""

    def script(n: int, body: dict[str, Any]) -> Answer:
        return error(status if n > 6 else 500, f"no such key: {echo(n)}", {"retry-after": "0"})

    with serve(script) as server:
        model = get_model("openai-api/local/tiny", base_url=server.url, memoize=False)
        log = run(tasks.track_the_stat(samples=4, turns=6), model, max_retries=2, log_realtime=True)
        assert set(server.keys) == {f"Bearer {KEY}"}
    assert log.status == "error"
    assert sum(event.event == "model" for sample in log.samples for event in sample.events) >= 2
    found = written(tmp_path)
    assert "no such key" in found
    assert leaks(found) == []


def test_inspects_logs_of_replies_that_repeat_a_key(run, tmp_path):
    with serve(lambda n, body: good(f"{echo(n)} [mode: {body['messages'][-1]['content']}]")) as server:
        model = get_model("openai-api/local/tiny", base_url=server.url, memoize=False)
        log = run(tasks.track_the_stat(samples=3, turns=4), model)
        sent_back = json.dumps(server.bodies)
    assert log.status == "success"
    assert leaks(written(tmp_path)) == []
    assert leaks(sent_back) == []  # nor does the history give it to whoever reads requests


@pytest.mark.parametrize("kind", ["error", "reply"])
def test_ask_keeps_and_prints_no_key(tmp_path, capsys, kind):
    def script(n: int, body: dict[str, Any]) -> Answer:
        shown = body["messages"][-1]["content"]
        return error(500, echo(n)) if kind == "error" else good(f"{echo(n)} [mode: {shown}]")

    with serve(script) as server:
        model = f"openai-api/local/tiny[base_url={server.url},max_retries=0]"
        command = ["ask", "track_the_stat.mode", "--model", model, "--samples", "3", "--length", "4"]
        assert main([*command, "--out", str(tmp_path / "out")]) == (1 if kind == "error" else 0)
    said = capsys.readouterr()
    assert leaks(said.out + said.err + written(tmp_path)) == []
    assert "***" in written(tmp_path)


def _reply(**fields: Any) -> Answer:
    """A reply in which some field, of the whole or of its choice, repeats the key."""
    body = json.loads(good("[mode: 85]")["body"])
    for name, value in fields.items():
        (body if name in body else body["choices"][0] if name in body["choices"][0] else body["usage"])[name] = value
    return {"body": json.dumps(body).encode()}


PLACES = {
    "a number": _reply(created=KEY),
    "another number": _reply(index=KEY),
    "tokens": _reply(prompt_tokens=KEY),
    "tokens in detail": _reply(completion_tokens_details={"reasoning_tokens": KEY}),
    "probabilities": _reply(logprobs={"content": [{"token": KEY, "logprob": KEY}]}),
    "choices": _reply(choices=[KEY]),
    "content": _reply(message={"role": "assistant", "content": [KEY, {"type": KEY}]}),
    "a header of a reply": {**good("[mode: 85]"), "headers": {"x-request-id": KEY, "set-cookie": f"a={KEY}"}},
    "a header of an error": error(500, "no", {"x-request-id": KEY, "retry-after": KEY}),
    "no JSON": {"body": f"<html>{KEY}".encode()},
}


@pytest.mark.parametrize("place", PLACES)
def test_where_a_parser_stumbles_over_a_key(run, tmp_path, capfd, place):
    """What pydantic says of a reply that does not fit repeats it: in errors, and in warnings on the terminal."""
    with serve(lambda n, body: PLACES[place]) as server:
        model = get_model("openai-api/local/tiny", base_url=server.url, memoize=False)
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            run(tasks.track_the_stat(samples=2, turns=2), model, max_retries=0, log_realtime=True)
        assert server.bodies
    said = capfd.readouterr()
    assert leaks(said.out + said.err + written(tmp_path)) == []
