"""The names of groups: the catalogue's, z<n>, products AxB, and generators in text.

>>> canonical(" A4 x Z5 "), usual_name("a4xz5"), family("a4xz5")
('a4xz5', 'A4 x Z5', 'product')
>>> usual_name("psl2_7"), usual_name("z2_3"), family("z60")
('PSL(2,7)', 'Z_2^3', 'cyclic')
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from statetrack.errors import BadInput, shortened, unknown
from statetrack.tasks.groups import notation
from statetrack.tasks.groups.families import FAMILIES, cyclic
from statetrack.tasks.groups.permutations import MAX_DEGREE, Images, checked, identity

MAX_FACTORS = 16
MATCHED = ("z60", "a4xz5")
"""With a5, the three groups of order 60 that are compared with each other."""


@dataclass(frozen=True)
class NamedGroup:
    """What a name without a product stands for."""

    name: str
    usual: str
    family: str
    generators: Callable[[], Sequence[Images]]


@cache
def _catalogue() -> dict[str, NamedGroup]:
    entries = {}
    for family in FAMILIES:
        for numbers in family.members:
            name, usual = family.pattern.format(*numbers), family.usual.format(*numbers).removesuffix("^1")
            entries[name] = NamedGroup(name, usual, family.name, partial(family.generators, *numbers))
    return entries


def catalogue() -> list[str]:
    """The 94 names, family by family."""
    return list(_catalogue())


def canonical(name: str) -> str:
    """The one text of a group's name: lower case, and no spaces but those inside cycles.

    >>> canonical("<(0,1, 2)> x S3")
    '<(0 1 2)>xs3'
    """
    return "x".join(entry.name for entry in _factors(name))


def family(name: str) -> str:
    """The family of the catalogue, or 'product' or 'generated'."""
    entries = _factors(name)
    return entries[0].family if len(entries) == 1 else "product"


def usual_name(name: str) -> str:
    """What people write: S5, PSL(2,7), A4 x Z5."""
    return " x ".join(entry.usual for entry in _factors(name))


def generators(name: str) -> Images:
    """The generators that a name stands for; in a product each factor acts on its own points, the left one's first."""
    entries = _factors(name)
    if len(entries) > MAX_FACTORS:
        raise BadInput(f"group {shortened(name)} has {len(entries)} factors; a product may have {MAX_FACTORS}")
    factors = [np.stack(entry.generators()) for entry in entries]
    degree = sum(factor.shape[1] for factor in factors)
    if degree > MAX_DEGREE:
        raise BadInput(f"group {name!r} would have degree {degree}; a degree may be at most {MAX_DEGREE}")
    rows, first = [], 0
    for factor in factors:
        for images in factor:
            row = identity(degree)
            row[first : first + len(images)] = images + first
            rows.append(row)
        first += factor.shape[1]
    return np.stack(rows)


def looks_like_group(text: str) -> bool:
    """Whether a text can only have been meant as a group, whether or not its parts are right.

    >>> looks_like_group("s5xs99"), looks_like_group("<(0 1"), looks_like_group("rtc")
    (True, True, False)
    """
    parts = [text[first:last].strip().lower() for first, last in _spans(text)]
    return "<" in text or any(part in _catalogue() or re.fullmatch(r"z[0-9]+", part) for part in parts)


def _factors(name: str) -> list[NamedGroup]:
    return [_entry(name, first, last) for first, last in _spans(name)]


def _spans(name: str) -> list[tuple[int, int]]:
    """Where the factors of a product stand: between the letters x that are outside of '<...>'."""
    cuts, inside = [-1], False
    for place, character in enumerate(name):
        inside = character == "<" or (inside and character != ">")
        if character in "xX" and not inside:
            cuts.append(place)
    return [(before + 1, after) for before, after in zip(cuts, [*cuts[1:], len(name)])]


def _entry(name: str, first: int, last: int) -> NamedGroup:
    text = name[first:last].strip().lower()
    if text.startswith("<"):
        images, tidy = checked(notation.read(name, first, last)), notation.tidy(text)
        return NamedGroup(tidy, tidy, "generated", lambda: list(images))
    if text in _catalogue():
        return _catalogue()[text]
    if re.fullmatch(r"z[0-9]+", text):
        return _cyclic(text)
    if not text and text != name.strip():
        raise BadInput(f"group {name!r}: a factor is missing at character {first + 1}")
    raise unknown("group", text, [*catalogue(), *MATCHED])


def _cyclic(text: str) -> NamedGroup:
    n = int(text[1:]) if len(text) < 9 else MAX_DEGREE + 1
    if not 2 <= n <= MAX_DEGREE:
        raise BadInput(f"group {text!r}: the cyclic group z<n> needs n in 2..{MAX_DEGREE}")
    return NamedGroup(f"z{n}", f"Z{n}", "cyclic", partial(cyclic, n))
