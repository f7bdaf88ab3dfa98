"""Teacher-forced scoring: all turns of a dialogue in one pass, with the canonical replies in the history.

With canonical replies the prompt of turn t depends on the stream alone. So one pass over the finished dialogue shows,
for every turn, whether greedy decoding would have written the canonical reply. Up to the first turn where it would not,
that is what the dialogue itself gives; beyond it, it is the curve with the history corrected.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from statetrack.asking.dialogue import Dialogue
from statetrack.asking.engines.hf import NEWLINE, HFEngine
from statetrack.asking.engines.memory import AttentionMemory, RecurrentMemory, ResentMemory, SingleRowMemory
from statetrack.asking.episode import LETTERS, RIGHT, WRONG, Episode
from statetrack.asking.tokens import Tokens
from statetrack.errors import BadInput
from statetrack.results.records import EpisodeRecord as KeptEpisode

LOGITS = 2**27  # held at a time at most: a long dialogue with a large vocabulary goes in pieces


Span = range
"""The places of one reply in the tokens of the dialogue; at its stop is the token that ends it."""


@torch.inference_mode()
def score(engine: HFEngine, dialogue: Dialogue) -> KeptEpisode:
    """The record of a dialogue, as `Episode.record` has it, with the log-probability of each reply.

    A turn counts as right where the canonical reply is the greedy one, token by token, its end included.
    """
    if dialogue.rules.history == "absent" or dialogue.rules.way == "whole":
        raise BadInput("teacher-forced scoring needs a dialogue whose history holds the replies")
    if engine.chat.opens:
        raise BadInput(f"{engine.name} thinks before it answers: a pass over right answers alone tells nothing of it")
    plain = replace(dialogue.rules, regime="instant", history="stop", parser="strict")
    episode, tokens, spans = _canonical(engine, replace(dialogue, rules=plain))
    if engine.limit is not None and len(tokens) > engine.limit:
        raise BadInput(f"the dialogue has {len(tokens)} tokens; {engine.name} takes {engine.limit}")
    greedy, logprobs = _pass(engine, tokens, spans)
    good = [_is_greedy(engine, tokens, span, greedy) for span in spans]
    return replace(
        episode.record(),
        outcomes="".join(LETTERS[RIGHT if right else WRONG] for right in good),
        max_length=next((turn for turn, right in enumerate(good) if not right), len(good)),
        logprobs=[sum(logprobs.get(place, 0.0) for place in span) for span in spans],
        tokens=Tokens(sent=len(tokens), new=len(tokens)).to_dict(),
    )


def _canonical(engine: HFEngine, dialogue: Dialogue) -> tuple[Episode, list[int], list[Span]]:
    """The episode in which every reply is the canonical one, its tokens, and where the replies stand in them."""
    episode, prompts = Episode(dialogue), []
    while (request := episode.request()) is not None:
        prompts.append(engine.chat.ids(request.messages, key=-1))
        episode.receive(dialogue.reply(request.turn))
    engine.chat.forget(-1)
    tokens = engine.chat.ids(episode.messages, reply_follows=False)
    if any(tokens[: len(prompt)] != prompt for prompt in prompts):
        raise BadInput(f"{engine.name} joins a reply's first token with what stands before it; ask turn by turn")
    return episode, tokens, [Span(len(prompt), _end(engine, tokens, len(prompt))) for prompt in prompts]


def _end(engine: HFEngine, tokens: list[int], first: int) -> int:
    """The place of the token that ends the reply which begins at `first`."""
    for place in range(first, len(tokens)):
        by_line = not engine.chat.templated and NEWLINE in engine.chat.decode(tokens[place : place + 1])
        if tokens[place] in engine.stops or by_line:
            return place
    return len(tokens)


def _pass(engine: HFEngine, tokens: list[int], spans: list[Span]) -> tuple[dict[int, int], dict[int, float]]:
    """For every place of a reply: the token that greedy decoding would put there, the log-probability of the one there.

    What stands at a place is predicted at the one before it, so only those places need the head of the model.
    """
    asked = [place for span in spans for place in (*span, span.stop)]
    most = max(1, LOGITS // engine.model.config.vocab_size)
    whole = len(asked) <= most or engine.kind is ResentMemory
    width = len(tokens) if whole else most
    memory = None if whole else (AttentionMemory if engine.kind is SingleRowMemory else engine.kind)(engine.model, 1)
    greedy: dict[int, int] = {}
    logprobs: dict[int, float] = {}
    for begin in range(0, len(tokens), width):
        places = [place for place in asked if begin < place <= begin + width]
        logits = _logits(engine, memory, tokens[begin : begin + width], [place - 1 - begin for place in places]).float()
        greedy.update(zip(places, logits.argmax(-1).tolist()))
        there = [place for place in places if place < len(tokens)]
        chosen = torch.tensor([tokens[place] for place in there], device=logits.device)
        chosen_logprobs = logits[: len(there)].gather(1, chosen[:, None])[:, 0] - logits[: len(there)].logsumexp(-1)
        logprobs.update(zip(there, chosen_logprobs.tolist()))
    return greedy, logprobs


def _logits(engine: HFEngine, memory: Any, piece: list[int], places: list[int]) -> Tensor:
    """Feed a piece, and give the logits at some places in it. Without a memory it is the whole."""
    kept: dict[str, Any] = {}
    if isinstance(memory, AttentionMemory):
        kept = {"past_key_values": memory.cache}
    elif isinstance(memory, RecurrentMemory):
        kept = {"cache_params": memory.cache}
    device = engine.model.device
    ids, wanted = torch.tensor([piece], device=device), torch.tensor(places, dtype=torch.long, device=device)
    out = engine.model(input_ids=ids, use_cache=bool(kept), logits_to_keep=wanted, **kept)
    return out.logits[0]


def _is_greedy(engine: HFEngine, tokens: list[int], span: Span, greedy: dict[int, int]) -> bool:
    """Whether greedy decoding writes the reply and then ends it."""
    if any(greedy[place] != tokens[place] for place in span):
        return False
    last = greedy[span.stop]
    return last in engine.stops or (not engine.chat.templated and engine.chat.decode([last]).startswith(NEWLINE))
