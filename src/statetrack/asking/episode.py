"""The episode: one dialogue with somebody who replies, graded turn by turn.

    episode = Episode(dialogue)
    while (request := episode.request()) is not None:
        episode.receive(reply(request.messages))

That loop is `play`. Whoever asks many episodes at once, or waits for replies in another way, writes the same three
lines around the same two calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from statetrack.asking.answers import is_refusal, without_reasoning
from statetrack.asking.dialogue import Dialogue, Turn
from statetrack.asking.prompts import OK
from statetrack.asking.secrets import scrub
from statetrack.asking.tokens import NO_TOKENS, Tokens
from statetrack.errors import unknown
from statetrack.formatting import visible
from statetrack.results.records import EpisodeRecord as KeptEpisode

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

    `refused` says that the server kept the answer back, such as by a content filter: without an answer it is a refusal,
    whatever the text. `cut` says that the reply ends where its room did: unless its answer was whole by then, it is
    none.
    """

    text: str = ""
    reasoning: str = ""
    tokens: Tokens = NO_TOKENS
    failure: str | None = None
    detail: str = ""
    refused: bool = False
    cut: bool = False


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
    def room(self) -> int:
        """The tokens that the reply may have."""
        return self.dialogue.rules.most_tokens


@dataclass
class Episode:
    """Where a dialogue stands. `messages` is the history that the next request carries."""

    dialogue: Dialogue
    at: int = 0
    status: str = RUNNING
    detail: str = ""
    outcomes: list[str] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    tokens: Tokens = NO_TOKENS

    def __post_init__(self) -> None:
        system = self.dialogue.system
        self.messages: list[Message] = [{"role": "system", "content": system}] if system else []
        self._asked: list[int] = []
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
        if reply.failure:
            return self.interrupt(reply.failure, reply.detail)
        turn = self.dialogue.turns[self.at]
        reply = replace(reply, text=sendable(reply.text), reasoning=sendable(reply.reasoning))
        text = without_reasoning(reply.text)
        if not self.counts(reply):
            used = f"a reply cut off at {self.dialogue.rules.most_tokens} tokens, before its answer was whole"
            return self.interrupt(TRUNCATED, f"{used}; --room gives it more")
        outcome = self._grade(text, turn, reply.refused)
        self.outcomes.append(outcome)
        self.replies.append(reply.text)
        self._asked.append(self.at)
        if outcome != RIGHT and self.dialogue.rules.history == "stop":
            self.status = outcome
        else:
            self._say(turn.text, self._kept(reply, text, turn, outcome))
            self.at += 1
            self._check_limit()
        return outcome

    def counts(self, reply: Reply) -> bool:
        """Whether a reply is one: nothing failed, and one that was cut off holds its answer between brackets."""
        form, text = self.dialogue.form, without_reasoning(reply.text)
        whole = bool(form.tag) and not self.dialogue.rules.thinking and form.read(text) is not None
        return not reply.failure and (whole or not reply.cut)

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

    def replay(self, replies: Iterable[str], letters: str) -> None:
        """Take up an episode that was interrupted: its replies with their letters, as recorded, at no cost."""
        for text, letter in zip(replies, letters, strict=True):
            if self.request() is None:
                return
            self.receive(Reply(text, refused=letter == LETTERS[REFUSAL]))

    @property
    def right(self) -> int:
        """The number of turns answered correctly before the first that was not."""
        return next((n for n, outcome in enumerate(self.outcomes) if outcome != RIGHT), len(self.outcomes))

    def record(self) -> KeptEpisode:
        """All that is measured."""
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
        )

    def _changes(self) -> str:
        """For every turn asked: 1 where the answer differs from the one due before it, 0 where not, - for the first."""
        targets = [self.dialogue.turns[at].target for at in self._asked]
        return "".join("-" if not i else str(int(targets[i] != targets[i - 1])) for i in range(len(targets)))

    def _grade(self, text: str, turn: Turn, refused: bool) -> str:
        rules, form = self.dialogue.rules, self.dialogue.form
        read = form.read if rules.parser == "strict" else form.read_leniently
        given = read(text, rules.thinking)
        if given is None:
            return REFUSAL if refused or is_refusal(text) else FORMAT
        assert turn.target is not None
        return RIGHT if given == form.value(self.dialogue.wording.answer(turn.target)) else WRONG

    def _kept(self, reply: Reply, text: str, turn: Turn, outcome: str) -> str:
        """What stays in the history for a reply."""
        rules = self.dialogue.rules
        if rules.history == "corrected" and outcome != RIGHT:
            return self.dialogue.reply(turn)
        if rules.thinking and rules.keep_reasoning:
            return "\n".join(part for part in (reply.reasoning, reply.text) if part) or NO_REPLY
        answer = self.dialogue.form.find(text, last=True) if rules.thinking else None
        return (answer[0] if answer else text.strip()) or NO_REPLY

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
