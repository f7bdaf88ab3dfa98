"""Regular expressions, read into Glushkov's positions: which place of the pattern may follow which.

Every place in the pattern that reads a character gets a number. Of each part of the pattern it is enough to know
whether it may be empty, which places may come first and which last; joining two parts adds the pairs (last of one,
first of the next) to `follow`. In a(b|c)* the places are 0 1 2: first {0}, last {0, 1, 2}, and 1 and 2 follow each of
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from statetrack.errors import BadInput

MAX_PATTERN = 200
REPEATS = "*+?"
SPECIAL = "()[]{}|*+?.^$\\"

Places = frozenset[int]


@dataclass(frozen=True)
class Positions:
    """A pattern's places: what each reads, what may follow it, where a word may begin and end, if it may be empty."""

    accepts: list[frozenset[str]]
    follow: list[set[int]]
    first: Places
    last: Places
    empty: bool


@dataclass(frozen=True)
class Part:
    """A part of the pattern while it is being read."""

    empty: bool = True
    first: Places = frozenset()
    last: Places = frozenset()


def parse(pattern: str, alphabet: str) -> Positions:
    """Read a pattern; what cannot be read is named with its place."""
    return _Parser(pattern, alphabet).whole()


class _Parser:
    """Recursive descent: alternatives of sequences of repeated atoms."""

    def __init__(self, pattern: str, alphabet: str) -> None:
        self.pattern, self.alphabet, self.at = pattern, alphabet, 0
        self.accepts: list[frozenset[str]] = []
        self.follow: list[set[int]] = []

    def whole(self) -> Positions:
        part = self.alternatives()
        if self.at < len(self.pattern):
            self.fail("')' closes nothing")
        return Positions(self.accepts, self.follow, part.first, part.last, part.empty)

    def alternatives(self) -> Part:
        part = self.sequence()
        while self.next_is("|"):
            self.at += 1
            other = self.sequence()
            part = Part(part.empty or other.empty, part.first | other.first, part.last | other.last)
        return part

    def sequence(self) -> Part:
        part = Part()
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            part = self.joined(part, self.repeated())
        return part

    def joined(self, left: Part, right: Part) -> Part:
        self.link(left.last, right.first)
        return Part(
            empty=left.empty and right.empty,
            first=left.first | right.first if left.empty else left.first,
            last=left.last | right.last if right.empty else right.last,
        )

    def repeated(self) -> Part:
        part = self.atom()
        if self.at < len(self.pattern) and self.pattern[self.at] in REPEATS:
            sign = self.pattern[self.at]
            if sign != "?":
                self.link(part.last, part.first)
            part = Part(part.empty or sign != "+", part.first, part.last)
            self.at += 1
            if self.at < len(self.pattern) and self.pattern[self.at] in REPEATS:
                self.fail(f"{self.pattern[self.at]!r} repeats what is repeated already")
        return part

    def atom(self) -> Part:
        character = self.pattern[self.at]
        if character == "(":
            return self.group()
        if character == "[":
            return self.place(self.character_class())
        if character == ".":
            self.at += 1
            return self.place(frozenset(self.alphabet))
        return self.place(frozenset(self.character()))

    def group(self) -> Part:
        begin = self.at
        self.at += 1
        part = self.alternatives()
        if not self.next_is(")"):
            self.at = begin
            self.fail("'(' is not closed")
        self.at += 1
        return part

    def character_class(self) -> frozenset[str]:
        begin = self.at
        self.at += 1
        negated = self.next_is("^")
        self.at += negated
        members: set[str] = set()
        while not self.next_is("]"):
            if self.at >= len(self.pattern):
                self.at = begin
                self.fail("'[' is not closed")
            members |= self.class_member()
        if not members:
            self.fail("a class without characters")
        self.at += 1
        return frozenset(self.alphabet) - members if negated else frozenset(members)

    def class_member(self) -> set[str]:
        low = self.character()
        if not (self.next_is("-") and self.at + 1 < len(self.pattern) and self.pattern[self.at + 1] != "]"):
            return {low}
        dash = self.at
        self.at += 1
        high = self.character()
        if high < low:
            self.at = dash
            self.fail(f"the range {low}-{high} runs backwards")
        return {character for character in self.alphabet if low <= character <= high}

    def character(self) -> str:
        """One character of the alphabet, as it stands or after a backslash."""
        character = self.pattern[self.at]
        if character == "\\":
            self.at += 1
            if self.at == len(self.pattern):
                self.fail("nothing follows the backslash")
            character = self.pattern[self.at]
        elif character in REPEATS:
            self.fail(f"{character!r} has nothing to repeat")
        elif character in SPECIAL:
            self.fail(f"{character!r} has no meaning here; write \\{character} for the character itself")
        if character not in self.alphabet:
            self.fail(f"{character!r} is not in the alphabet {self.alphabet!r}; alphabet=... names all inputs")
        self.at += 1
        return character

    def place(self, accepts: frozenset[str]) -> Part:
        number = len(self.accepts)
        self.accepts.append(accepts)
        self.follow.append(set())
        return Part(False, frozenset((number,)), frozenset((number,)))

    def link(self, last: Places, first: Places) -> None:
        for at in last:
            self.follow[at] |= first

    def next_is(self, character: str) -> bool:
        return self.at < len(self.pattern) and self.pattern[self.at] == character

    def fail(self, what: str) -> NoReturn:
        raise BadInput(f"regex: pattern {self.pattern!r}, character {self.at + 1}: {what}")
