"""What a trained network did on some inputs. A record has a list of these; what chose the inputs stands in each.

One that is added later changes nothing that was there: neither the weights nor the training depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from statetrack.formatting import plural, shortened

SOLVED = 0.99  # the accuracy that counts as right
OF_THE_GUESS = 0.5  # a network that solves a task makes at most this share of the errors of the best guess
END = 32  # positions at the end of a row

Numbers = list[float | None]


def is_solved(accuracy: float | None, floor: float | None = None) -> bool:
    """Whether an accuracy counts as right: 99 % and, where it is known what the best guess scores on the same
    positions, at most half of the guess's errors. Near 1 it is errors that tell accuracies apart.

    >>> is_solved(0.992), is_solved(0.992, floor=0.5), is_solved(0.992, floor=0.99), is_solved(1.0, floor=0.99)
    (True, True, False, True)
    """
    return accuracy is not None and accuracy >= SOLVED and beats_guess(accuracy, floor)


def beats_guess(accuracy: float | None, floor: float | None) -> bool:
    """Whether at most half of the guess's errors are made; so it is taken to be where no floor is known."""
    if accuracy is None or floor is None:
        return True
    return 1 - accuracy <= OF_THE_GUESS * max(0.0, 1 - floor)


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Every evaluation is of the test split; `seed` chooses its rows.

    Where the network could not be run so far, there is a `reason` and no number. `other_weights` marks what was
    measured on another training of the same cell, as a merge may bring it: it is kept, and counts nowhere.
    """

    kind: ClassVar[str]
    variants: ClassVar[dict[str, type[Evaluation]]] = {}
    seed: int
    reason: str = ""
    other_weights: bool = False

    def __init_subclass__(cls) -> None:
        Evaluation.variants[cls.kind] = cls

    @property
    def settings(self) -> tuple[object, ...]:
        """What was asked for: two evaluations with equal settings are one."""
        raise NotImplementedError

    def problem(self) -> str | None:
        """What its numbers cannot be, beyond their types."""
        return None


@dataclass(frozen=True, kw_only=True)
class OnRows(Evaluation):
    """Rows of one length: accuracy over all positions asked for, over the last 32, and what the best guess for each
    position scores (`floor`). Intervals are over rows, as positions of one row are not independent. `unanswered` is the
    share of positions whose logits are not numbers; they count as wrong.

    From `full_sequence_accuracy` on: only at the length trained on.
    """

    kind = "rows"
    length: int
    rows: int = 0
    n: int = 0  # positions asked for
    accuracy: float | None = None
    interval: list[float] | None = None
    last_32_accuracy: float | None = None
    last_32_interval: list[float] | None = None
    unanswered: float | None = None
    floor: float | None = None
    full_sequence_accuracy: float | None = None  # rows without an error
    full_sequence_interval: list[float] | None = None
    crossing_accuracy: float | None = None  # where the answer changes
    paired_crossing_accuracy: float | None = None  # there and right before it
    crossings: int | None = None
    accuracy_by_position: Numbers | None = None
    accuracy_at_end: float | None = None
    tail_accuracy: float | None = None  # over the last quarter of the positions
    tail_interval: list[float] | None = None
    floor_exact: bool = False
    floors: dict[str, float | None] | None = None  # of every guess that was tried, by its name
    floor_by_position: Numbers | None = None
    skill_by_position: Numbers | None = None

    @property
    def settings(self) -> tuple[object, ...]:
        return (self.kind, self.length, self.seed, *([] if self.reason else [self.rows]))

    @property
    def solved(self) -> bool:
        """Whether rows of this length are solved: right at their end, which is the last quarter where that was measured
        (at the length trained on) and else the last 32 positions, and better than the guess over all positions.

        Not over the end alone: near the end of FSM a guess errs at 3 positions of a million, so that one error there
        would say nothing, and of a network without errors there one knows no more than of the guess.
        """
        end = self.last_32_accuracy if self.tail_accuracy is None else self.tail_accuracy
        return is_solved(end) and beats_guess(self.accuracy, self.floor)

    def problem(self) -> str | None:
        pairs = (self.interval, self.last_32_interval, self.tail_interval, self.full_sequence_interval)
        if any(pair is not None and len(pair) != 2 for pair in pairs):
            return "an interval has two ends"
        return None if self.accuracy is None or 0 <= self.accuracy <= 1 else "an accuracy lies in 0..1"

    @property
    def end_floor(self) -> float | None:
        """What the best guess for each position scores over the last 32, where floors by position are kept."""
        import numpy as np  # here, since reading a folder needs none of it

        known = [value for value in (self.floor_by_position or [])[-END:] if value is not None]
        return float(np.mean(known)) if known else None


@dataclass(frozen=True, kw_only=True)
class OnStream(Evaluation):
    """One row after the other without end: accuracy over the last `positions` before each mark, in constant memory."""

    kind = "stream"
    steps: int
    rows: int = 0
    positions: int = 0
    accuracy: dict[str, float | None] | None = None
    unanswered: dict[str, float | None] | None = None
    never: bool = False  # whether the model cannot be streamed at all

    @property
    def settings(self) -> tuple[object, ...]:
        return self.kind, self.steps, self.seed

    def covers(self, steps: int) -> bool:
        """Whether a stream of so many steps is answered by this one."""
        return self.never or self.steps == steps or str(steps) in (self.accuracy or {})

    def problem(self) -> str | None:
        told = (self.accuracy or {}).items()
        fine = all(mark.isdecimal() and (share is None or 0 <= share <= 1) for mark, share in told)
        return None if fine else "a stream has shares at numbers of steps"


@dataclass(frozen=True, kw_only=True)
class OffData(Evaluation):
    """Rows that training never shows, at the length trained on: accuracy case by case, their mean and the worst."""

    kind = "off data"
    length: int
    accuracy: dict[str, float | None]
    mean: float
    worst: float

    @property
    def failing(self) -> tuple[float, str] | None:
        """The lowest accuracy and its case, if that is below what counts as right."""
        low = [(share, case) for case, share in self.accuracy.items() if share is not None and not is_solved(share)]
        return min(low, default=None)

    @property
    def settings(self) -> tuple[object, ...]:
        return self.kind, self.length, self.seed


@dataclass(frozen=True, kw_only=True)
class AllStrings(Evaluation):
    """Every input of the length trained on, each with the chance that the task draws it."""

    kind = "all strings"
    length: int
    strings: int
    accuracy: float | None
    full_sequence_accuracy: float

    @property
    def settings(self) -> tuple[object, ...]:
        return self.kind, self.length


@dataclass(frozen=True)
class Power:
    """Symbols of an input, by their numbers, as often as `times` says one after the other."""

    symbols: list[int]
    times: int = 1


@dataclass(frozen=True, kw_only=True)
class BreakingWord:
    """An input after which a network gives a wrong answer: the last symbol of the word is the first where it is wrong.

    >>> BreakingWord(parts=(Power([1]), Power([0], 22)), family="u v^k", expected=1, given=0)
    BreakingWord('1 0^22', expected=1, given=0)
    """

    parts: tuple[Power, ...]
    family: str  # of words, among which it was found
    expected: int
    given: int | None  # None where the logits are not numbers

    @property
    def word(self) -> str:
        """Its symbols with repeats as powers: 1 0^22, 1^3 (0 1)^4."""
        return " ".join(map(_power_text, self.parts))

    @property
    def symbols(self) -> list[int]:
        return [symbol for part in self.parts for symbol in part.symbols * part.times]

    @property
    def tokens(self) -> int:
        return sum(len(part.symbols) * part.times for part in self.parts)

    @property
    def said(self) -> str:
        """In words: broken by the word 1 0^22 (23 tokens): it answers 0, right is 1."""
        given = f"it answers {self.given}" if self.given is not None else "it gives no answer"
        return f"{self.named}: {given}, right is {self.expected}"

    @property
    def named(self) -> str:
        """In fewer words: broken by the word 1 0^22 (23 tokens)."""
        return f"broken by the word {shortened(self.word)} ({plural(self.tokens, 'token')})"

    def problem(self) -> str | None:
        """What it cannot be, beyond its types."""
        if self.expected == self.given:
            return "a word that breaks a network is answered wrong"
        fine = self.tokens > 0 and all(part.times > 0 and part.symbols for part in self.parts)
        return None if fine else "a breaking word has symbols"

    def __repr__(self) -> str:
        return f"BreakingWord({self.word!r}, expected={self.expected}, given={self.given})"


def _power_text(part: Power) -> str:
    text = " ".join(map(str, part.symbols))
    if part.times == 1:
        return text
    return f"{text}^{part.times}" if len(part.symbols) == 1 else f"({text})^{part.times}"


FAMILIES = "families"


@dataclass(frozen=True, kw_only=True)
class OnWords(Evaluation):
    """Words that random rows hardly show, each up to its first wrong answer; `breaking` is the shortest one found.

    `how` names the search, `budget` is how many tokens it was allowed, `tokens` how many it took. A word that is wrong
    beside others and right when it is run alone breaks nothing, but is counted as `wrong`.
    """

    kind = "words"
    how: str = FAMILIES
    budget: int
    words: int = 0
    tokens: int = 0
    longest: int = 0  # steps
    wrong: int = 0  # words
    breaking: BreakingWord | None = None

    @property
    def settings(self) -> tuple[object, ...]:
        return self.kind, self.how, self.budget, self.seed

    def problem(self) -> str | None:
        if not 0 <= self.wrong <= self.words:
            return "more words are wrong than were tried"
        if self.breaking is None:
            return None
        return self.breaking.problem() if self.wrong else "a word that breaks a network is answered wrong"


PROVED, PRUNED, BROKEN, OPEN = "proved as trained", "proved pruned", "broken by a word", "open"
OUTCOMES = (PROVED, PRUNED, BROKEN, OPEN)
MISSING = "proof missing"  # the record speaks of a proof, and the file that lies there is not that one


@dataclass(frozen=True, kw_only=True)
class ForEver(Evaluation):
    """What `statetrack certify` found out about every word, of any length: one of OUTCOMES.

    A proof is a file beside the weights, whose hash is `proof`. Where that file is not there, or is another, reading
    the folder gives a `reason`: then nothing is claimed (`results/proofs.py`). Of a pruned network it is about weights
    that were changed first, which are kept beside those that were trained.

    A search is cut off by the clock, so that two of them may find different things, and both are kept.
    """

    kind = "for ever"
    outcome: str
    weights: str  # the hash by which a proof names the weights that were trained
    budget: float  # seconds that the search was given
    seconds: float | None = None
    proof: str = ""  # SHA-256 of the file
    epsilon: float | None = None  # by which each number of the state may be off in each step
    margin: float | None = None  # of the logits, at least
    float32: float | None = None  # a step in float32 is off by at most this
    regions: int | None = None
    covered: int = 0  # where it is open: every word of so many tokens was tried, and is answered rightly
    why: str = ""  # it is open
    word: BreakingWord | None = None

    @property
    def settings(self) -> tuple[object, ...]:
        found = self.word.word if self.word else self.proof
        return self.kind, self.outcome, found or (self.budget, self.covered, self.why)

    @property
    def claims_proof(self) -> bool:
        """Whether it speaks of a proof, which may be there or not."""
        return self.outcome in (PROVED, PRUNED)

    @property
    def standing(self) -> str:
        """In a few words, as tables have it."""
        return MISSING if self.reason else self.outcome

    @property
    def by(self) -> str:
        """What stands behind it, in a few words."""
        if self.word is not None:
            return f"{shortened(self.word.word)} ({plural(self.word.tokens, 'token')})"
        if self.claims_proof:
            return self.reason or f"epsilon {self.epsilon:.2g}, margin {self.margin or 0.0:.2g}"
        return f"every word of up to {plural(self.covered, 'token')} is right" if self.covered else self.why

    @property
    def sentence(self) -> str:
        """In words, without a full stop."""
        if self.reason:
            return f"{self.outcome} as the record says, but nothing is claimed: {self.reason}"
        if self.word is not None:
            return self.word.said
        if self.claims_proof:
            exact = self.float32 is not None and self.epsilon is not None and self.float32 <= self.epsilon
            return (
                f"{self.outcome}: right after every word, for ever, in every implementation whose steps are off by at "
                f"most {self.epsilon:g} ({'covers' if exact else 'does not cover'} float32)"
            )
        covered = f"; every word of up to {plural(self.covered, 'token')} is right" if self.covered else ""
        return f"open whether it is right for ever: {self.why}{covered}"

    def problem(self) -> str | None:
        if self.outcome not in OUTCOMES:
            return f"{self.outcome!r} is not one of {', '.join(OUTCOMES)}"
        if self.claims_proof != bool(self.proof) or (self.claims_proof and self.epsilon is None):
            return "a proof has a file and an epsilon"
        if (self.outcome == BROKEN) != (self.word is not None):
            return "what is broken is broken by a word"
        return self.word.problem() if self.word else None
