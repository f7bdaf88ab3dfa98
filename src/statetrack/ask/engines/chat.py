"""Messages as tokens: the model's own chat template, or a plain transcript where it has none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from statetrack.ask.episode import Message
from statetrack.errors import BadInput

_PROBE = [
    {"role": "system", "content": "Report."},
    {"role": "user", "content": "85"},
    {"role": "assistant", "content": "[median: 85]"},
    {"role": "user", "content": "63"},
]


class Chat:
    """Turns a history into tokens. A history that grows is not tokenised anew from its beginning.

    Text may be cut where a special token stands: tokenisers split there before anything else. Whether that holds for
    this one is tried once; if not, every text is tokenised whole.
    """

    def __init__(self, tokenizer: Any, name: str) -> None:
        self.tokenizer, self.name = tokenizer, name
        self.templated = bool(getattr(tokenizer, "chat_template", None))
        special = sorted(map(re.escape, tokenizer.all_special_tokens), key=len, reverse=True)
        self._special = re.compile("|".join(special)) if special else None
        self._known: dict[int, tuple[str, list[int]]] = {}
        self.folds_system = False
        self.folds_system = self.templated and not self._accepts(_PROBE)
        self.cuts = self.templated and self._special is not None and self._cuts_agree()

    def text(self, messages: Sequence[Message], reply_follows: bool = True) -> str:
        """The history as one text, up to where the reply begins."""
        if not self.templated:
            return self._transcript(messages, reply_follows)
        shown = _folded(messages) if self.folds_system else list(messages)
        try:
            text: str = self.tokenizer.apply_chat_template(shown, tokenize=False, add_generation_prompt=reply_follows)
        except Exception as error:  # a template is a program of the model's maker and may raise anything
            raise BadInput(f"the chat template of {self.name} refuses these messages: {error}") from error
        return text

    def ids(self, messages: Sequence[Message], key: int | None = None, reply_follows: bool = True) -> list[int]:
        """The tokens of a history; with a `key`, what was tokenised under it before is used again."""
        text = self.text(messages, reply_follows)
        if key is None or not self.cuts:
            return self._encode(text)
        known_text, known_ids = self._known.get(key, ("", []))
        cut, kept = self._shared(known_text, known_ids, text)
        ids = known_ids[:kept] + self._encode(text[cut:])
        self._known[key] = (text, ids)
        return ids

    def forget(self, key: int) -> None:
        self._known.pop(key, None)

    def count(self, text: str) -> int:
        """The number of tokens of a text that stands alone."""
        return len(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=True)
        return text

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=not self.templated)["input_ids"]
        return ids

    def _shared(self, known: str, ids: list[int], text: str) -> tuple[int, int]:
        """The last special token inside the common beginning of two texts: where it starts, and its token's number."""
        same = common(known, text)
        assert self._special is not None
        places = [match.start() for match in self._special.finditer(known) if match.end() <= same]
        if not places:
            return 0, 0
        special = set(self.tokenizer.all_special_ids)
        at = [number for number, token in enumerate(ids) if token in special]
        return places[-1], at[len(places) - 1]

    def _accepts(self, messages: Sequence[Message]) -> bool:
        try:
            self.text(messages)
        except BadInput:
            return False
        return True

    def _cuts_agree(self) -> bool:
        self.cuts = True
        self.ids(_PROBE[:2], key=-1)
        pieces = self.ids(_PROBE, key=-1)
        self.forget(-1)
        return pieces == self._encode(self.text(_PROBE))

    @staticmethod
    def _transcript(messages: Sequence[Message], reply_follows: bool) -> str:
        """Input and Reply, as in the description's example; a single question stands as it is."""
        if len(messages) == 1 and reply_follows:
            return messages[0]["content"]
        names = {"user": "Input: ", "assistant": "Reply: ", "system": ""}
        lines = [
            f"{names[message['role']]}{message['content']}{chr(10) * (message['role'] == 'system')}"
            for message in messages
        ]
        return "\n".join([*lines, "Reply:"] if reply_follows else lines)


def _folded(messages: Sequence[Message]) -> list[Message]:
    """The system message as the beginning of the first user message, for templates that know no such role."""
    if messages[0]["role"] != "system" or len(messages) < 2:
        return list(messages)
    first = {"role": "user", "content": f"{messages[0]['content']}\n\n{messages[1]['content']}"}
    return [first, *messages[2:]]


def common(first: Any, second: Any) -> int:
    """The length of the common beginning of two texts or lists, found by halving."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
