"""Membership in a regular language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from statetrack.errors import BadInput
from statetrack.tasks.finite import Automaton, TableTask, WeightedTask, explore
from statetrack.tasks.machines.regex_parser import MAX_PATTERN, Positions, parse

MAX_ALPHABET = 64
MAX_SUBSETS = 20_000


@dataclass(frozen=True, kw_only=True)
class Regex(TableTask, WeightedTask):
    r"""Is what was read so far in the language of a regular expression? `regex[pattern=(ab)*]`

        task     regex[pattern=(ab)*,alphabet=ab]
        inputs   0 1 0 1 1 0
        answers  0 1 0 1 0 0

    a is not a member, ab is one, aba is not, abab is one, and ababb cannot become one.

    The inputs are the characters of `alphabet`: a and b unless it is given, also where the pattern has no b. So rows of
    (aa)* hold b, and after the first b nothing matches; `regex[pattern=(aa)*,alphabet=a]` has no other input than a.

    A pattern may hold characters of the alphabet, `.` for any of them, classes such as `[abc]`, `[a-c]` and `[^a]`,
    groups in ( ), alternatives with |, and * + ? for repetition; \ takes the meaning of the next character away. The
    automaton is minimised.
    """

    pattern: str
    alphabet: str = "ab"

    base_name = "regex"
    title = "regular expression"
    outputs = 2

    def check(self) -> None:
        if not 1 <= len(self.alphabet) <= MAX_ALPHABET or len(set(self.alphabet)) < len(self.alphabet):
            raise BadInput(f"regex: alphabet={self.alphabet} should be 1..{MAX_ALPHABET} characters, each once")
        if len(self.pattern) > MAX_PATTERN:
            raise BadInput(f"regex: the pattern has {len(self.pattern)} characters; at most {MAX_PATTERN} are allowed")
        self.automaton  # noqa: B018  a pattern that does not parse is refused here, not at the first use
        super().check()

    @cached_property
    def automaton(self) -> Automaton:
        return _subsets(parse(self.pattern, self.alphabet), self.alphabet, self.name)

    @property
    def inputs(self) -> int:
        return len(self.alphabet)

    def symbol_text(self, symbol: int) -> str:
        return self.alphabet[symbol]

    def answer_text(self, answer: int) -> str:
        return ("no", "yes")[answer]

    @property
    def instruction(self) -> str:
        return (
            "Each input is one character. Answer 'yes' if the whole text so far matches the regular expression"
            f" {self.pattern} from its beginning to its end, else 'no'."
        )

    def state_text(self, seen: Sequence[int]) -> str:
        state = self.state_after(seen)
        return f"state {state} of {self.automaton.states}, match: {self.answer_text(self.automaton.answers[state])}"


def _subsets(positions: Positions, alphabet: str, name: str) -> Automaton:
    """The subset construction: a state is the set of places in the pattern where the last character may stand.

    None is the state before the first character.
    """

    def step(state: frozenset[int] | None, symbol: int) -> frozenset[int]:
        reached = positions.first if state is None else frozenset().union(*(positions.follow[at] for at in state))
        return frozenset(at for at in reached if alphabet[symbol] in positions.accepts[at])

    def answer(state: frozenset[int] | None) -> int:
        return int(positions.empty if state is None else not state.isdisjoint(positions.last))

    return explore(None, step, answer, len(alphabet), name, most=MAX_SUBSETS).minimised()
