"""Prompts that a model has no room for. The harness cuts their beginning off; here they are found before the run."""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Sequence
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM, CachingLM

from statetrack.integrations.lm_eval.definitions import LOGGER

log = logging.getLogger(LOGGER)
SPECIAL = 8  # tokens that a tokenizer may add to a text


def model_of_run() -> Any | None:
    """The model that is about to be asked.

    The harness shows a task no model, but its `evaluate`, which calls us, holds it in the variable `lm`.
    """
    frame = sys._getframe(1)
    while frame is not None:
        model = frame.f_locals.get("lm")
        if isinstance(model, (LM, CachingLM)):
            return model
        frame = frame.f_back  # type: ignore[assignment]
    return None


def too_long(instances: Sequence[Instance]) -> dict[int, int]:
    """The documents whose prompt and answer do not fit, with the tokens that they need."""
    model = model_of_run()
    room = getattr(model, "max_length", None)
    if room is None or not hasattr(model, "tok_encode"):
        _say_unchecked("the model" if model is None else type(model).__name__)
        return {}
    needed = {instance.doc_id: tokens(model, instance, room) for instance in instances}
    return {document: count for document, count in needed.items() if count > room}


def tokens(model: Any, instance: Instance, room: int) -> int:
    """The tokens that a request takes; where counting bytes settles it, that is enough, since no token is empty."""
    given, rest = instance.args
    prompt: str = getattr(given, "prompt", given)  # a chat for a server comes wrapped
    if instance.request_type == "generate_until":
        text, answer = prompt, int(rest["max_gen_toks"])
    else:
        text, answer = prompt + rest, -1  # the last token of the answer is predicted, never read
    most = len(text.encode()) + SPECIAL + answer
    return most if most <= room else len(model.tok_encode(text)) + answer


@functools.cache
def _say_unchecked(model: str) -> None:
    log.warning("%s does not show its tokenizer or its context length: whether prompts fit was not checked", model)
