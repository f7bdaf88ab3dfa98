"""What a run costs in tokens: counted afterwards, estimated before."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from statetrack.asking.dialogue import Dialogue
from statetrack.asking.prompts import OK

PER_MESSAGE = 4  # what a chat format adds to a message: its role and its two ends
THOUGHTS = 300  # tokens of reasoning per turn that an estimate assumes in the regime 'thinking'
_PIECES = re.compile(r"[0-9]{1,3}|[A-Za-z]{1,7}|[^\sA-Za-z0-9]")


@dataclass(frozen=True)
class Tokens:
    """The account of a reply, an episode or a run.

    sent        input tokens as a server without memory would receive them: the whole history at every turn
    new         those of them that had to be processed
    cached      those that a cache had already
    generated   output tokens, the reasoning included
    reasoning   those of them that were reasoning
    """

    sent: int = 0
    new: int = 0
    cached: int = 0
    generated: int = 0
    reasoning: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.sent + other.sent,
            self.new + other.new,
            self.cached + other.cached,
            self.generated + other.generated,
            self.reasoning + other.reasoning,
        )

    def to_dict(self) -> dict[str, int]:
        return asdict(self)


NO_TOKENS = Tokens()


def count(text: str) -> int:
    """About how many tokens a text has: a number of up to three digits, a piece of a word or a sign is one.

    >>> count("85"), count("[median: 74.5]")
    (1, 7)
    """
    return len(_PIECES.findall(text))


def estimate(dialogues: Iterable[Dialogue], state: bool = False) -> Tokens:
    """What perfect episodes would cost, which is the most that episodes with early stop can cost.

    `state` is for the explicit solver, whose message with the state is new at every turn and kept at none.
    """
    return sum((_estimate(each, state) for each in dialogues), Tokens())


def _estimate(dialogue: Dialogue, state: bool) -> Tokens:
    rules = dialogue.rules
    system = count(dialogue.system) + PER_MESSAGE if dialogue.system else 0
    history, fresh = 0, system  # what a cache holds, and what it does not hold yet
    total = Tokens()
    for turn in dialogue.turns:
        fresh += count(turn.text) + PER_MESSAGE
        if turn.target is None:
            fresh += count(OK) + PER_MESSAGE
            continue
        reply = count(dialogue.reply(turn)) + PER_MESSAGE
        # a list of n numbers has about 2 n tokens
        extra = 2 * len(turn.seen) + PER_MESSAGE if state else 0
        thoughts = THOUGHTS if rules.thinking else 0
        sent = history + fresh + extra
        total += Tokens(sent, fresh + extra, history, reply + thoughts, thoughts)
        history += fresh
        fresh = 0
        if rules.history != "absent":
            history += reply + (thoughts if rules.keep_reasoning else 0)
    return total
