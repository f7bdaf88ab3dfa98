"""Data sets as others publish them, made without any of the code that is tested: closures by hand, labels by hand."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path

Permutation = tuple[int, ...]


def closure(generators: list[Permutation]) -> list[Permutation]:
    """Every product of the generators."""
    found = {tuple(range(len(generators[0])))}
    fresh = list(found)
    while fresh:
        fresh = [p for p in {tuple(g[i] for i in p) for g in generators for p in fresh} if p not in found]
        found.update(fresh)
    return sorted(found)


def dihedral(n: int) -> list[Permutation]:
    """What the published generator made of q8, q16 and q32: x -> x + 1 and x -> -x on half as many points."""
    return closure([tuple((x + 1) % n for x in range(n)), tuple(-x % n for x in range(n))])


class Field:
    """F_q: numbers whose base-p digits are coefficients; `monic` are the field polynomial's lower coefficients."""

    def __init__(self, p: int, monic: list[int]) -> None:
        self.p, self.n, self.monic = p, len(monic), monic
        self.q = p**self.n

    def digits(self, a: int) -> list[int]:
        return [a // self.p**i % self.p for i in range(self.n)]

    def number(self, digits: list[int]) -> int:
        return sum(digit % self.p * self.p**i for i, digit in enumerate(digits))

    def plus(self, a: int, b: int) -> int:
        return self.number([x + y for x, y in zip(self.digits(a), self.digits(b))])

    def times(self, a: int, b: int) -> int:
        long = [0] * (2 * self.n)
        for (i, x), (j, y) in product(enumerate(self.digits(a)), enumerate(self.digits(b))):
            long[i + j] += x * y
        for top in range(2 * self.n - 1, self.n - 1, -1):
            for i, coefficient in enumerate(self.monic):
                long[top - self.n + i] -= long[top] * coefficient
            long[top] = 0
        return self.number(long[: self.n])

    def inverse(self, a: int) -> int:
        return next(b for b in range(self.q) if self.times(a, b) == 1)


F4, F8, F9 = Field(2, [1, 1]), Field(2, [1, 1, 0]), Field(3, [2, 1])


def one_translation_line(field: Field) -> list[Permutation]:
    """PSL(2, q) with one translation, x -> x + w for the root w of the field polynomial: too few. Infinity is q."""
    q = field.q
    minus_one = field.number([-1])
    turn = [q, *(field.times(minus_one, field.inverse(x)) for x in range(1, q))]
    return closure([(*(field.plus(x, field.p) for x in range(q)), q), (*turn, 0)])


def one_shear_plane(field: Field) -> list[Permutation]:
    """PSL(3, q) with one shear, of factor 1, and the cycle of the coordinates: PSL(3, 2) only."""
    points = [v for v in product(range(field.q), repeat=3) if next((x for x in v if x), 0) == 1]

    def normalised(v: tuple[int, ...]) -> tuple[int, ...]:
        scale = field.inverse(next(x for x in v if x))
        return tuple(field.times(scale, x) for x in v)

    shear = tuple(points.index(normalised((field.plus(a, b), b, c))) for a, b, c in points)
    cycle = tuple(points.index(normalised((c, a, b))) for a, b, c in points)
    return closure([shear, cycle])


def seven_wrong_ones() -> Iterator[tuple[str, list[Permutation], list[str]]]:
    """The name each is published under, its permutations, and the catalogue's names for what it really is."""
    yield "q8", dihedral(4), ["d4"]
    yield "q16", dihedral(8), ["d8"]
    yield "q32", dihedral(16), ["d16"]
    yield "psl2_4", one_translation_line(F4), ["d5"]
    yield "psl2_8", one_translation_line(F8), ["d9"]
    yield "psl2_9", one_translation_line(F9), ["a5", "psl2_4", "psl2_5"]
    yield "psl3_4", one_shear_plane(F4), ["psl2_7", "psl3_2"]


def label(elements: list[Permutation], ids: list[int], published: bool) -> int:
    """p_1 ∘ ... ∘ p_n when published, p_n ∘ ... ∘ p_1 otherwise."""
    points = list(range(len(elements[0])))
    for element in reversed(ids) if published else ids:
        points = [elements[element][point] for point in points]
    return elements.index(tuple(points))


def publish(
    folder: Path, elements: list[Permutation], family: str, *, published: bool = True, rows: tuple[int, int] = (60, 30)
) -> list[Permutation]:
    """Write train.jsonl, test.jsonl and metadata.json, the elements numbered in no order; the elements as numbered."""
    draw = random.Random(folder.name)
    shuffled = draw.sample(elements, len(elements))
    folder.mkdir()
    for split, count in zip(("train", "test"), rows):
        with (folder / f"{split}.jsonl").open("w") as file:
            for _ in range(count):
                ids = draw.choices(range(len(elements)), k=draw.randint(20, 600))
                row = {
                    "input_sequence": " ".join(map(str, ids)),
                    "target": str(label(shuffled, ids, published)),
                    "sequence_length": len(ids),
                    "group_degree": len(elements[0]),
                    "group_order": len(elements),
                    "group_type": family,
                }
                file.write(json.dumps(row) + "\n")
    numbered = {str(i): list(images) for i, images in enumerate(shuffled)}
    (folder / "metadata.json").write_text(json.dumps({"permutation_map": numbered}))
    return shuffled
