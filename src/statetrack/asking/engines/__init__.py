"""What runs a language model: `hf:PATH_OR_NAME` in this process, everything else through Inspect's providers.

An engine takes requests and gives replies, many at a time. It never raises for a single request: what went wrong comes
back as a reply with a failure, so that the others keep what they have.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from statetrack import spec, trust
from statetrack.asking.episode import Reply, Request
from statetrack.asking.rules import Rules
from statetrack.errors import BadInput, need
from statetrack.secrets import scrub

LOCAL = "hf:"
ENTRY_POINTS, PROVIDERS = "statetrack.engines", "inspect"  # under which an engine for PROVIDER/MODEL registers
UNMEASURED = ("attempt_timeout", "base_url", "max_connections", "max_retries", "timeout")
"""Settings that change how a model is reached and not what it says: not part of what a result is filed under."""


HARMLESS = (
    "attempt_timeout", "effort", "frequency_penalty", "max_connections", "max_retries", "presence_penalty",
    "reasoning_effort", "reasoning_tokens", "seed", "temperature", "timeout", "top_k", "top_p", "verbosity",
)  # fmt: skip
"""Settings that a file may give. Any other may send the user's key to a server of its choice (base_url), or make a
provider run code (trust_remote_code, model_path)."""


class Engine(Protocol):
    """One model that can be asked."""

    name: str
    batch: int
    """How many episodes it takes at a time."""

    def replies(self, requests: Sequence[Request]) -> list[Reply]:
        """One reply per request, in the same order. Requests of one sample come turn after turn."""

    def close(self) -> None:
        """Give back what it holds."""


@runtime_checkable
class StreamingEngine(Protocol):
    """An engine that tells of every reply when it comes, though others are still under way."""

    def replies_as_they_come(
        self, requests: Sequence[Request], arrived: Callable[[int, Reply], None], seconds: float | None
    ) -> list[Reply]:
        """As `replies`; `arrived` is called with the place of each that came. After so many seconds the others fail."""


def replies(
    engine: Engine, requests: Sequence[Request], arrived: Callable[[int, Reply], None], seconds: float | None = None
) -> list[Reply]:
    """The replies of any engine, each told of as soon as it is there."""
    if isinstance(engine, StreamingEngine):
        return engine.replies_as_they_come(requests, arrived, seconds)
    given = engine.replies(requests)
    for place, reply in enumerate(given):
        arrived(place, reply)
    return given


def unsuited(engine: Engine, rules: Rules, forced: bool) -> str:
    """Why a model is not to be asked so, as far as that can be known; nothing where it is."""
    if not getattr(engine, "thinks", False) or rules.thinking:
        return ""
    if forced:
        return f"{engine.name} can think before it answers: one pass over right answers scores it as if it did not"
    if rules.room or rules.most_tokens is None:
        return ""
    few = f"with {rules.most_tokens} tokens a reply may end before its answer"
    return f"{engine.name} can think before it answers: {few}; --regime thinking or --room gives it more"


def subject(model: str) -> str:
    """What a model's results are filed under: its text without the settings that say how it is reached.

    >>> subject("openai-api/local/tiny[base_url=http://127.0.0.1:8000/v1,temperature=0]")
    'openai-api/local/tiny[temperature=0]'
    """
    if model.startswith(LOCAL):
        return model
    name, settings = spec.parse(model)
    return scrub(spec.write(name, {key: value for key, value in settings.items() if key not in UNMEASURED}))


def check(model: str) -> None:
    """Refuse a model's text that can be seen to be wrong before anything is loaded."""
    path = model.removeprefix(LOCAL)
    if path == model:
        if "/" not in model:
            raise BadInput(f"model {model!r} should be hf:PATH_OR_NAME, or PROVIDER/MODEL such as openai/gpt-4o")
    elif not path:
        raise BadInput("hf: needs a folder, a GGUF file or a name: hf:PATH_OR_NAME")
    elif path.startswith(("/", ".", "~")) and not Path(path).expanduser().exists():
        raise BadInput(f"model {model} cannot be loaded: there is no such file or folder")


def check_trusted(model: str) -> None:
    """Refuse settings of a model that a file names, unless they are harmless or `statetrack.trust` allows them."""
    if model.startswith(LOCAL):
        return
    others = [key for key in spec.parse(model)[1] if key not in HARMLESS]
    if others:
        sha256 = hashlib.sha256(model.encode()).hexdigest()
        told = f"has settings ({', '.join(others)}) that may send your key elsewhere or run code, and is not asked"
        trust.require(model, sha256, told)
        trust.remember(model, sha256)


def engine(model: str, **options: Any) -> Engine:
    """The engine of a model's text: `hf:...`, or PROVIDER/MODEL as Inspect writes it, such as `openai/gpt-4o`."""
    check(model)
    if model.startswith(LOCAL):
        need("torch", "hf", f"model {model}")
        need("transformers", "hf", f"model {model}")
        from statetrack.asking.engines.hf import HFEngine

        return HFEngine.load(model.removeprefix(LOCAL), **options)
    need("inspect_ai", "inspect", f"model {model}")
    for point in entry_points(group=ENTRY_POINTS, name=PROVIDERS):
        loaded: Engine = point.load()(model, **options)
        return loaded
    raise BadInput(f"model {model} needs the engine {PROVIDERS!r} of {ENTRY_POINTS}, which no installed package offers")
