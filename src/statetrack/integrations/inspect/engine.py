"""The engine of `statetrack ask` for every model that Inspect has a provider for.

    openai/gpt-4o    anthropic/claude-...    vllm/...    openai-api/SERVICE/MODEL (any OpenAI-compatible server)

Settings stand in brackets: `openai-api/local/tiny[base_url=http://127.0.0.1:8000/v1,temperature=0]`. They are Inspect's
generation options, and what else its provider takes. Keys come from the environment, as Inspect documents them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import anyio
from anyio.from_thread import start_blocking_portal
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import GenerateConfig, Model, get_model
from pydantic import ValidationError

from statetrack import spec
from statetrack.asking.engines import UNMEASURED
from statetrack.asking.episode import SERVER, TIME, Reply, Request
from statetrack.asking.tokens import NO_TOKENS
from statetrack.errors import BadInput
from statetrack.integrations.inspect.failures import Attempt, judge, plain
from statetrack.integrations.inspect.guard import guarded
from statetrack.integrations.inspect.replies import MessageHistory, read
from statetrack.secrets import scrub

RETRIES = 5
TIMEOUT = 300  # seconds for one try
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
ELSEWHERE = {
    "api_key": "read from the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, ...)",
    "max_tokens": "given by the rules: --room",
}


class InspectEngine:
    """One model behind Inspect's `generate`. Many requests are under way at once, each with its own patience."""

    def __init__(
        self, model: Model, name: str, batch: int = 16, retries: int = RETRIES, wait: float = FIRST_WAIT
    ) -> None:
        self.model = guarded(model)
        self.name, self.batch, self.retries, self.wait = name, batch, retries, wait
        # The providers' clients belong to one event loop, so it lives as long as the engine. It has a thread of its own
        # because the caller may already run inside a loop, as in a notebook.
        self._open = ExitStack()
        self._portal = self._open.enter_context(start_blocking_portal())

    def replies(self, requests: Sequence[Request]) -> list[Reply]:
        """One reply per request, in the same order. What failed to the end is a reply with a failure."""
        return self.replies_as_they_come(requests, lambda place, reply: None, None)

    def replies_as_they_come(
        self, requests: Sequence[Request], arrived: Callable[[int, Reply], None], seconds: float | None
    ) -> list[Reply]:
        under_way = self._portal.start_task_soon(self._all, list(requests), arrived, seconds)
        try:
            return under_way.result()
        except BaseException:  # Ctrl-C: do not leave requests running that nobody waits for
            under_way.cancel()
            raise

    def close(self) -> None:
        self._portal.call(self.model.__aexit__, None, None, None)
        self._open.close()

    async def _all(
        self, requests: list[Request], arrived: Callable[[int, Reply], None], seconds: float | None
    ) -> list[Reply]:
        late = Reply(failure=TIME, detail="no reply within the seconds of its episode")
        replies: list[Reply] = [late] * len(requests)
        refused: list[BadInput] = []

        async def fill(at: int) -> None:
            with anyio.move_on_after(seconds):
                replies[at] = await self._patiently(requests[at])
                try:
                    arrived(at, replies[at])
                except BadInput as error:  # it cannot be kept: what is under way is not paid for either
                    refused.append(error)
                    group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            for at in range(len(requests)):
                # A task of its own also bounds memory: Inspect's record of events ends with the task.
                group.start_soon(fill, at)
        if refused:
            raise refused[0]
        return replies

    async def _patiently(self, request: Request) -> Reply:
        """Ask until there is a reply, or the retries are used up."""
        spent = NO_TOKENS
        for tried in range(1, self.retries + 2):
            attempt = await self._once(request)
            spent += attempt.reply.tokens
            if not attempt.again:
                failed = tried - 1 + bool(attempt.reply.failure)
                return replace(attempt.reply, tokens=spent, failed_calls=failed)
            if tried <= self.retries:
                await anyio.sleep(self._pause(tried, attempt.after))
        tries = f"{tried} tries" if tried > 1 else "1 try"
        return replace(attempt.reply, tokens=spent, detail=f"{attempt.reply.detail} ({tries})", failed_calls=tried)

    async def _once(self, request: Request) -> Attempt:
        # Inspect's own retries are off: they know nothing of empty, cut-off and malformed replies.
        config = GenerateConfig(max_tokens=request.room, max_retries=0)
        _try_once(self.model.api)
        try:
            output = await self.model.generate(MessageHistory().of(request.messages), config=config)
        except Exception as error:  # a provider may raise anything over a malformed reply
            return judge(error, self.model)
        reply = read(output, request.room)
        return Attempt(reply, again=reply.failure == SERVER)

    def _pause(self, tried: int, wanted: float | None) -> float:
        """Seconds before the next try: as long as the server wants, or twice as long as before, give or take half."""
        if wanted is not None:
            return min(max(wanted, 0.0), LONGEST_WAIT)
        return min(self.wait * 2 ** (tried - 1), LONGEST_WAIT) * random.uniform(0.5, 1.5)


def _try_once(api: Any) -> None:
    """Keep the provider's client from asking again by itself, as OpenAI's and Anthropic's do two times: such requests
    would be in nobody's count, and a server would be asked three times as often as `max_retries` says."""
    client: Any = getattr(api, "client", None)  # a provider may open a new one
    if isinstance(getattr(client, "max_retries", None), int):
        client.max_retries = 0


def engine(text: str, batch: int = 16, wait: float = FIRST_WAIT, **options: Any) -> InspectEngine:
    """The engine of a model's text, such as `openai/gpt-4o[temperature=0]`."""
    where, given = spec.parse(text)
    settings = {key: _value(value) for key, value in given.items()} | options
    for name, instead in ELSEWHERE.items():
        if name in settings:
            raise BadInput(f"model {where}: {name} is not set here, but {instead}")
    config = _config(where, {key: settings[key] for key in settings if key in GenerateConfig.model_fields}, batch)
    provider = {key: value for key, value in settings.items() if key not in GenerateConfig.model_fields}
    measured = {key: value for key, value in settings.items() if key not in UNMEASURED}
    retries = RETRIES if config.max_retries is None else config.max_retries
    return InspectEngine(_model(where, config, provider), spec.write(where, measured), batch, retries, wait)


def _config(where: str, given: dict[str, Any], batch: int) -> GenerateConfig:
    try:
        return GenerateConfig(**{"max_connections": batch, "attempt_timeout": TIMEOUT, **given})
    except ValidationError as error:
        first = error.errors()[0]
        raise BadInput(f"model {where}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _model(where: str, config: GenerateConfig, provider: dict[str, Any]) -> Model:
    try:
        return get_model(where, config=config, memoize=False, **provider)
    except (PrerequisiteError, ValueError, ImportError, OSError, TypeError) as error:
        raise BadInput(scrub(f"model {where}: {plain(error)}")) from None


def _value(text: str) -> Any:
    """A setting's text as a number, true or false where it is one."""
    for kind in (int, float, bool):
        try:
            return spec.read(text, kind, "")
        except BadInput:
            continue
    return spec.read(text, str, "")
