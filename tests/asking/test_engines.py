"""The local engine against a model that sees everything anew at every token, in double precision."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

import statetrack as st
from statetrack.asking import Dialogue, Episode, Rules, dialogue, solver
from statetrack.asking.engines import engine, subject
from statetrack.asking.engines.chat import Chat
from statetrack.asking.engines.forced import score
from statetrack.asking.engines.hf import HFEngine
from statetrack.asking.engines.memory import AttentionMemory, RecurrentMemory, ResentMemory, SingleRowMemory
from statetrack.asking.run import ask
from tests.asking.tiny_models import MODELS, llama, mamba2, saved, tokenizer

MEDIAN = st.task("track_the_stat.median")
WORDS = {True: tokenizer(), False: tokenizer(chat=False)}


def local(kind: str = "llama", chat: bool = True, **options: Any) -> HFEngine:
    words = WORDS[chat]
    return HFEngine(MODELS[kind](len(words)).double(), words, f"hf:{kind}", **options)


def converse(asked: HFEngine, dialogues: list[Dialogue], name: str = "implicit") -> list[Episode]:
    who, episodes = solver(name), [Episode(each) for each in dialogues]
    while pairs := [(game, request) for game in episodes if (request := game.request()) is not None]:
        replies = asked.replies([who.prepare(request) for _, request in pairs])
        for (game, _), reply in zip(pairs, replies, strict=True):
            game.receive(reply)
    return episodes


def ragged(history: str) -> list[Dialogue]:
    """Dialogues of different lengths, so that rows drop out one by one."""
    return [dialogue(MEDIAN, Rules(history=history, room=6), row, turns) for row, turns in enumerate((3, 6, 4))]


@pytest.mark.parametrize(
    ("history", "name", "chat"),
    [
        ("own", "implicit", True),
        ("own", "implicit", False),
        ("corrected", "explicit:implicit", True),
        ("corrected", "implicit", False),
        ("absent", "implicit", True),
        ("absent", "explicit-user:implicit", False),
    ],
)
@pytest.mark.parametrize("kind", list(MODELS))
def test_remembering_changes_nothing_but_the_cost(kind: str, history: str, name: str, chat: bool) -> None:
    kept, plain = local(kind, chat), local(kind, chat)
    plain.kind = ResentMemory
    told = converse(kept, ragged(history), name)
    again = converse(plain, ragged(history), name)
    assert [game.replies for game in told] == [game.replies for game in again]
    assert len({reply for game in told for reply in game.replies}) > 3  # the replies do depend on what was said
    assert kept.processed < plain.processed / 5


@pytest.mark.parametrize("name", ["implicit", "explicit:implicit", "explicit-user:implicit"])
@pytest.mark.parametrize(("lean", "change", "grows"), [(False, "", True), (True, "", True), (False, "index", False)])
def test_a_history_that_grows_has_the_tokens_of_one_that_is_written_whole(
    lean: bool, change: str, grows: bool, name: str
) -> None:
    words = tokenizer(lean=lean)
    if change:  # a template whose messages depend on how many come after them
        words.chat_template = words.chat_template.replace("m['role']", "m['role'] + loop.revindex|string")
    chat, who, game = Chat(words, "some"), solver(name), Episode(dialogue(MEDIAN, Rules(history="own"), 0, 12))
    assert chat.grows == grows
    while (request := game.request()) is not None:
        messages = who.prepare(request).messages
        assert chat.ids(messages, key=7) == chat.ids(messages)
        game.receive("nonsense" if len(game.replies) % 3 else game.dialogue.reply(request.turn))
    other = Episode(dialogue(MEDIAN, Rules(), 1, 3)).request()
    assert other is not None
    assert chat.ids(other.messages, key=7) == chat.ids(other.messages)  # another dialogue under the same key


@pytest.mark.parametrize(
    ("kind", "memory"), [("llama", AttentionMemory), ("mistral", SingleRowMemory), ("mamba2", RecurrentMemory)]
)
def test_each_kind_of_model_has_its_memory(kind: str, memory: type) -> None:
    assert local(kind).kind is memory


@pytest.mark.parametrize("kind", ["llama", "mamba2"])
def test_with_canonical_replies_every_token_is_processed_once(kind: str) -> None:
    asked = local(kind)
    asked.forced = lambda request: request.dialogue.reply(request.turn)
    (game,) = converse(asked, [dialogue(MEDIAN, Rules(), 0, 30)])
    assert (game.status, game.right) == ("done", 30)
    final = len(asked.chat.ids(game.messages, reply_follows=False))
    assert asked.processed <= 1.02 * final
    assert game.tokens.sent == game.tokens.new + game.tokens.cached
    assert game.tokens.sent > 5 * game.tokens.new


def test_a_batch_shares_what_its_rows_begin_with() -> None:
    asked = local()
    asked.forced = lambda request: request.dialogue.reply(request.turn)
    converse(asked, [dialogue(MEDIAN, Rules(), row, 1) for row in range(4)])
    system = len(asked.chat.ids(Episode(dialogue(MEDIAN, Rules(), 0, 1)).messages, reply_follows=False))
    assert asked.processed < 2 * system


def memorised(kind: str, chat: bool) -> HFEngine:
    """A model that has learned one dialogue, so that its greedy replies are canonical here and wrong there."""
    asked = local(kind, chat)
    game = Episode(dialogue(MEDIAN, Rules(), 0, 10))
    while (request := game.request()) is not None:
        game.receive(game.dialogue.reply(request.turn))
    ids = torch.tensor([asked.chat.ids(game.messages, reply_follows=False)])
    model = asked.model.float()
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(60):
        model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    asked.model = model.double().eval()
    return asked


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize("kind", ["llama", "mamba2"])
def test_one_teacher_forced_pass_is_the_greedy_dialogue(kind: str, chat: bool) -> None:
    asked = memorised(kind, chat)
    mixed = set()
    for sample in range(2):
        told = dialogue(MEDIAN, Rules(history="corrected", room=16), sample, 14)
        scored = score(asked, told)
        (game,) = converse(asked, [told])
        canonical = [reply == told.reply(turn) for reply, turn in zip(game.replies, told.turns)]
        assert scored.outcomes == "".join("+" if good else "x" for good in canonical)
        assert len(scored.logprobs) == 14
        mixed |= set(scored.outcomes)
    assert mixed == {"+", "x"}


def test_teacher_forcing_in_pieces_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    told = dialogue(MEDIAN, Rules(), 1, 20)
    for kind in MODELS:
        asked = local(kind)
        whole = score(asked, told)
        monkeypatch.setattr("statetrack.asking.engines.forced.LOGITS", 50 * 600)
        pieces = score(asked, told)
        monkeypatch.undo()
        assert pieces.outcomes == whole.outcomes
        assert pieces.logprobs == pytest.approx(whole.logprobs)


@pytest.mark.parametrize("context", range(400, 410))
def test_a_dialogue_that_does_not_fit_is_cut_off_not_wrong(context: int) -> None:
    words = WORDS[True]
    asked = HFEngine(llama(len(words), context=context).double(), words, "hf:small")
    asked.forced = lambda request: request.dialogue.reply(request.turn)
    (game,) = converse(asked, [dialogue(MEDIAN, Rules(), 0, 60)])
    assert game.status == "context"
    assert f"do not fit the {context} of hf:small" in game.detail
    assert 0 < game.right == len(game.outcomes) < 60
    with pytest.raises(st.BadInput, match=f"takes {context}"):
        score(asked, dialogue(MEDIAN, Rules(), 0, 60))


def test_a_template_without_a_system_role_gets_it_in_the_first_message() -> None:
    words = tokenizer()
    words.chat_template = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}" + str(
        words.chat_template
    )
    asked = HFEngine(mamba2(len(words)), words, "hf:folded")
    text = asked.chat.text([{"role": "system", "content": "Rules."}, {"role": "user", "content": "85"}])
    assert text.startswith("<|im_start|>user\nRules.\n\n85<|im_end|>")


def test_a_model_is_loaded_from_a_folder(tmp_path: Any) -> None:
    asked = engine(f"hf:{saved(tmp_path / 'tiny')}", device="cpu", batch=4)
    assert asked.batch == 4
    (game,) = converse(asked, [dialogue(MEDIAN, Rules(room=4), 0, 2)])  # type: ignore[arg-type]
    assert game.status in ("format", "wrong")
    assert game.tokens.generated <= 4


@pytest.mark.parametrize(
    ("spec", "part"),
    [("hf:", "needs a folder"), ("gpt-4", "PROVIDER/MODEL"), ("hf:nowhere.gguf", "no file nowhere.gguf"),
     ("hf:./no_such_folder", "cannot be loaded")],
)  # fmt: skip
def test_models_that_are_not_there(spec: str, part: str) -> None:
    with pytest.raises(st.BadInput, match=part):
        engine(spec)


def test_results_are_filed_without_the_way_to_the_server() -> None:
    assert subject("openai-api/x/y[base_url=http://u:pw@h/v1,temperature=0]") == "openai-api/x/y[temperature=0]"


def thinking_engine(template: str, special: bool) -> HFEngine:
    """The tiny Llama behind a template that begins to think, with marks that are special tokens or plain text."""
    words = tokenizer()
    words.chat_template = words.chat_template.replace("assistant\n' }}", f"assistant\n{template}' }}}}")
    if special:
        words.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<think>", "</think>"]})
    return HFEngine(llama(len(words)).double(), words, "hf:thinker")


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize(("opens", "text", "outcome"), [
    ("<think>", "85, so [median: 1]</think>[median: 2]? [median: 85]", "right"),
    ("<think>", "85, so [median: 85]", "format"),  # it is still thinking
    ("", "<think>[median: 1]</think>[median: 2]? [median: 85]", "right"),
    ("<think></think>", "[median: 85]", "right"),  # a template that says: do not think
])  # fmt: skip
def test_answers_of_a_local_model_are_taken_after_its_thinking(
    special: bool, opens: str, text: str, outcome: str
) -> None:
    asked = thinking_engine(opens, special)
    assert asked.chat.opens == ("<think>" if opens == "<think>" else "")
    game = Episode(dialogue(MEDIAN, Rules(room=200), 0, 3))
    request = game.request()
    assert request is not None
    ids = [*asked.chat.tokenizer(text, add_special_tokens=False)["input_ids"], *asked.stops]
    reply = asked._reply(request, [1] * 9, 0, ids)
    assert game.receive(reply) == outcome
    assert reply.thought is bool(opens == "<think>" or "think" in text)
    assert (reply.tokens.reasoning > 0) is reply.thought


def test_a_pass_over_right_answers_is_not_for_a_model_that_thinks_first() -> None:
    with pytest.raises(st.BadInput, match="hf:thinker thinks before it answers"):
        score(thinking_engine("<think>", special=False), dialogue(MEDIAN, Rules(), 0, 3))


def test_a_local_reply_that_uses_up_its_room_is_noted() -> None:
    games = converse(local(), [dialogue(MEDIAN, Rules(history="own", room=3), 0, 4)])
    record = games[0].record()
    assert record.truncated == sum(len(reply) > 0 for reply in record.replies) > 0


def test_a_model_that_can_think_is_told_where_it_is_asked_for_answers_at_once(tmp_path: Path) -> None:
    words = tokenizer()
    words.chat_template = f"{{# </think> #}}{words.chat_template}"
    llama(len(words)).save_pretrained(tmp_path)
    words.save_pretrained(tmp_path)
    told: list[str] = []
    for rules, forced in ((Rules(), False), (Rules(), True), (Rules(room=4), False), (Rules(regime="thinking"), False)):
        with suppress(StopIteration):
            ask(MEDIAN, rules, solver("implicit"), [0], length=1, model="hf:tiny", forced=forced, warn=told.append,
                engine=lambda: HFEngine.load(str(tmp_path), "cpu"), report=_stop)  # fmt: skip
    assert [line.partition(": ")[2].partition(" a")[0] for line in told] == ["with 32 tokens", "one pass over right"]
    assert all("can think before it answers" in line for line in told)


def _stop(ended: int, turns: int) -> None:
    raise StopIteration
