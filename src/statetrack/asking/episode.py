"""The episode: one dialogue with somebody who replies, graded turn by turn.

    episode = Episode(dialogue)
    while (request := episode.request()) is not None:
        episode.receive(reply(request.messages))

That loop is `play`. Whoever asks many episodes at once, or waits for replies in another way, writes the same three
lines around the same two calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from statetrack.asking.answers import is_refusal, without_reasoning
from statetrack.asking.dialogue import Dialogue, Turn
from statetrack.asking.prompts import OK
from statetrack.asking.tokens import NO_TOKENS, Tokens
from statetrack.errors import unknown
from statetrack.formatting import visible
from statetrack.results.records import EpisodeRecord as KeptEpisode
from statetrack.secrets import PIECE, scrub

Message = dict[str, str]

RIGHT, WRONG, FORMAT, REFUSAL = "right", "wrong", "format", "refusal"
CONTEXT, LIMIT, SERVER = "context", "limit", "server"
TRUNCATED, TIME = "truncated", "time"
DONE, RUNNING = "done", "running"
FAILURES = (WRONG, FORMAT, REFUSAL)
"""Outcomes that are the model's own: they end an episode in the survival curve."""
INTERRUPTIONS = (CONTEXT, LIMIT, SERVER, TRUNCATED, TIME)
"""What cuts an episode off without a word about the model: censored in the survival curve."""
FAULTS = (CONTEXT, SERVER, TRUNCATED, TIME)
"""Those of them that a server or our own request is to blame for: no score, and asked again."""
LETTERS = {RIGHT: "+", WRONG: "x", FORMAT: "f", REFUSAL: "r"}

NO_REPLY = "-"  # what stands in the history for an empty reply, which servers refuse


@dataclass(frozen=True)
class Reply:
    """What came back. `failure` is one of INTERRUPTIONS, with `detail` for people, where nothing usable came.

    `reasoning` is what the server gave in a field of its own, and `reasoned` says that it did where that is not here;
    reasoning in the text is marked there. `refused` says that the server kept the answer back, such as by a content
    filter: without an answer it is a refusal, whatever the text.
    `full` says that the reply ends where its room did, and `cut` that a server did that to it: unless its answer was
    whole by then, it is none. `failed_calls` are those that brought nothing to be used.
    """

    text: str = ""
    reasoning: str = ""
    tokens: Tokens = NO_TOKENS
    failure: str | None = None
    detail: str = ""
    refused: bool = False
    cut: bool = False
    full: bool = False
    reasoned: bool = False
    failed_calls: int = 0

    @cached_property
    def answer(self) -> str:
        """The text without what is marked as reasoning."""
        return without_reasoning(self.text)

    @property
    def thought(self) -> bool:
        """Whether the model reasoned: the last answer after that counts then."""
        return self.reasoned or bool(self.reasoning) or self.answer != self.text


@dataclass(frozen=True)
class Request:
    """One question. The last `transient` messages will not stay in the history."""

    dialogue: Dialogue
    turn: Turn
    messages: list[Message]
    transient: int = 0

    @property
    def sample(self) -> int:
        return self.dialogue.sample

    @property
    def room(self) -> int | None:
        """The tokens that the reply may have; None for any number."""
        return self.dialogue.rules.most_tokens


@dataclass
class Episode:
    """Where a dialogue stands. `messages` is the history that the next request carries, `terms` what is noted of how it
    is asked (`asking/terms.py`).
    """

    dialogue: Dialogue
    terms: dict[str, Any] = field(default_factory=dict)
    at: int = 0
    status: str = RUNNING
    detail: str = ""
    outcomes: list[str] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    tokens: Tokens = NO_TOKENS
    truncated: int = 0
    failed_calls: int = 0

    def __post_init__(self) -> None:
        system = self.dialogue.system
        self.messages: list[Message] = [{"role": "system", "content": system}] if system else []
        self._asked: list[int] = []
        self._prompts: list[str] = []
        self._reasoned: list[str] = []
        self._absent = self.dialogue.rules.history == "absent"

    def request(self) -> Request | None:
        """The next question, or None when the episode is over. What is not asked about is acknowledged on the way."""
        turns = self.dialogue.turns
        while self.status == RUNNING and self.at < len(turns) and turns[self.at].target is None:
            self._say(turns[self.at].text, OK)
            self.at += 1
        if self.status == RUNNING and self.at == len(turns):
            self.status = DONE
        if self.status != RUNNING:
            return None
        turn = turns[self.at]
        return Request(self.dialogue, turn, self._with(turn.text))

    def receive(self, reply: Reply | str) -> str:
        """Grade a reply and move on; gives the outcome."""
        reply = Reply(reply) if isinstance(reply, str) else reply
        self.tokens += reply.tokens
        self.failed_calls += reply.failed_calls
        self.truncated += reply.full or reply.cut
        if reply.failure:
            return self.interrupt(reply.failure, reply.detail)
        turn = self.dialogue.turns[self.at]
        text, reasoning = sendable(reply.text), sendable(reply.reasoning)
        if (text, reasoning) != (reply.text, reply.reasoning):
            reply = replace(reply, text=text, reasoning=reasoning)
        if not self.counts(reply):
            most = self.dialogue.rules.most_tokens
            at = "by its server" if most is None else f"at {most} tokens"
            more = "" if most is None else "; --room gives it more"
            return self.interrupt(TRUNCATED, f"a reply cut off {at}, before its answer was whole{more}")
        outcome = self._grade(reply, turn)
        self.outcomes.append(outcome)
        self.replies.append(reply.text)
        self._reasoned.append("1" if reply.thought else "0")
        self._prompts.append("\n".join(each.text for each in self.dialogue.turns[self._since() : self.at + 1]))
        self._asked.append(self.at)
        if outcome != RIGHT and self.dialogue.rules.history == "stop":
            self.status = outcome
        else:
            self._say(turn.text, self._kept(reply, turn, outcome))
            self.at += 1
            self._check_limit()
        return outcome

    def counts(self, reply: Reply) -> bool:
        """Whether a reply is one: nothing failed, and one that was cut off holds its answer between brackets."""
        if reply.failure or not reply.cut:
            return not reply.failure
        ends = bool(self.dialogue.form.tag) and not self._takes_last(reply)  # else more may have been to come
        return ends and self.dialogue.form.read(reply.answer) is not None

    def _takes_last(self, reply: Reply) -> bool:
        """Of several answers the last counts where there was room to reason or the model did; else the first."""
        return self.dialogue.rules.thinking or reply.thought

    def _since(self) -> int:
        """The first turn after the last that was answered."""
        return self._asked[-1] + 1 if self._asked else 0

    def interrupt(self, kind: str, detail: str = "") -> str:
        """End the episode for a reason that is not the model's answer; what was answered stays."""
        if kind not in INTERRUPTIONS:
            raise unknown("interruption", kind, INTERRUPTIONS)
        self.status, self.detail = kind, visible(sendable(scrub(detail)))
        return kind

    def _check_limit(self) -> None:
        used, limit = self.tokens.sent + self.tokens.generated, self.dialogue.rules.limit
        if limit and used >= limit and self.at < len(self.dialogue.turns):
            self.interrupt(LIMIT, f"{used} tokens used of the {limit} allowed")

    def replay(self, kept: KeptEpisode) -> None:
        """Take up an episode that was interrupted: its replies with their letters, as recorded, and what they cost."""
        reasoned = kept.reasoned or "0" * len(kept.replies)
        for text, letter, thought in zip(kept.replies, kept.outcomes, reasoned, strict=True):
            if self.request() is None:
                break
            self.receive(Reply(text, refused=letter == LETTERS[REFUSAL], reasoned=thought == "1"))
        self.tokens += Tokens(**kept.tokens)
        self.truncated += kept.truncated
        self.failed_calls += kept.failed_calls

    @property
    def right(self) -> int:
        """The number of turns answered correctly before the first that was not."""
        return next((n for n, outcome in enumerate(self.outcomes) if outcome != RIGHT), len(self.outcomes))

    def record(self, prompts: bool = True) -> KeptEpisode:
        """All that is measured; with what was said, unless somebody else keeps that."""
        return KeptEpisode(
            ended=self.status,
            detail=self.detail,
            max_length=self.right,
            asked=self.dialogue.asked,
            outcomes="".join(LETTERS[outcome] for outcome in self.outcomes),
            positions=[at + 1 for at in self._asked],
            changes=self._changes(),
            replies=list(self.replies),
            tokens=self.tokens.to_dict(),
            reasoned="".join(self._reasoned) if "1" in self._reasoned else "",
            truncated=self.truncated,
            failed_calls=self.failed_calls,
            **self.terms,
            **(self._said() if prompts else {}),
        )

    def _said(self) -> dict[str, Any]:
        """What was said, without keys. A text that is too short to hold a piece of one is left as it is."""
        clean = {text: scrub(text) for text in {self.dialogue.system, *self._prompts} if len(text) >= PIECE}
        return {"system": clean.get(self.dialogue.system, self.dialogue.system),
                "prompts": [clean.get(text, text) for text in self._prompts]}  # fmt: skip

    def _changes(self) -> str:
        """For every turn asked: 1 where the answer differs from the one due before it, 0 where not, - for the first."""
        targets = [self.dialogue.turns[at].target for at in self._asked]
        return "".join("-" if not i else str(int(targets[i] != targets[i - 1])) for i in range(len(targets)))

    def _grade(self, reply: Reply, turn: Turn) -> str:
        rules, form = self.dialogue.rules, self.dialogue.form
        read = form.read if rules.parser == "strict" else form.read_leniently
        given = read(reply.answer, self._takes_last(reply))
        if given is None:
            return REFUSAL if reply.refused or is_refusal(reply.answer) else FORMAT
        assert turn.target is not None
        return RIGHT if given == form.value(self.dialogue.wording.answer(turn.target)) else WRONG

    def _kept(self, reply: Reply, turn: Turn, outcome: str) -> str:
        """What stays in the history for a reply."""
        rules = self.dialogue.rules
        if rules.history == "corrected" and outcome != RIGHT:
            return self.dialogue.reply(turn)
        if rules.thinking and rules.keep_reasoning:
            return "\n".join(part for part in (reply.reasoning, reply.text) if part) or NO_REPLY
        answer = self.dialogue.form.find(reply.answer, last=True) if rules.thinking else None
        return (answer[0] if answer else reply.answer.strip()) or NO_REPLY

    def _with(self, text: str) -> list[Message]:
        """The history and one more message. With the replies absent, all inputs stand in one message, one per line."""
        if self._absent and self.messages and self.messages[-1]["role"] == "user":
            return [*self.messages[:-1], {"role": "user", "content": f"{self.messages[-1]['content']}\n{text}"}]
        return [*self.messages, {"role": "user", "content": text}]

    def _say(self, text: str, reply: str) -> None:
        self.messages = self._with(text)
        if not self._absent:
            self.messages.append({"role": "assistant", "content": reply})


def sendable(text: str) -> str:
    r"""A text without halves of characters, which cannot be sent on.

    >>> sendable("[mode: 85] \ud83d")
    '[mode: 85] ?'
    """
    return text.encode("utf-8", "replace").decode()


def play(dialogue: Dialogue, reply: Callable[[list[Message]], str | Reply]) -> Episode:
    """One whole episode with a function that replies.

    >>> from statetrack.tasks import task
    >>> from statetrack.asking.dialogue import dialogue
    >>> from statetrack.asking.rules import Rules
    >>> first = dialogue(task("track_the_stat.mode"), Rules(), sample=0)
    >>> play(first, lambda messages: f"[mode: {messages[-1]['content']}]").record().outcomes
    '+x'
    """
    episode = Episode(dialogue)
    while (request := episode.request()) is not None:
        episode.receive(reply(request.messages))
    return episode
