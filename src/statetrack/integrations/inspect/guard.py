"""What a model's server sends is cleaned and bounded where it comes in, before Inspect notes it anywhere.

A server may repeat the key that it was sent: in an error, a reply, a header. Inspect writes all of that into events,
logs and tracebacks, and what it writes for a sample that is cancelled no solver sees again. So the provider's
`generate` itself is wrapped: nothing leaves it with a key in it. Where the provider speaks by httpx, as almost all do,
a reply is cleaned before anybody reads it: what the parsers of others say of a reply that they cannot read repeats it,
in errors and warnings that cannot be cleaned. There, too, a body that has no end, or is small and unpacks to gigabytes,
is cut off while it is read, and a reply that tells of a failure under the status 200 is taken for one.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import Model, ModelCall, ModelOutput

from statetrack.asking.bodies import failure_in
from statetrack.secrets import guard, remember, scrub, scrub_error, scrubbed

MOST_BYTES = 8 * 2**20  # of a body, as it comes over the wire
MOST_PACKED = 2**16  # of a compressed one: gzip unpacks to at most a thousand times as much
PACKINGS = ("gzip", "deflate")  # that are bounded so
OK = 200
HISTORY = ("messages", "input", "contents", "prompt")  # in a request: our own words, and replies that were cleaned


class Unusable(Exception):
    """A reply that is not looked at further; what is wrong with it is said without a key."""


class TooLarge(Unusable):
    """A body that is not read to its end."""


class ServerFailed(Unusable):
    """A body that tells of a failure, though its status says that all is well."""


Generate = Callable[..., Awaitable[Any]]


def guarded(model: Model) -> Model:
    """The same model, whose provider gives nothing away from now on."""
    remember(model.api.api_key)
    guard()
    if not isinstance(model.api.generate, _Guarded):
        model.api.generate = _Guarded(model.api, model.api.generate)  # type: ignore[method-assign]
    return model


class _Guarded:
    """A provider's `generate`, with what comes out of it cleaned: the result, or an error, cancelled or not."""

    def __init__(self, api: Any, generate: Generate) -> None:
        self.api, self.generate = api, generate

    async def __call__(self, *arguments: Any, **more: Any) -> Any:
        _bound(self.api)
        try:
            result = await self.generate(*arguments, **more)
        except BaseException as error:
            scrub_error(error)
            if isinstance(error, Exception) and (clean := scrub(str(error))) != str(error):
                # What it says is not in its arguments, as with pydantic's.
                raise Unusable(f"{type(error).__name__}: {clean}") from None
            raise
        finally:
            _clean_calls()
        output, call = result if isinstance(result, tuple) else (result, None)
        output = _clean_output(output)
        return (output, _clean_call(call)) if isinstance(result, tuple) else output


def _clean_output(output: ModelOutput | Exception) -> ModelOutput | Exception:
    if isinstance(output, Exception):
        scrub_error(output)
        return output
    held = output.model_dump()
    clean = scrubbed(held)
    return output if clean == held else type(output).model_validate(clean)


def _clean_call(call: ModelCall | None) -> ModelCall | None:
    if call is not None:
        call.response = scrubbed(call.response)
        call.request = {name: held if name in HISTORY else scrubbed(held) for name, held in call.request.items()}
    return call


def _clean_calls() -> None:
    """What the provider has noted of calls that are under way: their last events are the newest."""
    for event in reversed(transcript().events):
        if isinstance(event, ModelEvent):
            if not event.pending:
                break
            _clean_call(event.call)


def _bound(api: Any) -> None:
    """Guard the replies that the provider's client reads, where that has the hooks of httpx."""
    client = getattr(getattr(api, "client", None), "_client", None)
    hooks = getattr(client, "event_hooks", None)
    if isinstance(hooks, dict) and _read_guarded not in hooks["response"]:
        client.event_hooks = {**hooks, "response": [_read_guarded, *hooks["response"]]}  # type: ignore[union-attr]


async def _read_guarded(response: Any) -> None:
    """Read a reply in bounds, clean it, and see whether it is one."""
    _bounded(response)
    await response.aread()
    told = response.headers.multi_items()
    response.headers = type(response.headers)([(scrub(name), scrub(value)) for name, value in told])
    if "reason_phrase" in response.extensions:
        response.extensions["reason_phrase"] = scrubbed(response.extensions["reason_phrase"])
    try:
        held = json.loads(response.content)
    except (ValueError, RecursionError):
        response._content = scrubbed(response.content)
        return
    clean = scrubbed(held)
    if clean != held:
        response._content = json.dumps(clean).encode()
    if response.status_code == OK and (why := failure_in(clean)):
        raise ServerFailed(why)


def _bounded(response: Any) -> None:
    packing = response.headers.get("content-encoding", "").strip().lower()
    if packing not in ("", "identity", *PACKINGS):
        raise TooLarge(scrub(f"a reply packed as {packing[:20]!r}"))
    most = MOST_PACKED if packing in PACKINGS else MOST_BYTES
    read = response.aiter_raw

    async def counted(*arguments: Any) -> AsyncIterator[bytes]:
        size = 0
        async for part in read(*arguments):
            size += len(part)
            if size > most:
                raise TooLarge(f"a reply of more than {most:,} bytes")
            yield part

    response.aiter_raw = counted
