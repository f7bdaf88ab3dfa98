"""The episode: what stands in the history, what ends it, and what is kept."""

from __future__ import annotations

import pytest

import statetrack as st
from statetrack.asking import Episode, Reply, Rules, Tokens, dialogue, play
from statetrack.secrets import scrub

MEDIAN = st.task("track_the_stat.median")  # seed 0: 85 63 51 26, medians 85 74 63 57


def episode(length: int = 4, **rules: object) -> Episode:
    return Episode(dialogue(MEDIAN, Rules(**rules), 0, length))  # type: ignore[arg-type]


def say(game: Episode, *replies: str) -> list[str]:
    outcomes = []
    for reply in replies:
        assert game.request() is not None
        outcomes.append(game.receive(reply))
    return outcomes


def contents(game: Episode) -> list[str]:
    return [message["content"] for message in game.messages[1:]]


def test_the_original_episode() -> None:
    game = episode()
    assert say(game, "[median: 85]", "So: **[Median: 74.0]**", "[median: 64]") == ["right", "right", "wrong"]
    assert game.request() is None
    assert (game.status, game.right) == ("wrong", 2)
    assert contents(game) == ["85", "[median: 85]", "63", "So: **[Median: 74.0]**"]
    assert game.messages[0]["role"] == "system"
    assert game.record().outcomes == "++x"
    assert game.record().changes == "-11"


def test_the_request_carries_the_history_and_the_new_number_alone() -> None:
    game = episode()
    say(game, "[median: 85]")
    request = game.request()
    assert request is not None
    assert [message["role"] for message in request.messages] == ["system", "user", "assistant", "user"]
    assert request.messages[-1]["content"] == "63"


@pytest.mark.parametrize(
    ("reply", "status"),
    [("[median: 1]", "wrong"), ("85", "format"), ("", "format"), ("I'm sorry, I cannot help.", "refusal")],
)
def test_failures_have_classes(reply: str, status: str) -> None:
    game = episode()
    assert say(game, reply) == [status]
    assert game.request() is None
    assert game.record().ended == status


def test_a_reply_that_the_server_kept_back_is_a_refusal_whatever_its_text() -> None:
    game = episode(history="own")
    game.request()
    assert game.receive(Reply("[med", refused=True)) == "refusal"
    assert game.request() is not None
    assert game.receive(Reply("[median: 74]", refused=True)) == "right"  # an answer is an answer
    record = game.record()
    again = episode(history="own")
    again.replay(record)
    assert again.record() == record


def test_own_history_goes_on_with_what_was_said() -> None:
    game = episode(history="own")
    assert say(game, "[median: 1]", "", "[median: 63]", "nonsense") == ["wrong", "format", "right", "format"]
    assert game.request() is None
    assert (game.status, game.right) == ("done", 0)
    assert contents(game) == ["85", "[median: 1]", "63", "-", "51", "[median: 63]", "26", "nonsense"]
    assert game.record().outcomes == "xf+f"


def test_corrected_history_holds_right_answers_only() -> None:
    game = episode(history="corrected")
    say(game, "[median: 1]", "well, [median: 74]", "?", "[median: 57]")
    assert contents(game) == [
        "85",
        "[median: 85]",
        "63",
        "well, [median: 74]",
        "51",
        "[median: 63]",
        "26",
        "[median: 57]",
    ]


def test_absent_history_holds_inputs_only() -> None:
    game = episode(history="absent")
    say(game, "[median: 1]", "[median: 74]")
    request = game.request()
    assert request is not None
    assert [message["role"] for message in request.messages] == ["system", "user"]
    assert request.messages[1]["content"] == "85\n63\n51"


def test_reasoning_is_not_kept_unless_asked() -> None:
    thought = "85 and 63: [median: 1]? No, the mean. [median: 74]"
    for keep, kept in ((False, "[median: 74]"), (True, thought)):
        game = episode(regime="thinking", keep_reasoning=keep)
        assert say(game, "[median: 85]", thought) == ["right", "right"]
        assert contents(game)[-1] == kept
    game = episode()
    assert say(game, "<think>hm [median: 1]</think>\n[median: 85]") == ["right"]
    assert contents(game)[-1] == "[median: 85]"


def test_hidden_reasoning_is_kept_when_asked() -> None:
    game = episode(regime="thinking", keep_reasoning=True)
    game.request()
    game.receive(Reply("[median: 85]", reasoning="one number"))
    assert contents(game)[-1] == "one number\n[median: 85]"


@pytest.mark.parametrize("kind", ["context", "limit", "server"])
def test_an_interruption_is_no_failure_of_the_model(kind: str) -> None:
    game = episode()
    say(game, "[median: 85]")
    game.request()
    game.receive(Reply(failure=kind, detail="why"))
    assert game.request() is None
    record = game.record()
    assert (record.ended, record.detail, record.max_length, record.outcomes) == (kind, "why", 1, "+")
    with pytest.raises(st.BadInput, match="unknown interruption"):
        game.interrupt("boredom")


def test_a_limit_of_tokens_cuts_off() -> None:
    game = episode(limit=100)
    for reply in ("[median: 85]", "[median: 74]"):
        game.request()
        game.receive(Reply(reply, tokens=Tokens(sent=45, new=45, generated=5)))
    assert game.request() is None
    assert (game.status, game.right) == ("limit", 2)


def test_an_interrupted_episode_is_taken_up_again() -> None:
    game = episode()
    say(game, "[median: 85]", "[median: 74]")
    game.interrupt("server")
    again = episode()
    again.replay(game.record())
    assert again.messages == game.messages
    assert say(again, "[median: 63]", "[median: 57]") == ["right", "right"]
    assert again.request() is None
    assert again.status == "done"


def test_acknowledgements_cost_no_request() -> None:
    game = episode(every=2)
    assert say(game, "[median: 74]", "[median: 57]") == ["right", "right"]
    assert contents(game) == ["85", "[ok]", "63?", "[median: 74]", "51", "[ok]", "26?", "[median: 57]"]
    assert game.request() is None
    assert game.record().positions == [2, 4]


def test_the_lenient_parser_is_a_rule() -> None:
    assert say(episode(parser="lenient"), "85!") == ["right"]


def test_play_with_a_function() -> None:
    seen: list[int] = []

    def reply(messages: list[dict[str, str]]) -> str:
        seen.append(int(messages[-1]["content"]))
        middle = sorted(seen)
        half = len(middle) // 2
        return f"[median: {middle[half] if len(middle) % 2 else (middle[half - 1] + middle[half]) / 2}]"

    game = play(dialogue(MEDIAN, Rules(), 0), reply)
    assert (game.status, game.right) == ("done", 300)


def test_keys_are_kept_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "very-secret-value")
    for text in ("bad key very-secret-value!", "Authorization: Bearer very-secret-value", "sk-abcdefgh12345678",
                 "https://user:very@host", "api_key=abc"):  # fmt: skip
        assert "very" not in scrub(text)
        assert "sk-abc" not in scrub(text)
    game = episode()
    game.interrupt("server", "401 for very-secret-value")
    assert "very-secret-value" not in str(game.record())
