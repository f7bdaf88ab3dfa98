"""Messages as tokens: the model's own chat template, or a plain transcript where it has none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from statetrack.asking.answers import left_open, marks_reasoning
from statetrack.asking.episode import Message
from statetrack.errors import BadInput

_PROBE: list[Message] = [
    {"role": "system", "content": "Report."},
    {"role": "user", "content": "85"},
    {"role": "assistant", "content": "[median: 85]"},
    {"role": "user", "content": "63"},
    {"role": "assistant", "content": "[median: 74]"},
    {"role": "user", "content": "51"},
    {"role": "assistant", "content": "[median: 63]"},
    {"role": "user", "content": "26"},
]


@dataclass
class Beginning:
    """A history that was tokenised before: `ids` up to its last special token, `tail` the text from there on."""

    messages: list[Message] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    tail: str = ""


class Chat:
    """Turns a history into tokens. A history that grows is not written out and tokenised again from its beginning.

    That is right for templates that write one message after the other, and for tokenisers that split at special tokens
    before anything else. Both are tried once on a short dialogue; where they do not hold, every history is
    tokenised as a whole.
    """

    def __init__(self, tokenizer: Any, name: str) -> None:
        self.tokenizer, self.name = tokenizer, name
        self.templated = bool(getattr(tokenizer, "chat_template", None))
        special = sorted(map(re.escape, tokenizer.all_special_tokens), key=len, reverse=True)
        self._special = re.compile("|".join(special)) if special else None
        self._known: dict[int, Beginning] = {}
        self._short: tuple[list[Message], int] = [], 0  # a beginning, and the length of its text
        self._marks = [token for token in tokenizer.all_special_tokens if _is_mark(token)]
        self.thinks = self.templated and marks_reasoning(str(tokenizer.chat_template))
        self.folds_system = False
        self.folds_system = self.templated and not self._accepts(_PROBE)
        self.grows = False
        self.grows = self.templated and not self.folds_system and self._special is not None and self._grown_alike()
        self.opens = left_open(self.text(_PROBE)) if self.thinks else ""  # before the model writes its first token

    def text(self, messages: Sequence[Message], reply_follows: bool = True) -> str:
        """The history as one text, up to where the reply begins."""
        if not self.templated:
            return _transcript(messages, reply_follows)
        shown = _folded(messages) if self.folds_system else list(messages)
        try:
            text: str = self.tokenizer.apply_chat_template(shown, tokenize=False, add_generation_prompt=reply_follows)
        except Exception as error:  # a template is a program of the model's maker and may raise anything
            raise BadInput(f"the chat template of {self.name} refuses these messages: {error}") from error
        return text

    def _addition(self, messages: list[Message], start: int, reply_follows: bool) -> str:
        """What the messages from `start` on add to the text, behind a short beginning that ends in the same role."""
        if start == 0:
            return self.text(messages, reply_follows)
        before = messages[start - 1]["role"]
        short = messages[: next(n for n in range(1, start + 1) if messages[n - 1]["role"] == before)]
        if self._short[0] != short:  # the turns of a dialogue begin alike
            self._short = short, len(self.text(short, False))
        return self.text([*short, *messages[start:]], reply_follows)[self._short[1] :]

    def ids(self, messages: list[Message], key: int | None = None, reply_follows: bool = True) -> list[int]:
        """The tokens of a history; with a `key`, what was tokenised under it before is used again."""
        if key is None or not self.grows:
            return self._encode(self.text(messages, reply_follows))
        beginning, staying = self._known.get(key, Beginning()), messages[:-1]  # the last message may change
        if staying[: len(beginning.messages)] != beginning.messages:
            beginning = Beginning()
        if len(staying) > len(beginning.messages):
            beginning = self._extended(beginning, staying)
            self._known[key] = beginning
        return beginning.ids + self._encode(
            beginning.tail + self._addition(messages, len(beginning.messages), reply_follows)
        )

    def _extended(self, beginning: Beginning, messages: list[Message]) -> Beginning:
        text = beginning.tail + self._addition(messages, len(beginning.messages), reply_follows=False)
        assert self._special is not None
        cut = max((match.start() for match in self._special.finditer(text)), default=0)
        return Beginning(messages, beginning.ids + self._encode(text[:cut]), text[cut:])

    def forget(self, key: int) -> None:
        self._known.pop(key, None)

    def count(self, text: str) -> int:
        """The number of tokens of a text that stands alone."""
        return len(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def decode(self, ids: Sequence[int]) -> str:
        """The text without special tokens, those aside that tell reasoning from an answer."""
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=not self._marks)
        if self._marks and self._special is not None:
            text = self._special.sub(lambda token: token[0] if token[0] in self._marks else "", text)
        return text

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=not self.templated)["input_ids"]
        return ids

    def _accepts(self, messages: list[Message]) -> bool:
        try:
            self.text(messages)
        except BadInput:
            return False
        return True

    def _grown_alike(self) -> bool:
        """Whether a dialogue that grows message by message gives the same tokens as one that is written whole."""
        self.grows = True
        try:
            grown = [self.ids(_PROBE[:length], key=-1) for length in range(2, len(_PROBE) + 1, 2)]
        except BadInput:  # some templates refuse the parts of a dialogue
            return False
        finally:
            self.forget(-1)
        whole = [self._encode(self.text(_PROBE[:length])) for length in range(2, len(_PROBE) + 1, 2)]
        return grown == whole


def _is_mark(token: str) -> bool:
    """Whether a special token tells reasoning from an answer, or is a part of what does."""
    return marks_reasoning(token) or token in ("<|channel|>", "<|message|>")


def _transcript(messages: Sequence[Message], reply_follows: bool) -> str:
    """Input and Reply, as in the description's example; a single question stands as it is."""
    if len(messages) == 1 and reply_follows:
        return messages[0]["content"]
    names = {"user": "Input: ", "assistant": "Reply: ", "system": ""}
    lines = [names[message["role"]] + message["content"] + "\n" * (message["role"] == "system") for message in messages]
    return "\n".join([*lines, "Reply:"] if reply_follows else lines)


def _folded(messages: Sequence[Message]) -> list[Message]:
    """The system message as the beginning of the first user message, for templates without such a role."""
    if messages[0]["role"] != "system" or len(messages) < 2:
        return list(messages)
    first = {"role": "user", "content": f"{messages[0]['content']}\n\n{messages[1]['content']}"}
    return [first, *messages[2:]]


def common(first: Any, second: Any) -> int:
    """The length of the common beginning of two lists, found by halving."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
