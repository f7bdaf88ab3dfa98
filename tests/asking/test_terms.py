"""What a record says of how it was asked: prompts, their hash, effort, budget, truncation, failed calls, reasoning."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import statetrack as st
from statetrack.asking import Episode, Reply, Request, Rules, Tokens, dialogue, solver
from statetrack.asking.run import ask
from statetrack.asking.terms import fingerprint, terms
from statetrack.results import AskedRecord, Store
from statetrack.results.records import write

MEDIAN, MODE = st.task("track_the_stat.median"), st.task("track_the_stat.mode")


class Thinker:
    """An engine that names two answers after thinking in a field of its own, and fails where it is told to."""

    name, batch = "some/thinker[reasoning_effort=high,reasoning_tokens=4096]", 4

    def __init__(self, fail_at: int | None = None) -> None:
        self.fail_at = fail_at

    def replies(self, requests: Sequence[Request]) -> list[Reply]:
        return [self.reply(request) for request in requests]

    def reply(self, request: Request) -> Reply:
        if len(request.turn.seen) == self.fail_at:
            return Reply(failure="server", detail="503", failed_calls=6)
        text = f"[median: 100]? No: {request.dialogue.reply(request.turn)}"
        spent = Tokens(sent=10, new=10, generated=9, reasoning=5)
        return Reply(text, "let me see", spent, full=len(request.turn.seen) == 2, failed_calls=1)

    def close(self) -> None: ...


def asked(out: Path, engine: Thinker, name: str = "implicit") -> AskedRecord:
    (record,) = ask(MEDIAN, Rules(), solver(name), [0], length=5, model=engine.name, engine=lambda: engine, out=out)
    return record


def test_a_record_tells_how_it_was_asked(tmp_path: Path) -> None:
    episode = asked(tmp_path, Thinker()).episode
    game = dialogue(MEDIAN, Rules(), 0, 5)
    assert (episode.system, episode.prompts) == (game.system, ["85", "63", "51", "26", "30"])
    assert (episode.effort, episode.reasoning_budget, episode.budget) == ("high", 4096, 32)
    assert (episode.truncated, episode.failed_calls, episode.reasoned) == (1, 5, "11111")
    assert episode.tokens["reasoning"] == 25
    assert episode.prompt_sha256 == fingerprint(MEDIAN, Rules())
    (kept,) = Store(tmp_path).records()
    assert kept.episode == episode  # type: ignore[attr-defined]


def test_an_episode_that_is_taken_up_keeps_all_of_it(tmp_path: Path) -> None:
    """The last answer counts again where the record, which does not hold the reasoning, says that there was some."""
    cut = asked(tmp_path, Thinker(fail_at=4)).episode
    assert (cut.outcomes, cut.reasoned, cut.failed_calls, cut.truncated) == ("+++", "111", 3 + 6, 1)
    whole, straight = asked(tmp_path, Thinker()).episode, asked(tmp_path / "other", Thinker()).episode
    assert (whole.outcomes, whole.failed_calls) == ("+++++", 9 + 2)
    assert (whole.prompts, whole.reasoned, whole.truncated) == (straight.prompts, straight.reasoned, straight.truncated)


def test_what_is_between_two_answers_is_kept() -> None:
    game = Episode(dialogue(MEDIAN, Rules(every=2), 0, 4))
    for reply in ("[median: 74]", "[median: 57]"):
        game.request()
        game.receive(reply)
    assert game.record().prompts == ["85\n63?", "51\n26?"]
    whole = Episode(dialogue(st.task("s3"), Rules(way="whole"), 0, 6))
    whole.request()
    whole.receive("5")
    assert whole.record().prompts == [whole.dialogue.turns[0].text]


def test_the_state_is_not_kept_anew_at_every_turn() -> None:
    """The first message tells its form; all of them would be 300 lists of up to 300 numbers."""
    shown, plain = (ask(MEDIAN, Rules(), solver(name), [0])[0] for name in ("explicit:oracle", "oracle"))
    assert shown.episode.shown == "[85]"
    sizes = [len(json.dumps(write(record))) for record in (shown, plain)]
    assert sizes[0] < sizes[1] + 200
    assert sizes[1] < 20_000
    assert len(json.dumps(plain.episode.prompts)) < 3_000


def test_no_key_is_kept_in_a_prompt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SOME_API_KEY", "abracadabra-4711")
    (tmp_path / "lamp.yaml").write_text(
        "states: [off, on]\nalphabet: [press abracadabra-4711, wait]\nstart: off\nsteps:\n"
        "  off: {press abracadabra-4711: on, wait: off}\n  on: {press abracadabra-4711: off, wait: on}\n"
        "answers: {off: 0, on: 1}\n"
    )
    task = st.task(f"automaton[file={tmp_path}/lamp.yaml]")
    (record,) = ask(task, Rules(), solver("oracle"), [0], length=20)
    kept = json.dumps([record.episode.system, record.episode.prompts])
    assert "press ***" in kept
    assert "abracadabra" not in kept


def test_the_hash_is_of_the_words_alone() -> None:
    """The same for every sample, length and subject; another as soon as what is said differs."""
    plain = fingerprint(MEDIAN, Rules())
    for sample, length in ((0, 5), (7, 300)):
        found = terms(dialogue(MEDIAN, Rules(), sample, length), solver("implicit"), "some/model")
        assert (found["prompt_sha256"], found["effort"], found["reasoning_budget"]) == (plain, "", None)
    same = [Rules(history="own"), Rules(parser="lenient"), Rules(room=64), Rules(limit=1000)]
    assert {fingerprint(MEDIAN, rules) for rules in same} == {plain}
    other = [fingerprint(MODE, Rules()), fingerprint(MEDIAN, Rules(regime="thinking")),
             fingerprint(MEDIAN, Rules(every=2)), fingerprint(MEDIAN, Rules(), shows_state=True),
             fingerprint(MEDIAN, Rules(way="whole")), fingerprint(MEDIAN, Rules(way="whole", shots=2))]  # fmt: skip
    assert len({plain, *other}) == 7
    table = Rules(way="whole", style="table")
    assert len({terms(dialogue(st.task("s5"), table, n, 9), solver("oracle"))["prompt_sha256"] for n in (0, 1)}) == 1


def test_the_first_answer_counts_without_reasoning_and_the_last_with_it() -> None:
    text = "[median: 1], no, [median: 85]"
    for reply, outcome in [
        (Reply(text), "wrong"),
        (Reply(text, reasoning="hm"), "right"),
        (Reply(text, reasoned=True), "right"),  # kept back by the server, which counts its tokens
        (Reply(f"<think>[median: 2]</think>{text}"), "right"),
        (Reply(f"{text}<think>[median: 85]"), "format"),
        (Reply(f"{text} [median: 8", reasoning="hm", cut=True), "truncated"),  # more was to come
    ]:
        game = Episode(dialogue(MEDIAN, Rules(), 0, 5))
        game.request()
        assert game.receive(reply) == outcome
