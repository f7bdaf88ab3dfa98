"""What can be known of the model of a run: whether it thinks before it answers, and whether a server answers for it."""

from __future__ import annotations

from functools import cached_property
from inspect import getattr_static
from typing import Any

from lm_eval.models.api_models import LMEVAL_MODEL_NONE_ANSWER_PLACEHOLDER, TemplateAPI

from statetrack.asking.answers import marks_reasoning
from statetrack.asking.bodies import failure_in
from statetrack.secrets import scrubbed


def thinks(model: Any) -> bool:
    """Whether a model thinks before it answers, as far as its settings and its chat template say so; one behind a
    server does not show them.
    """
    model = getattr(model, "lm", model)  # what a cache of replies wraps
    told = getattr(model, "enable_thinking", None)
    if told is not None:
        return bool(told)
    template = getattr(_tokenizer(model), "chat_template", None)
    return getattr(model, "think_end_token", None) is not None or marks_reasoning(str(template or ""))


def _tokenizer(model: Any) -> Any | None:
    """The tokenizer that a model has. One that it would only now make, as the harness's `dummy` downloads one, is not
    asked for: what this model is told is no chat.
    """
    made_when_read = isinstance(getattr_static(model, "tokenizer", None), cached_property)
    return None if made_when_read else getattr(model, "tokenizer", None)


def is_served(model: Any) -> bool:
    return isinstance(getattr(model, "lm", model), TemplateAPI)


def guard_replies(model: Any) -> None:
    """Clean what a server says where it comes in: the harness keeps replies in its cache before a task sees them. One
    that tells of a failure, or has no text, is none.
    """
    api = getattr(model, "lm", model)
    if is_served(api) and not isinstance(api.parse_generations, _CleanReplies):
        api.parse_generations = _CleanReplies(api.parse_generations)


class _CleanReplies:
    """A model's `parse_generations`."""

    def __init__(self, parse: Any) -> None:
        self.parse = parse

    def __call__(self, outputs: Any, **more: Any) -> list[str | None]:
        came = [
            {} if failure_in(each) else scrubbed(each) for each in (outputs if isinstance(outputs, list) else [outputs])
        ]
        return [text if isinstance(text, str) else None for text in self.parse(outputs=came, **more)]


def never_came(reply: str) -> bool:
    """Whether the harness stands in with a text of its own, or with none, for what a server did not say."""
    return not reply.strip() or reply == LMEVAL_MODEL_NONE_ANSWER_PLACEHOLDER
