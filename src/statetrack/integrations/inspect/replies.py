"""From Inspect's messages and outputs to those of `statetrack.asking`, and back."""

from __future__ import annotations

from collections.abc import Sequence

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentReasoning,
    ModelOutput,
    ModelUsage,
)

from statetrack.asking.episode import CONTEXT, SERVER, TRUNCATED, Message, Reply
from statetrack.asking.tokens import NO_TOKENS, Tokens

MOST_TOKENS = 10**9  # that one request can have had
MOST_CHARACTERS = 2**20  # of a reply, its reasoning included
LONGEST = 300  # characters of what a server says that are kept as a reason

_KINDS = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


class MessageHistory:
    """The history as Inspect's messages. One that was there before stays the same object: Inspect stores it once."""

    def __init__(self) -> None:
        self._messages: list[ChatMessage] = []

    def of(self, messages: Sequence[Message]) -> list[ChatMessage]:
        same = 0
        for old, message in zip(self._messages, messages):
            if (old.role, old.text) != (message["role"], message["content"]):
                break
            same += 1
        new = [_KINDS[message["role"]](content=message["content"]) for message in messages[same:]]
        self._messages = [*self._messages[:same], *new]
        return list(self._messages)


def tokens(usage: ModelUsage | None) -> Tokens:
    """Inspect counts input without what was read from a cache or written to one.

    >>> tokens(ModelUsage(input_tokens=10, input_tokens_cache_read=90, input_tokens_cache_write=5, output_tokens=7))
    Tokens(sent=105, new=15, cached=90, generated=7, reasoning=0)
    """
    if usage is None:
        return NO_TOKENS
    cached = _count(usage.input_tokens_cache_read)
    new = _count(usage.input_tokens) + _count(usage.input_tokens_cache_write)
    return Tokens(new + cached, new, cached, _count(usage.output_tokens), _count(usage.reasoning_tokens))


def _count(told: int | None) -> int:
    """What a server says that it counted, where that can be."""
    return min(max(told or 0, 0), MOST_TOKENS)


def read(output: ModelOutput, room: int | None) -> Reply:
    """What a provider gave. A reply that cannot be used is the server's failure, and may be asked for again.

    A reply that ends by length before its room is used up was cut off by the server. Where all of the room is used, or
    the server does not say how much was, the reply is marked as cut: it counts only if its answer was whole by then.
    """
    spent = tokens(output.usage)
    if output.empty:
        return Reply(tokens=spent, failure=SERVER, detail=output.error or "a reply without a message")
    text, reasoning = output.completion, _reasoning(output)
    within = "any number of tokens" if room is None else f"{room} tokens"
    if len(text) + len(reasoning) > MOST_CHARACTERS:
        many = f"{len(text) + len(reasoning):,} characters"
        return Reply(tokens=spent, failure=SERVER, detail=f"a reply of {many} to a request for {within}")
    if output.stop_reason == "model_length":
        return Reply(tokens=spent, failure=CONTEXT, detail=output.error or text[:LONGEST] or "the context is full")
    if output.stop_reason == "content_filter":
        return Reply(text, reasoning, spent, refused=True)
    cut = output.stop_reason == "max_tokens"
    if cut and room is not None and 0 < spent.generated < room:
        return Reply(tokens=spent, failure=SERVER, detail=f"a reply cut off after {spent.generated} of {room} tokens")
    if not any(sign.isprintable() and not sign.isspace() for sign in text):
        kind, what = (TRUNCATED, f"no answer within {within}") if cut else (SERVER, "an empty reply")
        return Reply(tokens=spent, failure=kind, detail=what)
    return Reply(text, reasoning, spent, cut=cut, reasoned=_reasoned(output))


def _blocks(output: ModelOutput) -> list[ContentReasoning]:
    content = output.message.content
    return [] if isinstance(content, str) else [part for part in content if isinstance(part, ContentReasoning)]


def _reasoning(output: ModelOutput) -> str:
    """What can be read of it: some servers give a summary alone, or nothing."""
    return "\n".join(told for part in _blocks(output) if (told := part.summary if part.redacted else part.reasoning))


def _reasoned(output: ModelOutput) -> bool:
    """Also where what was thought is kept back."""
    return bool(_blocks(output)) or tokens(output.usage).reasoning > 0
