"""A model of transformers in this process: greedy replies, each token processed once, many episodes in a batch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import torch
import transformers

from statetrack.asking.answers import without_reasoning
from statetrack.asking.engines import hub
from statetrack.asking.engines.chat import Chat, common
from statetrack.asking.engines.memory import RecurrentMemory, memory_for
from statetrack.asking.episode import CONTEXT, Reply, Request
from statetrack.asking.tokens import Tokens
from statetrack.errors import BadInput, need
from statetrack.secrets import scrub_error

NEWLINE = "\n"
ENDLESS = 2**15  # tokens of a reply that nothing else ends


class HFEngine:
    """Answers greedily.

    For measuring, `forced` gives replies to write instead of the model's own, at the same cost, and `resend` forgets
    everything between turns, as a server without a cache does.
    """

    def __init__(self, model: Any, tokenizer: Any, name: str, batch: int = 16, resend: bool = False) -> None:
        self.model, self.name, self.batch = model.eval(), name, batch
        self.chat = Chat(tokenizer, name)
        self.stops = _stops(model, tokenizer)
        self.thinks = self.chat.thinks
        self.limit = getattr(model.config, "max_position_embeddings", None)
        self.kind, self.resend = memory_for(model), resend
        self.memory: Any = None
        self.keys: list[int] = []
        self.processed = 0
        self.forced: Any = None

    @classmethod
    def load(cls, path: str, device: str = "auto", dtype: str = "auto", batch: int = 16) -> HFEngine:
        """A folder, a GGUF file, a folder with one GGUF file, or a name that transformers can find."""
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        where, options = _located(path)
        place = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
        if dtype != "auto" and not isinstance(getattr(torch, dtype, None), torch.dtype):
            raise BadInput(f"dtype {dtype} should be auto, float32, bfloat16 or float16")
        kind = dtype if dtype != "auto" else ("float32" if place == "cpu" else "bfloat16")
        try:
            with redirect_stderr(StringIO()):  # bars for the pieces of a GGUF file, which no setting turns off
                # Code that comes with a model is not run; by default transformers would ask in the terminal.
                tokenizer = transformers.AutoTokenizer.from_pretrained(where, trust_remote_code=False, **options)
                model = transformers.AutoModelForCausalLM.from_pretrained(
                    where, dtype=getattr(torch, kind), trust_remote_code=False, **options
                )
        except (OSError, ValueError, KeyError) as error:
            scrub_error(error)  # it may repeat what a hub said
            reason = str(error).strip().partition("\n")[0]
            raise BadInput(f"model hf:{path} cannot be loaded: {reason}") from error
        return cls(model.to(place), tokenizer, f"hf:{path}", batch)

    @torch.inference_mode()
    def replies(self, requests: Sequence[Request]) -> list[Reply]:
        prompts = [self.chat.ids(request.messages, key=request.sample) for request in requests]
        self._remember([request.sample for request in requests])
        fits = [self.limit is None or len(prompt) < self.limit for prompt in prompts]
        kept = [common(old, prompt[:-1]) for old, prompt in zip(self.memory.tokens, prompts)]
        self.memory.cut(kept)
        before = self.memory.processed
        cached = [len(row) for row in self.memory.tokens]
        new = [prompt[at:] if fit else [] for prompt, at, fit in zip(prompts, cached, fits)]
        written = self._generate(requests, new) if any(new) else [[] for _ in requests]
        self.processed += self.memory.processed - before
        return [
            self._reply(request, prompt, at, ids) if fit else Reply(failure=CONTEXT, detail=self._too_long(prompt))
            for request, prompt, at, ids, fit in zip(requests, prompts, cached, written, fits)
        ]

    def _remember(self, keys: list[int]) -> None:
        """The rows of these episodes: those of the last call without the ones that ended, or a fresh memory."""
        if self.memory is not None and not self.resend and set(keys) <= set(self.keys):
            if keys != self.keys:
                self.memory.keep([self.keys.index(key) for key in keys])
        else:
            self.memory = self.kind(self.model, len(keys))
        for key in set(self.keys) - set(keys):
            self.chat.forget(key)
        self.keys = keys

    def _generate(self, requests: Sequence[Request], new: list[list[int]]) -> list[list[int]]:
        """The tokens of greedy replies, the one that ends a reply included; every row goes on until its own end."""
        forced = [self._forced_ids(request) for request in requests] if self.forced else None
        written: list[list[int]] = [[] for _ in requests]
        open_rows = [row for row, tokens in enumerate(new) if tokens]
        if self.kind is RecurrentMemory:
            new = self._fed_to_staying(requests, new)
        logits = self.memory.feed(new)
        while open_rows:
            best = logits.argmax(-1).tolist()
            for row in open_rows:
                written[row].append(forced[row][len(written[row])] if forced else best[row])
            open_rows = [row for row in open_rows if not self._ended(written[row], requests[row])]
            if open_rows:
                logits = self.memory.feed([written[row][-1:] if row in open_rows else [] for row in range(len(new))])
        return written

    def _fed_to_staying(self, requests: Sequence[Request], new: list[list[int]]) -> list[list[int]]:
        """Feed as far as the history will stay, so that a state is remembered there; gives what is left."""
        parts = []
        for request, old, more in zip(requests, self.memory.tokens, new):
            stays = common([*old, *more][:-1], self._staying(request)) - len(old)
            parts.append(more[: max(0, stays)])
        if any(parts):
            self.memory.feed(parts)
        return [more[len(part) :] for more, part in zip(new, parts)]

    def _staying(self, request: Request) -> list[int]:
        """Tokens whose beginning the next prompt shares: the history without a reply, as far as it will not change."""
        if request.dialogue.rules.history == "absent":  # the one message with all inputs will go on
            messages = request.messages[: len(request.messages) - request.transient]
            longer = {"role": "user", "content": f"{messages[-1]['content']}{NEWLINE}"}
            return self.chat.ids([*messages[:-1], longer])
        if request.transient:
            return self.chat.ids(request.messages[: -request.transient], reply_follows=False)
        return []

    def _ended(self, ids: list[int], request: Request) -> bool:
        if ids[-1] in self.stops or len(ids) >= (request.room or ENDLESS):
            return True
        if self._by_line(request) and NEWLINE in self.chat.decode(ids).lstrip():
            return True
        return self.limit is not None and len(self.memory.tokens[self.keys.index(request.sample)]) + 1 >= self.limit

    def _by_line(self, request: Request) -> bool:
        """Without a chat template nothing but the end of the line says that a reply is over."""
        return not self.chat.templated and not request.dialogue.rules.thinking

    def _reply(self, request: Request, prompt: list[int], cached: int, ids: list[int]) -> Reply:
        text = self.chat.decode(ids).strip()
        no_context = self.limit is not None and len(prompt) + len(ids) >= self.limit
        ended = ids[-1] in self.stops or (self._by_line(request) and NEWLINE in text)
        full = not ended and len(ids) >= (request.room or ENDLESS)
        if no_context and not ended and not full:
            return Reply(failure=CONTEXT, detail=self._too_long([*prompt, *ids]))
        if self._by_line(request):
            text = text.partition(NEWLINE)[0].strip()
        text = self.chat.opens + text  # where the template begins to think, the model goes on with that
        answer = without_reasoning(text)
        thought = 0 if answer == text else max(0, len(ids) - self.chat.count(answer))
        spent = Tokens(len(prompt), len(prompt) - cached, cached, len(ids), thought)
        return Reply(text, tokens=spent, full=full)

    def _forced_ids(self, request: Request) -> list[int]:
        """The tokens with which the history will go on after this reply, up to the one that ends it."""
        said = [*request.messages, {"role": "assistant", "content": self.forced(request)}]
        prompt = self.chat.ids(request.messages, key=request.sample)
        reply = self.chat.ids(said, key=request.sample, reply_follows=False)[len(prompt) :]
        end = next((n for n, token in enumerate(reply) if token in self.stops), None)
        return [*reply, *self.stops][: len(reply) + 1] if end is None else reply[: end + 1]

    def _too_long(self, prompt: list[int]) -> str:
        return f"{len(prompt)} tokens do not fit the {self.limit} of {self.name}"

    def close(self) -> None:
        self.memory, self.keys = None, []


def _located(path: str) -> tuple[str, dict[str, str]]:
    """Where a model lies, and the name of its GGUF file if it is one."""
    place = Path(path).expanduser()
    if place.is_dir() and not (place / "config.json").exists():
        gguf_files = sorted(place.glob("*.gguf"))
        if len(gguf_files) != 1:
            raise BadInput(
                f"{path} holds no config.json and {len(gguf_files)} GGUF files; name one of these or a model folder"
            )
        place = gguf_files[0]
    if place.suffix == ".gguf":
        if not place.is_file():
            raise BadInput(f"there is no file {path}")
        need("gguf", "hf", f"model {path}")
        return str(place.parent), {"gguf_file": place.name}
    return str(place) if place.exists() else hub.located(path), {}


def _stops(model: Any, tokenizer: Any) -> list[int]:
    """The tokens that end a reply."""
    given = getattr(model.generation_config, "eos_token_id", None)
    stops = given if isinstance(given, list) else [given]
    return list(dict.fromkeys(int(token) for token in (tokenizer.eos_token_id, *stops) if token is not None))
