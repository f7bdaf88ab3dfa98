"""What can be known of the model of a run: whether it thinks before it answers, and whether a server answers for it."""

from __future__ import annotations

from typing import Any

from lm_eval.models.api_models import LMEVAL_MODEL_NONE_ANSWER_PLACEHOLDER, TemplateAPI

from statetrack.asking.answers import marks_reasoning


def thinks(model: Any) -> bool:
    """Whether a model thinks before it answers, as far as its settings and its chat template say so; one behind a
    server does not show them.
    """
    model = getattr(model, "lm", model)  # what a cache of replies wraps
    told = getattr(model, "enable_thinking", None)
    if told is not None:
        return bool(told)
    template = getattr(getattr(model, "tokenizer", None), "chat_template", None)
    return getattr(model, "think_end_token", None) is not None or marks_reasoning(str(template or ""))


def is_served(model: Any) -> bool:
    return isinstance(getattr(model, "lm", model), TemplateAPI)


def never_came(reply: str) -> bool:
    """Whether the harness stands in with a text of its own, or with none, for what a server did not say."""
    return not reply.strip() or reply == LMEVAL_MODEL_NONE_ANSWER_PLACEHOLDER
