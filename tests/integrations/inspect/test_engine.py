"""The engine of `statetrack ask` against a real server on loopback: good replies, and every way to fail."""

from __future__ import annotations

import gc
import gzip
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from inspect_ai.event import ModelEvent

from statetrack import BadInput, task
from statetrack.asking import Episode, Reply, Request, Rules, dialogue, results
from statetrack.asking.engines import engine as any_engine
from statetrack.integrations.inspect import guard, replies
from statetrack.integrations.inspect.engine import InspectEngine, engine
from tests.integrations.inspect.loopback import BAD, Answer, Loopback, error, good, serve

KEY = "loop-back-key-0123456789"
WORDS = {"429": "slow down", "500": "out of order", "503": "overloaded", "time-out": "timeout", "empty": "empty",
         "null": "empty", "cut-off": "cut off after 2 of 32 tokens"}  # fmt: skip


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_API_KEY", KEY)


@pytest.fixture
def served() -> Iterator[Callable[..., tuple[Loopback, InspectEngine]]]:
    """Starts a server with a script and an engine that asks it; both end with the test."""
    opened: list[Any] = []

    def start(script: Callable[[int, dict[str, Any]], Answer], **options: Any) -> tuple[Loopback, InspectEngine]:
        server = serve(script)
        opened.append(server)
        running = server.__enter__()
        made = engine(f"openai-api/local/tiny[base_url={running.url}]", wait=0.001, **options)
        opened.append(made)
        return running, made

    yield start
    for one in reversed(opened):
        one.close() if isinstance(one, InspectEngine) else one.__exit__(None, None, None)


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """The first request imports much; without it a short time-out would run out before anything is sent."""
    os.environ["LOCAL_API_KEY"] = KEY
    with serve(lambda n, body: good("[mode: 85]")) as server:
        first = engine(f"openai-api/local/tiny[base_url={server.url}]")
        first.replies([request()])
        first.close()


def patience(kind: str) -> dict[str, int]:
    return {"attempt_timeout": 2} if kind == "time-out" else {}


def request(sample: int = 0, **rules: Any) -> Request:
    asked = Episode(dialogue(task("track_the_stat.mode"), Rules(**rules), sample, length=8)).request()
    assert asked is not None
    return asked


def test_a_good_reply_with_its_account(served):
    usage = {
        "prompt_tokens": 120, "completion_tokens": 9, "total_tokens": 129,
        "prompt_tokens_details": {"cached_tokens": 100}, "completion_tokens_details": {"reasoning_tokens": 4},
    }  # fmt: skip
    server, asked = served(lambda n, body: good("[mode: 85]", **usage))
    [reply] = asked.replies([request()])
    assert (reply.text, reply.failure) == ("[mode: 85]", None)
    assert reply.tokens.to_dict() == {"sent": 120, "new": 20, "cached": 100, "generated": 9, "reasoning": 4}
    [body] = server.bodies
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert body["messages"][1]["content"] == "85"
    assert body["model"] == "tiny"
    assert body.get("max_tokens", body.get("max_completion_tokens")) == request().room == 32


def with_reasoning(text: str | None, field: str = "reasoning_content", **more: Any) -> Answer:
    """A reply whose reasoning, with an answer in it, is in a field of its own."""
    whole = json.loads(good(text, **more)["body"])
    whole["choices"][0]["message"][field] = "so far [mode: 63], or [mode: 51]"
    return {"body": json.dumps(whole).encode()}


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_the_last_answer_after_reasoning_in_a_field_of_its_own(served, field):
    _, asked = served(lambda n, body: with_reasoning("[mode: 63]? No, [mode: 85].", field))
    episode = Episode(dialogue(task("track_the_stat.mode"), Rules(), 0, 8))
    [reply] = asked.replies([episode.request()])
    assert (reply.reasoning, reply.thought) == ("so far [mode: 63], or [mode: 51]", True)
    assert episode.receive(reply) == "right"
    assert episode.messages[-1]["content"] == "[mode: 63]? No, [mode: 85]."
    assert episode.record().reasoned == "1"


def test_reasoning_of_which_only_the_tokens_are_told(served):
    usage = {"completion_tokens": 90, "completion_tokens_details": {"reasoning_tokens": 80}}
    _, asked = served(lambda n, body: good("[mode: 63], no, [mode: 85]", **usage))
    episode = Episode(dialogue(task("track_the_stat.mode"), Rules(), 0, 8))
    assert episode.receive(asked.replies([episode.request()])[0]) == "right"
    assert episode.record().tokens["reasoning"] == 80


def test_failed_calls_are_counted(served):
    _, asked = served(lambda n, body: BAD["503"] if n in (0, 2, 3) else good("[mode: 85]"))
    first, second = asked.replies([request()])[0], asked.replies([request()])[0]
    assert (first.failed_calls, second.failed_calls, second.failure) == (1, 2, None)


def test_the_clients_library_does_not_ask_again_behind_our_back(served):
    """A server need not say `x-should-retry: false`: each request that brings nothing is counted, and there are no
    more of them than `max_retries` allows."""
    bare = {"status": 500, "body": b""}
    server, asked = served(lambda n, body: bare if n in (0, 2, 3) else good("[mode: 85]"))
    counts = [asked.replies([request()])[0].failed_calls for _ in range(2)]
    assert (counts, len(server.bodies)) == ([1, 2], 5)
    down, asked = served(lambda n, body: bare, max_retries=1)
    [reply] = asked.replies([request()])
    assert (reply.failure, reply.failed_calls, len(down.bodies)) == ("server", 2, 2)


def test_many_at_once_come_back_in_order(served):
    first = {i: dialogue(task("track_the_stat.mode"), Rules(), i, 8).turns[0].text for i in range(12)}
    _, asked = served(lambda n, body: good(f"[mode: {body['messages'][-1]['content']}]"))
    replies = asked.replies([request(sample) for sample in first])
    assert [reply.text for reply in replies] == [f"[mode: {text}]" for text in first.values()]
    assert len(set(first.values())) > 6


@pytest.mark.parametrize("kind", BAD)
def test_a_failure_that_passes_leaves_no_trace(served, kind):
    server, asked = served(lambda n, body: BAD[kind] if n == 0 else good("[mode: 85]"), **patience(kind))
    [reply] = asked.replies([request()])
    assert (reply.text, reply.failure, reply.detail) == ("[mode: 85]", None, "")
    assert len(server.bodies) == 2


@pytest.mark.parametrize("kind", BAD)
def test_a_failure_that_stays_is_the_servers_and_never_a_wrong_answer(served, kind):
    def script(n: int, body: dict[str, Any]) -> Answer:
        shown = [m["content"] for m in body["messages"] if m["role"] == "user"]
        return good("[mode: 85]") if len(shown) < 3 else BAD[kind]

    server, asked = served(script, max_retries=1, **patience(kind))
    episode = Episode(dialogue(task("track_the_stat.mode"), Rules(), 0, 8))
    while (turn := episode.request()) is not None:
        episode.receive(asked.replies([turn])[0])
    record = episode.record()
    assert (record.ended, record.outcomes, record.max_length) == ("server", "++", 2)
    assert "(2 tries)" in record.detail
    assert WORDS.get(kind, "") in record.detail
    assert len(record.detail.splitlines()) == 1
    assert len(server.bodies) >= 4
    assert results([record]) == {}  # in no mean, neither as wrong nor with its two turns
    # a second run takes up what was kept, and asks for the rest alone
    server.bodies.clear()
    server.script = lambda n, body: good("[mode: 85]")
    again = Episode(dialogue(task("track_the_stat.mode"), Rules(), 0, 8))
    again.replay(record)
    while (turn := again.request()) is not None:
        again.receive(asked.replies([turn])[0])
    assert (again.status, len(again.outcomes)) == ("done", 8)
    assert len(server.bodies) == 6


def test_tokens_of_a_thrown_away_reply_are_in_the_account(served):
    _, asked = served(lambda n, body: BAD["cut-off"] if n == 0 else good("[mode: 85]"))
    [reply] = asked.replies([request()])
    assert (reply.tokens.sent, reply.tokens.generated) == (200, 8)


def test_a_client_error_is_not_asked_again(served):
    server, asked = served(lambda n, body: error(401, "who are you?"))
    [reply] = asked.replies([request()])
    assert reply.failure == "server"
    assert "401" in reply.detail or "who are you" in reply.detail
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    "answer",
    [
        error(400, "This model's maximum context length is 100 tokens.", code="context_length_exceeded"),
        error(400, "the request exceeds the available context size"),
    ],
)
def test_a_full_context_is_named_as_such(served, answer):
    server, asked = served(lambda n, body: answer)
    [reply] = asked.replies([request()])
    assert reply.failure == "context"
    assert "context" in reply.detail
    assert len(server.bodies) == 1


@pytest.mark.parametrize("usage", [{"completion_tokens": 32}, {"completion_tokens": 0}])
@pytest.mark.parametrize(
    ("text", "outcome"),
    [("Well, let me think about", "truncated"), ("[mode: 8", "truncated"), ("[mode: 85], because 85 is", "right"),
     ("[mode: 84], because", "wrong")],
)  # fmt: skip
def test_a_reply_that_ends_by_length_counts_only_if_its_answer_was_whole(served, usage, text, outcome):
    """Also where the server does not say how many tokens it gave."""
    _, asked = served(lambda n, body: good(text, "length", **usage))
    episode = Episode(dialogue(task("track_the_stat.mode"), Rules(), 0, 8))
    assert episode.receive(asked.replies([episode.request()])[0]) == outcome
    thinking = Episode(dialogue(task("track_the_stat.mode"), Rules(regime="thinking", room=32), 0, 8))
    assert thinking.receive(asked.replies([thinking.request()])[0]) == "truncated"


@pytest.mark.parametrize("text", [" ", "\n\t ", "\u2003", "\u200b\u2060", "\x00"])
def test_a_reply_of_white_space_is_the_servers_failure(served, text):
    server, asked = served(lambda n, body: good(text), max_retries=1)
    [reply] = asked.replies([request()])
    assert (reply.failure, reply.detail, len(server.bodies)) == ("server", "an empty reply (2 tries)", 2)


@pytest.mark.parametrize("kind", [kind for kind in BAD if kind.startswith("an e")])
def test_a_failure_under_the_status_200_costs_one_request_a_try(served, kind):
    server, asked = served(lambda n, body: BAD[kind], max_retries=1)
    [reply] = asked.replies([request()])
    assert (reply.failure, len(server.bodies)) == ("server", 2)
    assert "instead of a reply" in reply.detail or "that ends with" in reply.detail


def test_counts_that_cannot_be_are_not_taken(served):
    _, asked = served(lambda n, body: good("[mode: 85]", prompt_tokens=-5, completion_tokens=10**30))
    [reply] = asked.replies([request()])
    assert (reply.tokens.sent, reply.tokens.generated) == (0, 10**9)


@pytest.mark.parametrize("kind", ["long", "packed", "many characters"])
def test_a_reply_without_end_is_cut_off_while_it_is_read(served, kind):
    answers = {
        "long": {"body": b" " * (guard.MOST_BYTES + 1)},
        "packed": {"body": gzip.compress(os.urandom(2**17)), "headers": {"content-encoding": "gzip"}},
        "many characters": good("8" * (replies.MOST_CHARACTERS + 1)),
    }
    _, asked = served(lambda n, body: answers[kind], max_retries=0)
    [reply] = asked.replies([request()])
    assert reply.failure == "server"
    assert len(repr(reply)) < 2000


def test_half_a_character_does_not_break_the_next_request(served):
    body = good("[mode: 85] X")
    body["body"] = body["body"].replace(b"X", b"\\ud83d")
    server, asked = served(lambda n, sent: body, max_retries=0)
    episode = Episode(dialogue(task("track_the_stat.mode"), Rules(), 0, 3))
    while (turn := episode.request()) is not None:
        episode.receive(asked.replies([turn])[0])
    assert (episode.status, len(server.bodies)) == ("done", 3)
    assert server.bodies[1]["messages"][2]["content"] == "[mode: 85] ?"


def test_what_a_server_says_is_shown_and_not_sent_to_the_terminal(served):
    _, asked = served(lambda n, body: error(401, "no\x1b[2J\x9b31m\x07"), max_retries=0)
    episode = Episode(dialogue(task("track_the_stat.mode"), Rules(), 0, 3))
    episode.receive(asked.replies([episode.request()])[0])
    assert "\\x1b[2J" in episode.detail or "\\\\x1b" in episode.detail
    assert not any(ord(sign) < 32 or 126 < ord(sign) < 160 for sign in episode.detail)


def test_an_episode_has_its_time(served):
    _, asked = served(lambda n, body: BAD["time-out"])
    [reply] = asked.replies_as_they_come([request()], lambda place, reply: None, 0.5)
    assert reply.failure == "time"


def test_reasoning_that_uses_up_the_room_is_no_score(served):
    _, asked = served(lambda n, body: good("", "length", completion_tokens=2048))
    [reply] = asked.replies([request(regime="thinking")])
    assert (reply.failure, reply.detail) == ("truncated", "no answer within 2048 tokens")


def test_a_content_filter_is_a_refusal(served):
    _, asked = served(lambda n, body: good("", "content_filter"))
    episode = Episode(dialogue(task("track_the_stat.mode"), Rules(), 0, 8))
    assert episode.receive(asked.replies([request()])[0]) == "refusal"


def test_back_off_doubles_and_obeys_the_server(served, monkeypatch):
    asked_for: list[tuple[int, float | None]] = []
    pause = InspectEngine._pause

    def watched(self: InspectEngine, tried: int, wanted: float | None) -> float:
        asked_for.append((tried, wanted))
        return 0.0

    monkeypatch.setattr(InspectEngine, "_pause", watched)
    bad = [error(500, "no"), error(429, "wait", {"retry-after": "7"})]
    _, asked = served(lambda n, body: bad[n] if n < 2 else good("[mode: 85]"))
    assert asked.replies([request()])[0].failure is None
    assert asked_for == [(1, None), (2, 7.0)]
    asked.wait = 1.0
    for tried, least, most in ((1, 0.5, 1.5), (2, 1, 3), (3, 2, 6), (20, 30, 90)):
        assert least <= pause(asked, tried, None) <= most
    assert (pause(asked, 1, 7.0), pause(asked, 1, 1e9)) == (7.0, 60.0)


@pytest.mark.parametrize("status", [400, 401, 403, 429, 500])
def test_no_key_in_an_error(served, status, monkeypatch):
    server, asked = served(lambda n, body: error(status, f"bad key {server.keys[-1]} ({KEY})"), max_retries=0)
    [reply] = asked.replies([request()])
    assert server.keys[0] == f"Bearer {KEY}"  # the server did get it
    assert reply.failure == "server"
    assert KEY not in repr(reply) + asked.name
    monkeypatch.delenv("LOCAL_API_KEY")  # the engine knows its key even when the environment no longer does
    assert KEY not in repr(asked.replies([request()]))


def test_the_name_holds_what_is_measured(served):
    server, asked = served(lambda n, body: good("[mode: 85]"))
    assert asked.name == "openai-api/local/tiny"
    warm = engine(f"openai-api/local/tiny[temperature=0.5,base_url={server.url},max_retries=2,seed=3]")
    assert warm.name == "openai-api/local/tiny[temperature=0.5,seed=3]"
    assert warm.retries == 2
    warm.replies([request()])
    assert (server.bodies[-1]["temperature"], server.bodies[-1]["seed"]) == (0.5, 3)
    warm.close()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense/model", "nonsense"),
        ("openai-api/nowhere/model", "NOWHERE_API_KEY"),
        ("openai-api/local/tiny[temperature=hot]", "temperature"),
        ("openai-api/local/tiny[api_key=abcdefghijk]", "environment"),
        ("openai-api/local/tiny[temperature]", "parameter=value"),
    ],
)
def test_a_bad_model_is_refused_in_one_line(text, words, monkeypatch):
    monkeypatch.setenv("LOCAL_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(BadInput) as caught:
        any_engine(text)
    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert "abcdefghijk" not in str(caught.value)


def test_memory_does_not_grow_with_the_turns(served):
    def events() -> int:
        gc.collect()
        return sum(isinstance(thing, ModelEvent) for thing in gc.get_objects())

    _, asked = served(lambda n, body: good("[mode: 85]"))
    before = events()
    for _ in range(5):
        asked.replies([request(), request(1)])
    assert events() <= before


def test_a_server_that_is_not_there(served):
    asked = engine("openai-api/local/tiny[base_url=http://127.0.0.1:9/v1,max_retries=0]")
    [reply] = asked.replies([request()])
    assert isinstance(reply, Reply)
    assert reply.failure == "server"
    assert "Connection" in reply.detail
    asked.close()
