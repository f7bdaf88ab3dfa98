"""How a task is put to a model: everything that changes what is said or counted, and so is part of a result's key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from statetrack import spec
from statetrack.asking import templates
from statetrack.errors import BadInput, unknown

STYLES = ("ids", "table", "cycles", "generators")
REGIMES = ("instant", "thinking")
CHOICES = {"way": ("turns", "whole"), "style": STYLES, "regime": REGIMES,
           "history": ("stop", "own", "corrected", "absent"), "parser": ("strict", "lenient")}  # fmt: skip
LEAST = {"shots": 0, "every": 1, "room": 0, "limit": 0}
DISTRACTORS = ("chatter", "streams", "words", "retractions")
ROOM = {"instant": 32, "thinking": 2048}
FORCED = "teacher_forced"  # in a cell's protocol beside the rules: all turns are read in one pass
_WORDS = ("way", "style", "regime", "parser")  # rules whose value says which rule it is
WITH_COMPAT = ("compat", "prompt", "room", "limit")  # what can be chosen beside it


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules of one evaluation.

    way          turns: one input per turn; whole: the sequence in the prompt, one answer
    style        how permutations are written: ids, table, cycles, generators
    shots        worked examples in a whole prompt
    relabel      a seed that shuffles the IDs of a group's elements; None leaves them
    regime       instant: the answer at once; thinking: room to reason before it
    keep_reasoning  whether the reasoning stays in the history
    history      stop: the episode ends at the first error, as in the original; own, corrected, absent: it goes on, with
                 the model's replies in the history, with wrong ones set right, or with inputs alone
    every        ask at every n-th of the inputs that can be asked about only; the others are acknowledged
    distractors  chatter, streams, words, retractions
    parser       strict or lenient
    room         tokens a reply may have; 0 stands for 32 (instant), 2048 (thinking) or any number (compat)
    limit        tokens an episode may send and generate before it is cut off (censored, not failed); 0 for no limit
    compat       Track the Stat by the original's rules: its prompt in our words, its message with the state, replies of
                 any length, a perfect run counted as 299
    prompt       a text of one's own instead of our prompt, with placeholders (`asking/templates.py`)
    """

    way: str = "turns"
    style: str = "ids"
    shots: int = 0
    relabel: int | None = None
    regime: str = "instant"
    keep_reasoning: bool = False
    history: str = "stop"
    every: int = 1
    distractors: tuple[str, ...] = ()
    parser: str = "strict"
    room: int = 0
    limit: int = 0
    compat: bool = False
    prompt: str = ""

    def __post_init__(self) -> None:
        self._check_types()
        for what, allowed in CHOICES.items():
            if (value := getattr(self, what)) not in allowed:
                raise unknown(what, value, allowed)
        for name in self.distractors:
            if name not in DISTRACTORS:
                raise unknown("distractor", name, DISTRACTORS)
        for what, least in LEAST.items():
            if (number := getattr(self, what)) < least:
                raise BadInput(f"{what} {number} should be at least {least}")
        if self.way == "whole" and (self.every > 1 or self.distractors or self.history != "stop"):
            raise BadInput("every, distractors and history belong to the way 'turns'; a whole prompt has one answer")
        if self.relabel is not None and self.relabel < 0:
            raise BadInput(f"relabel {self.relabel} should be a seed, 0 or more")
        if self.shots and self.way == "turns":
            raise BadInput("shots belong to the way 'whole'; turn by turn, the description holds a worked example")
        if len(self.prompt.encode()) > templates.MOST_BYTES:
            raise BadInput(f"a prompt should have at most {templates.MOST_BYTES:,} bytes")
        changed = [name for name in self._set if name not in WITH_COMPAT]
        if self.compat and changed:
            raise BadInput(f"compat follows the original's rules, which leave no choice of {', '.join(changed)}")

    def _check_types(self) -> None:
        """Every rule is of its default's type; a list of distractors is as good as a tuple."""
        for rule in fields(self):
            value = getattr(self, rule.name)
            if rule.name == "distractors":
                if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
                    raise BadInput(f"distractors={value!r} should be a list of names")
                object.__setattr__(self, rule.name, tuple(value))
            elif rule.default is not None:
                spec.typed(value, type(rule.default), rule.name)
            elif value is not None:
                spec.typed(value, int, rule.name)

    @property
    def thinking(self) -> bool:
        return self.regime == "thinking"

    @property
    def most_tokens(self) -> int | None:
        """The tokens that a reply may have; None for any number."""
        return self.room or (None if self.compat else ROOM[self.regime])

    @property
    def _set(self) -> dict[str, Any]:
        """The rules that differ from their defaults."""
        return {rule.name: value for rule in fields(self) if (value := getattr(self, rule.name)) != rule.default}

    @property
    def changed(self) -> str:
        """The rules that differ from the defaults, in a few words.

        >>> Rules(way="whole", style="table", shots=2).changed
        'whole, table, shots=2'
        """
        return ", ".join(_in_words(name, value) for name, value in self._set.items())

    @classmethod
    def among(cls, given: Mapping[str, Any]) -> Rules:
        """Those of some settings that are rules."""
        return cls(**{rule.name: given[rule.name] for rule in fields(cls) if rule.name in given})

    @classmethod
    def of_protocol(cls, protocol: Mapping[str, Any]) -> Rules:
        """The rules in the protocol of a cell; a ValueError or TypeError where they are those of another version."""
        given = _rules_in(protocol)
        if isinstance(prompt := given.get("prompt"), Mapping):
            given["prompt"] = _template(prompt)
        return cls(**given)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a result's key. Rules that came after 0.3.0 are in it where they are set, so that the keys of
        all other cells stay as they were; a prompt with its hash.
        """
        given = {**asdict(self), "distractors": list(self.distractors)}
        later = {"compat": self.compat, "prompt": self.prompt and _named(self.prompt)}
        return {name: value for name, value in (given | later).items() if value or name not in later}


def _in_words(name: str, value: Any) -> str:
    if name == "distractors":
        return "+".join(value)
    if name == "prompt":
        return f"prompt {templates.sha256(value)[:8]}"
    return value if name in _WORDS else name if name == "compat" else f"{name}={value}"


def _named(template: str) -> dict[str, str]:
    return {"sha256": templates.sha256(template), "template": template}


def _template(held: Mapping[str, Any]) -> str:
    """The text of a prompt in a protocol, if it is the one that the hash there names."""
    text = held.get("template")
    if not isinstance(text, str) or _named(text) != held:
        raise BadInput("the prompt of this cell is not the text that its hash names")
    return text


def _rules_in(protocol: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in protocol.items() if key not in ("name", FORCED)}


def _plainly(value: Any) -> str:
    """A rule of another version; a prompt by its hash."""
    if isinstance(value, Mapping):
        return str(value.get("sha256", "of another version"))[:8]
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def how(protocol: Mapping[str, Any]) -> str:
    """The rules of a cell's protocol that differ from the defaults, in words; all of them if another version wrote it.

    >>> how({"name": "ask", "way": "turns", "history": "own", "teacher_forced": True}), how({"name": "ask", "mood": 3})
    ('history=own, teacher-forced', 'mood 3')
    """
    try:
        words = Rules.of_protocol(protocol).changed
    except (TypeError, ValueError):
        words = ", ".join(f"{key} {_plainly(value)}" for key, value in _rules_in(protocol).items())
    return ", ".join(filter(None, [words, "teacher-forced" if FORCED in protocol else ""]))
