"""Generators written as text: '<(0 1 2 3 4),(0 1)>' in cycles, or '<[1,2,0],[1,0,2]>' as image lists.

The degree is the largest point plus one. Points are separated by spaces or commas. What is wrong is named with its
place: characters are counted from 1, in the whole of the text that was given.

>>> read("<(0 1 2),(0 1)>")
[[1, 2, 0], [1, 0, 2]]
>>> tidy("< (0,1  2) , ( 0 1 ) >")
'<(0 1 2),(0 1)>'
"""

from __future__ import annotations

import re

from statetrack.errors import BadInput
from statetrack.tasks.groups.permutations import MAX_DEGREE, from_cycles


def tidy(text: str) -> str:
    """The same generators with one way of spacing: spaces inside cycles, commas elsewhere."""
    text = re.sub(r"\s+", " ", text.strip())
    text = re.sub(r" ?([<>()\[\],]) ?", r"\1", text)
    text = re.sub(r"\([^()]*\)", lambda cycle: cycle[0].replace(",", " "), text)
    return re.sub(r"\[[^\[\]]*\]", lambda images: images[0].replace(" ", ","), text)


def read(text: str, first: int = 0, last: int | None = None) -> list[list[int]]:
    """The generators in text[first:last] as images; cycles fix every point that they do not name."""
    reader = _Reader(text, first, len(text) if last is None else last)
    generators = reader.generators()
    degree = max(len(images) for images, _ in generators)
    if degree == 0:
        raise reader.error("the generators name no point; an image list such as <[0,1,2]> says the degree")
    return [images + list(range(len(images), degree)) if in_cycles else images for images, in_cycles in generators]


class _Reader:
    """Reads from left to right; `at` is the index of the next character."""

    def __init__(self, text: str, first: int, last: int) -> None:
        self.text, self.at, self.last = text, first, last

    def generators(self) -> list[tuple[list[int], bool]]:
        """The images of each, up to its own largest point, and whether it was written in cycles."""
        self.take("<")
        generators = [self.generator()]
        while self.next() == ",":
            self.take(",")
            generators.append(self.generator())
        self.take(">")
        if self.next():
            raise self.error(f"{self.next()!r} follows the closing '>'")
        return generators

    def generator(self) -> tuple[list[int], bool]:
        if self.next() == "[":
            return self.image_list(), False
        if self.next() != "(":
            raise self.error(f"a generator starts with '(' or '[', not with {self.found()}")
        return self.cycles(), True

    def cycles(self) -> list[int]:
        seen: set[int] = set()
        cycles = []
        while self.next() == "(":
            cycles.append(self.points("(", ")", seen, "the cycles of one generator"))
        return [int(image) for image in from_cycles(cycles, max(seen, default=-1) + 1)]

    def image_list(self) -> list[int]:
        start = self.at
        images = self.points("[", "]", set(), "one image list")
        missing = set(range(len(images))) - set(images)
        if missing:
            self.at = start
            raise self.error(f"an image list of {len(images)} points is a permutation of 0..{len(images) - 1}, "
                             f"but {min(missing)} is missing")  # fmt: skip
        return images

    def points(self, opening: str, closing: str, seen: set[int], where: str) -> list[int]:
        """The points between two brackets; none of them may have been seen before."""
        self.take(opening)
        points: list[int] = []
        while self.next() != closing:
            if points and self.next() == ",":
                self.take(",")
            points.append(self.point(seen, where))
            seen.add(points[-1])
        self.take(closing)
        return points

    def point(self, seen: set[int], where: str) -> int:
        self.next()
        digits = re.compile(r"[0-9]+").match(self.text, self.at, self.last)
        if digits is None:
            raise self.error(f"a point should be a whole number, not {self.found()}")
        if len(digits[0]) > 9 or int(digits[0]) >= MAX_DEGREE:
            raise self.error(f"point {digits[0]} should lie in 0..{MAX_DEGREE - 1}")
        if int(digits[0]) in seen:
            raise self.error(f"point {digits[0]} appears twice in {where}")
        self.at = digits.end()
        return int(digits[0])

    def next(self) -> str:
        """The next character that is not a space, which is not taken yet; '' at the end."""
        while self.at < self.last and self.text[self.at].isspace():
            self.at += 1
        return self.text[self.at] if self.at < self.last else ""

    def take(self, character: str) -> None:
        if self.next() != character:
            raise self.error(f"{character!r} should stand here, not {self.found()}")
        self.at += 1

    def found(self) -> str:
        return repr(self.next()) if self.next() else "the end"

    def error(self, message: str) -> BadInput:
        return BadInput(f"generators {self.text!r}, character {self.at + 1}: {message}")
