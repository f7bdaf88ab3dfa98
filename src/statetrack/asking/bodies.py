"""What a server sends under the status 200, in the form of OpenAI's: a reply, or the news that there is none."""

from __future__ import annotations

from typing import Any

FAILED = ("abort", "aborted", "canceled", "cancelled", "error", "failed", "timeout")  # ends of a reply that is none
LONGEST = 200  # characters of what a server says that are kept


def failure_in(body: Any) -> str | None:
    """What a reply in the form of OpenAI's says of a failure; None where it says nothing of the kind.

    >>> failure_in({"choices": [{"finish_reason": "error", "message": {"content": "17"}}]})
    "a reply that ends with 'error'"
    >>> failure_in({"choices": [{"finish_reason": None, "message": {"content": "[mode: 1"}}]})
    'a reply that was not over when it was sent (its finish_reason is null)'
    >>> failure_in({"choices": [{"finish_reason": "stop"}], "error": None})
    """
    if not isinstance(body, dict):
        return None
    choices = body.get("choices")
    for told in (body, *(choices if isinstance(choices, list) else ())):
        if isinstance(told, dict) and (error := told.get("error")):
            words = error.get("message", error) if isinstance(error, dict) else error
            return f"an error instead of a reply: {' '.join(str(words).split())[:LONGEST]}"
        if isinstance(told, dict) and str(told.get("finish_reason")).lower() in FAILED:
            return f"a reply that ends with {told['finish_reason']!r}"
        # In this form null stands in the pieces of a stream and says that more is to come. A reply with it was cut off
        # where nobody knows, so that even "17" may be the beginning of "171": no fault of the model's format, and no
        # answer either. A server that leaves the field out says nothing, and is believed.
        if isinstance(told, dict) and "finish_reason" in told and told["finish_reason"] is None:
            return "a reply that was not over when it was sent (its finish_reason is null)"
    return None
