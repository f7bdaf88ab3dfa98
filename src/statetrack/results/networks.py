"""What records of networks share, however the weights came about: a list of evaluations, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeVar, cast

from statetrack.formatting import plural, shortened
from statetrack.intervals import wilson
from statetrack.results.evaluations import (
    BROKEN,
    PROVED,
    AllStrings,
    BreakingWord,
    Evaluation,
    ForEver,
    OffData,
    OnRows,
    OnStream,
    OnWords,
    is_solved,
)

Floor = Callable[[int], float | None]  # of the last positions of rows of a length
Kind = TypeVar("Kind", bound=Evaluation)


@dataclass(frozen=True)
class Tested:
    """How a network did at one length: on rows (`of` "rows"), or at that mark of a stream (`of` "stream").

    `accuracy` is over all positions of rows, `end` over the last 32; along a stream both are over the last positions
    before the mark. `solved` is what `OnRows.solved` says, and along a stream `is_solved` of the last positions; a
    network of ours that has not solved the length that it was trained on has solved nothing beyond it.
    """

    length: int
    of: str
    rows: int
    n: int
    accuracy: float
    interval: tuple[float, float]
    end: float | None
    end_interval: tuple[float, float] | None
    floor: float | None
    end_floor: float | None
    solved: bool


def broken_by(records: Iterable[HasEvaluations]) -> list[BreakingWord]:
    """The words that break these networks, one for each that is broken, the shortest first."""
    return sorted((record.broken for record in records if record.broken), key=lambda word: word.tokens)


def said_of_rows(reach: int, longest: int, said: str) -> str:
    """How far a network is right on random rows, beside a word that breaks it: neither is to be read alone.

    >>> said_of_rows(1024, 1024, "broken by the word 1 0^10 (11 tokens)")
    'right on random rows to at least 1,024; broken by the word 1 0^10 (11 tokens)'
    """
    return f"right on random rows to {'at least ' if reach == longest else ''}{reach:,}; {said}"


class HasEvaluations:
    """A record of a network. It is a dataclass with the field `evaluations`."""

    evaluations: tuple[Evaluation, ...]

    def of(self, kind: type[Kind]) -> list[Kind]:
        """Of its own weights."""
        return [each for each in self.evaluations if isinstance(each, kind) and not each.other_weights]

    @cached_property
    def rows(self) -> dict[int, OnRows]:
        """By length, in their order; of several at one length the first that was measured."""
        first: dict[int, OnRows] = {}
        for each in sorted(self.of(OnRows), key=lambda each: bool(each.reason)):
            first.setdefault(each.length, each)
        return dict(sorted(first.items()))

    @property
    def streams(self) -> list[OnStream]:
        return self.of(OnStream)

    @property
    def off_data(self) -> OffData | None:
        return next(iter(self.of(OffData)), None)

    @property
    def all_strings(self) -> AllStrings | None:
        return next(iter(self.of(AllStrings)), None)

    @property
    def words(self) -> OnWords | None:
        """On hard words: of several such evaluations the one with the most tokens; None where none was tried."""
        tried = [each for each in self.of(OnWords) if not each.reason]
        return max(tried, key=lambda each: each.tokens, default=None)

    @property
    def broken(self) -> BreakingWord | None:
        """The shortest word after which it is known to answer wrong."""
        known = [each.breaking for each in self.of(OnWords)] + [each.word for each in self.of(ForEver)]
        return min(filter(None, known), key=lambda word: word.tokens, default=None)

    @property
    def broken_by(self) -> str:
        """That word as a text, - where none was found, nothing where none was looked for."""
        return self.broken.word if self.broken else "-" if self.words or self.of(ForEver) else ""

    @property
    def for_ever(self) -> ForEver | None:
        """What `certify` came to: a word outweighs a proof, a proof that is there one that is missing, and all of them
        what is open; of those that are open the longest search. None where nobody has asked.
        """

        def weight(each: ForEver) -> tuple[bool, bool, bool, bool, float]:
            there = each.claims_proof and not each.reason
            return (each.word is not None, there, each.outcome == PROVED, each.claims_proof, each.budget)

        return max(self.of(ForEver), key=weight, default=None)

    @property
    def proved(self) -> ForEver | None:
        """The proof that it is right for ever, as it was trained; None where a word breaks it all the same."""
        found = self.for_ever
        there = found is not None and found.outcome == PROVED and not found.reason
        return found if there and self.broken is None else None

    @property
    def standing(self) -> str:
        """What is known of it at every length, in a few words; nothing where nobody has looked."""
        if self.broken is not None:
            return BROKEN
        return self.for_ever.standing if self.for_ever else ""

    @property
    def shown_by(self) -> str:
        """What stands behind that: the word, the epsilon and margin of a proof, or how far every word was tried."""
        if self.broken is not None:
            return f"{shortened(self.broken.word)} ({plural(self.broken.tokens, 'token')})"
        return self.for_ever.by if self.for_ever else ""

    @property
    def said_for_ever(self) -> str:
        """The same as a sentence; nothing where nobody has looked."""
        if self.broken is not None:
            said = self.broken.said
        elif self.for_ever is not None:
            said = self.for_ever.sentence
        else:
            return ""
        return f"{said[0].upper()}{said[1:]}."

    @property
    def contradiction(self) -> str | None:
        """That one evaluation proves what another one breaks."""
        proofs = [each for each in self.of(ForEver) if each.claims_proof and each.outcome == PROVED]
        return f"{PROVED}, and {self.broken.said}" if proofs and self.broken else None

    @property
    def on_words(self) -> str:
        """What it did on hard words, in one line."""
        tried, word = self.words, self.broken
        if word is not None:
            return word.said
        if tried is None:
            return "no hard words were tried"
        if tried.wrong:
            return f"{plural(tried.wrong, 'hard word')} of {tried.words:,} wrong beside others, none when run alone"
        return f"right on {plural(tried.words, 'hard word')} ({tried.tokens:,} tokens, up to {tried.longest:,} steps)"

    @property
    def on_words_alone(self) -> str:
        """The same where nothing beside it says what it is about."""
        return self.on_words if self.words is None and self.broken is None else f"hard words: {self.on_words}"

    @property
    def falls_silent(self) -> bool:
        """Whether some position that was tested was left unanswered."""
        along = [share for stream in self.streams for share in (stream.unanswered or {}).values()]
        return any([*(each.unanswered for each in self.rows.values()), *along])

    def lacks(self, streams: Iterable[int]) -> list[int]:
        return [steps for steps in streams if not any(each.covers(steps) for each in self.streams)]

    def lacks_words(self, budget: int | None) -> bool:
        return bool(budget) and not any(each.budget >= (budget or 0) for each in self.of(OnWords))

    def may_be_solved(self, length: int) -> bool:
        """Whether being right at this length counts as having solved it."""
        return True

    def tested(self, end_floor: Floor = lambda length: None, every_mark: bool = False) -> list[Tested]:
        """How far it was right, length by length: on rows, and along streams where no rows were tested, or everywhere.

        `end_floor` is asked for lengths of which the record itself does not know it.
        """
        made = [_on_rows(each, self.may_be_solved(each.length), end_floor) for each in self.rows.values()
                if each.accuracy is not None]  # fmt: skip
        lengths = set() if every_mark else {each.length for each in made}
        for stream in self.streams:
            for mark, accuracy in ((int(mark), share) for mark, share in (stream.accuracy or {}).items()):
                if accuracy is not None and mark not in lengths:
                    lengths.add(mark)
                    made.append(_on_stream(stream, mark, accuracy, self.may_be_solved(mark), end_floor(mark)))
        return made

    def with_evaluations(self, more: Iterable[Evaluation], other_weights: bool = False) -> Self:
        """The same with those of these evaluations that it lacks, or has from other weights or without numbers only."""
        held = {each.settings: each for each in self.evaluations}
        for each in more:
            comes = replace(each, other_weights=True) if other_weights else each
            there = held.get(each.settings)
            if there is None or (bool(comes.reason), comes.other_weights) < (bool(there.reason), there.other_weights):
                held[each.settings] = comes
        same: Any = replace(cast(Any, self), evaluations=tuple(held.values()))
        return cast(Self, same)


def _on_rows(each: OnRows, can_be_solved: bool, end_floor: Floor) -> Tested:
    assert each.accuracy is not None
    known = each.end_floor
    return Tested(
        each.length, "rows", each.rows, each.n or each.rows, each.accuracy, _pair(each.interval) or (0.0, 1.0),
        each.last_32_accuracy, _pair(each.last_32_interval), each.floor,
        known if known is not None else end_floor(each.length),
        can_be_solved and each.solved,
    )  # fmt: skip


def _on_stream(stream: OnStream, mark: int, accuracy: float, learned: bool, end_floor: float | None) -> Tested:
    """Rows are independent, positions are not: the interval counts rows."""
    interval = wilson(accuracy * stream.rows, stream.rows)
    return Tested(
        mark, "stream", stream.rows, stream.rows, accuracy, interval, accuracy, interval, None, end_floor,
        learned and is_solved(accuracy, end_floor),
    )  # fmt: skip


def _pair(interval: list[float] | None) -> tuple[float, float] | None:
    return (interval[0], interval[1]) if interval else None
