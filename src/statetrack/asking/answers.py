"""How an answer is written, and how a reply is read.

The strict reader follows Track the Stat: after strip and lower-case, the first `[tag: value]` with exactly one space.
The lenient reader takes whatever may be meant as an answer; what the strict one can read, it reads the same way.

>>> median = Form("median")
>>> median.write("63"), median.read("So it is **[Median: 63.0]**."), median.read("[median:63]")
('[median: 63]', 63.0, None)
>>> median.read_leniently("[median:63]"), median.read_leniently("I would say 7.5"), median.read_leniently("no idea")
(63.0, 7.5, None)
>>> Form("answer", INTEGER).read("[answer: 1]"), Form("answer", INTEGER).read("[answer: 0.96]")
(1, None)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property

from statetrack.tasks import Task

Value = float | str | tuple[int, ...]
"""What a reply means: an integer, a number rounded to one decimal, words in lower case, or the images of a permutation.
"""

NUMBER, INTEGER, SIGNED, WORDS, IMAGES, CYCLES = "number", "integer", "signed", "words", "images", "cycles"
MOST_DIGITS = 300  # of an integer that is read
MOST_WORDS = 1000  # up to this many different answers in words are looked for one by one

_PATTERNS = {
    NUMBER: r"[0-9]+(?:\.[0-9]+)?",
    INTEGER: r"[0-9]+(?:\.0+)?",
    SIGNED: r"-?[0-9]+(?:\.0+)?",
    IMAGES: r"[0-9]+(?:[ ,]+[0-9]+)*",
    CYCLES: r"(?:\( *(?:[0-9]+(?:[ ,]+[0-9]+)*)? *\) ?)+",
}
_BEGINS, _ENDS = r"(?<![^\W_])", r"(?![^\W_])"  # no letter or digit beside it
_NEGATED = (
    r"(?<!\bnot )(?<!\bnot a )(?<!\bnot an )(?<!\bnot the )(?<!\bnot equal to )(?<!n't )(?<!\bnever )(?<!\bnor )"
    "(?<!≠)(?<!≠ )(?<!!=)(?<!!= )"
)
_MINUS = r"\-−–﹣－"  # as people and models write it
_DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?"
_GROUPED = r"(?:[_'’\u00a0\u2009\u202f][0-9]+)*"  # 12’345 and 1_000, which others write for 12,345 and 1,000
_SIGN = rf"[+{_MINUS}]"
_REST = (
    rf"{_GROUPED}(?:(?:\s?[/⁄∕÷^*×·]+\s?|{_SIGN}){_SIGN}?{_DIGITS})*"  # 1/2, 10^3 and 2-3 are no number that is read
)
_LOOSE_NUMBER = (  # the whole of it: of 12,345 not 345
    rf"(?<![.,/⁄∕÷^+√{_MINUS}])(?<![0-9]['’_\u00a0\u2009\u202f]){_BEGINS}{_NEGATED}{_SIGN}?{_DIGITS}{_REST}{_ENDS}"
    "(?![.,][0-9])"
)
_LOOSE = {
    NUMBER: _LOOSE_NUMBER,
    INTEGER: _LOOSE_NUMBER,
    SIGNED: _LOOSE_NUMBER,
    IMAGES: r"[0-9]+(?:[ ,]+[0-9]+)*",
    CYCLES: r"(?:\( *(?:[0-9]+(?:[ ,]+[0-9]+)*)? *\) *)+",
}


@dataclass(frozen=True)
class Form:
    """The form of an answer: `[tag: value]`, or without a tag the bare value and nothing else.

    `degree` is the number of points of a permutation, for the kinds `images` and `cycles`; `words` are the answers
    there are, for the kind `words` (none: any text without a closing bracket).
    """

    tag: str = ""
    kind: str = NUMBER
    degree: int = 0
    words: tuple[str, ...] = ()

    def write(self, answer: str) -> str:
        """The canonical reply."""
        return f"[{self.tag}: {answer}]" if self.tag else answer

    def value(self, text: str) -> Value | None:
        """What a written answer means; None for what is not an integer, or not a permutation of the right points."""
        if self.kind in (NUMBER, INTEGER, SIGNED):
            plain = re.sub(f"[{_MINUS}]", "-", text.replace(",", ""))
            if self.kind != NUMBER:
                return _integer(plain)
            return round(float(plain), 1) if _is_number(plain) else None
        if self.kind == WORDS:
            return " ".join(text.lower().split())
        return _images(text, self.degree, cycles=self.kind == CYCLES)

    def read(self, reply: str, last: bool = False) -> Value | None:
        """The value of the first match (or the last, after reasoning); None for a violation of the format."""
        match = self.find(reply, last)
        return None if match is None else self.value(match[1])

    def find(self, reply: str, last: bool = False) -> tuple[str, str] | None:
        """The matched part of the reply as it was written, and the answer in it."""
        text = reply.strip()
        if not self.tag:
            text = text.splitlines()[-1].strip() if last and text else text
            match = self._strict.fullmatch(text.lower())
            return (text, match[1]) if match else None
        matches = list(self._strict.finditer(text.lower()))
        if not matches:
            return None
        match = matches[-1 if last else 0]
        # Lower case can change the length of a text in some scripts; the canonical form then stands for it.
        same = len(text.lower()) == len(text)
        return (text[match.start() : match.end()] if same else match[0]), match[1]

    def read_leniently(self, reply: str, last: bool = False) -> Value | None:
        """The strict value; else what follows the tag; else the last thing that looks like an answer."""
        strict = self.read(reply, last)
        if strict is not None:
            return strict
        text = reply.strip().lower()
        if self.tag:
            near = re.findall(rf"{_BEGINS}{re.escape(self.tag)}[^0-9a-z(\[-]{{0,8}}(?:is )?({self._loose})", text)
            if near:
                return self.value(near[-1 if last else 0])
        anywhere = [] if _UNSURE.search(text.replace("’", "'")) else re.findall(self._loose, text)
        return self.value(anywhere[-1]) if anywhere else None

    @cached_property
    def _words(self) -> str:
        ordered = sorted((word.lower() for word in self.words), key=len, reverse=True)
        return "|".join(map(re.escape, ordered)) or r"[^\]\n]+"

    @cached_property
    def _strict(self) -> re.Pattern[str]:
        value = _PATTERNS.get(self.kind) or self._words
        return re.compile(rf"\[{re.escape(self.tag)}: ({value})\]" if self.tag else f"({value})")

    @cached_property
    def _loose(self) -> str:
        return _LOOSE.get(self.kind) or rf"{_BEGINS}{_NEGATED}(?:{self._words}){_ENDS}"


def form(task: Task, tag: str) -> Form:
    """The form of a task's answers: numbers where all are numbers, with a sign where some have one, else words."""
    texts = [task.answer_text(answer) for answer in range(min(task.outputs, MOST_WORDS))]
    for kind in (INTEGER, NUMBER, SIGNED):
        if all(re.fullmatch(_PATTERNS[kind], text) for text in texts):
            return Form(tag, kind)
    return Form(tag, WORDS, words=tuple(texts) if task.outputs <= MOST_WORDS else ())


def _is_number(text: str) -> bool:
    """And not a fraction, a power or a range of numbers."""
    return re.fullmatch(rf"[-+]?{_DIGITS}", text) is not None


def _integer(text: str) -> int | None:
    """Of 9007199254740993 every digit: a float would round it. None for what is no whole number.

    >>> _integer("9007199254740993"), _integer("-1.0"), _integer("1e3"), _integer("0.96"), _integer("10^3")
    (9007199254740993, -1, 1000, None, None)
    """
    try:
        number = Decimal(text) if _is_number(text) else None
    except InvalidOperation:  # an exponent beyond all that can be computed with
        return None
    if number is None or number.adjusted() >= MOST_DIGITS or number != number.to_integral_value():
        return None
    return int(number)


def _images(text: str, degree: int, cycles: bool) -> tuple[int, ...] | None:
    """The images of the points 0..degree-1; None where the text is not a permutation of them."""
    if not cycles:
        images = _points(text, degree)
        return images if sorted(images) == list(range(degree)) else None
    moved = list(range(degree))
    named: list[int] = []
    for inside in re.findall(r"\(([^)]*)\)", text):
        cycle = _points(inside, degree)
        named += cycle
        for here, there in zip(cycle, (*cycle[1:], *cycle[:1])):
            moved[min(here, degree - 1)] = there
    good = len(set(named)) == len(named) and all(point < degree for point in named)
    return tuple(moved) if good else None


def _points(text: str, degree: int) -> tuple[int, ...]:
    """The numbers in a text; one too long to be a point stands as `degree`, which is not a point."""
    return tuple(int(digits) if len(digits) < 6 else degree for digits in re.findall(r"[0-9]+", text))


_THOUGHTS = (
    r"(?:[a-z_-]{0,30}?(?:think|thought|reason|reflection|monologue)[a-z_-]{0,30})|analysis|scratchpad|cot|rationale"
    "|deliberation"
)
_LESS, _MORE = "(?:<|&lt;|＜)", "(?:>|&gt;|＞)"
_OPENS = (
    rf"{_LESS}\|?\s*(?:[a-z]+:)?(?:{_THOUGHTS})\b[^<>]*?(?<!/){_MORE}|\[(?:{_THOUGHTS})\]|◁(?:{_THOUGHTS})▷"
    r"|<\|channel\|>\s*(?:analysis|commentary)\b"
)
_CLOSES = (
    rf"{_LESS}\|?\s*(?:/\s*|end_|end_of_)(?:[a-z]+:)?(?:{_THOUGHTS})\s*\|?{_MORE}|\[/(?:{_THOUGHTS})\]|◁/(?:{_THOUGHTS})▷"
    r"|<\|channel\|>\s*final\s*(?:<\|message\|>)?"
)
_MARKS = re.compile(f"({_CLOSES})|{_OPENS}", re.IGNORECASE)


def left_open(text: str) -> str:
    """The mark of reasoning that a text begins and does not end, such as a chat template that has its model think.

    >>> left_open("<think>so</think> 5 <|im_start|>assistant <think>"), left_open("<think>so</think> 5")
    ('<think>', '')
    """
    marks = list(_MARKS.finditer(text))
    return marks[-1][0] if marks and not marks[-1][1] else ""


def marks_reasoning(text: str) -> bool:
    """Whether a text, such as a chat template or a special token, holds a mark of reasoning.

    >>> marks_reasoning("{{ '<think>' }}"), marks_reasoning("<|im_start|>assistant")
    (True, False)
    """
    return _MARKS.search(text) is not None


def without_reasoning(text: str) -> str:
    """What a reply says after the end of what is marked as reasoning; nothing where that has no end. An end without a
    beginning means that the reply began with reasoning.

    >>> without_reasoning("<think>85, 63: so 74</think>[median: 74]"), without_reasoning("<THINK>perhaps [median: 74]")
    ('[median: 74]', '')
    >>> without_reasoning("perhaps [median: 74]</think>[median: 63]")
    '[median: 63]'
    """
    marks = list(_MARKS.finditer(text))
    if not marks:
        return text
    return text[marks[-1].end() :] if marks[-1][1] else ""


_UNSURE = re.compile(r"\b(?:do not|don't|cannot|can't|could not|couldn't) (?:know|tell|say)\b|\bno idea\b|\bnot sure\b")
_REFUSALS = re.compile(
    r"\b(i(?:'m| am) (?:sorry|unable|not able)|i (?:can(?:'|no)t|cannot|won't) |as an ai\b|i must decline|i refuse)",
)


def is_refusal(reply: str) -> bool:
    """Whether a reply without an answer declines to give one.

    >>> is_refusal("I'm sorry, but I can't help with that."), is_refusal("[median 5]")
    (True, False)
    """
    return bool(_REFUSALS.search(reply.replace("’", "'").lower()))
