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

from statetrack.asking.episode import CONTEXT, LIMIT, SERVER, Message, Reply
from statetrack.asking.tokens import NO_TOKENS, Tokens

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
    cached = usage.input_tokens_cache_read or 0
    new = usage.input_tokens + (usage.input_tokens_cache_write or 0)
    return Tokens(new + cached, new, cached, usage.output_tokens, usage.reasoning_tokens or 0)


def read(output: ModelOutput, room: int) -> Reply:
    """What a provider gave. A reply that cannot be used is the server's failure, and may be asked for again.

    A model that talks until its room is used up is taken at its word, unless all of the room went into reasoning: then
    a limit has cut it off. A reply that ends by length before its room is used up was cut off by the server.
    """
    spent = tokens(output.usage)
    if output.empty:
        return Reply(tokens=spent, failure=SERVER, detail=output.error or "a reply without a message")
    text = output.completion
    if output.stop_reason == "model_length":
        return Reply(tokens=spent, failure=CONTEXT, detail=output.error or text or "the context is full")
    if output.stop_reason == "content_filter":
        return Reply(text, tokens=spent, refused=True)
    if output.stop_reason == "max_tokens" and 0 < spent.generated < room:
        return Reply(tokens=spent, failure=SERVER, detail=f"a reply cut off after {spent.generated} of {room} tokens")
    if output.stop_reason == "max_tokens" and not text:
        return Reply(tokens=spent, failure=LIMIT, detail=f"no answer within {room} tokens")
    if not text:
        return Reply(tokens=spent, failure=SERVER, detail="an empty reply")
    return Reply(text, _reasoning(output), spent)


def _reasoning(output: ModelOutput) -> str:
    content = output.message.content
    if isinstance(content, str):
        return ""
    return "\n".join(part.reasoning for part in content if isinstance(part, ContentReasoning))
