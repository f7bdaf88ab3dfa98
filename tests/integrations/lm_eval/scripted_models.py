"""Models for the harness that follow a script, and solvers that read prompts with no code of the package."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import permutations
from typing import Any

from lm_eval.api.model import LM

Permutation = tuple[int, ...]


class Scripted(LM):
    """`greedy` says what greedy decoding gives for a prompt."""

    def __init__(self, greedy: Callable[[str], str]) -> None:
        super().__init__()
        self.greedy = greedy
        self.seen: list[tuple[str, Any]] = []

    def loglikelihood(self, requests: list[Any], **_: Any) -> list[tuple[float, bool]]:
        self.seen += [request.args for request in requests]
        return [(-1.0, self.greedy(prompt) == answer) for prompt, answer in (request.args for request in requests)]

    def generate_until(self, requests: list[Any], **_: Any) -> list[str]:
        self.seen += [request.args for request in requests]
        return [self.greedy(request.args[0]) for request in requests]

    def loglikelihood_rolling(self, requests: list[Any], **_: Any) -> list[float]:
        raise AssertionError("never asked")


def sequence(prompt: str) -> list[str]:
    """The words of the last sequence in a prompt."""
    text = re.findall(r"^Sequence: (.*)$", prompt, re.MULTILINE)[-1]
    return text.split(", ") if "," in text or "(" in text else text.split()


def compose(steps: list[Permutation]) -> Permutation:
    """p_n ∘ ... ∘ p_1: p_1 acts first."""
    points = tuple(range(len(steps[0])))
    for step in steps:
        points = tuple(step[point] for point in points)
    return points


def symmetric_by_id(degree: int, backwards: bool = False) -> Callable[[str], str]:
    """Solves S_n from IDs: itertools lists its permutations in lexicographic order."""
    elements = list(permutations(range(degree)))

    def greedy(prompt: str) -> str:
        steps = [elements[int(word)] for word in sequence(prompt)]
        return f" {elements.index(compose(steps[::-1] if backwards else steps))}"

    return greedy


def by_table(prompt: str) -> str:
    """Solves any group whose prompt has a table of one-line notations."""
    table = {name: tuple(map(int, images.split())) for name, images in re.findall(r"^(\w+) = ([\d ]+)$", prompt, re.M)}
    product = compose([table[word] for word in sequence(prompt)])
    return f" [{tag(prompt)}: {' '.join(map(str, product))}]"


def by_cycles(degree: int) -> Callable[[str], str]:
    """Solves any group of this degree from cycles, and answers in cycles."""

    def read(text: str) -> Permutation:
        images = list(range(degree))
        for inside in re.findall(r"\(([\d ]*)\)", text):
            cycle = list(map(int, inside.split()))
            for here, there in zip(cycle, cycle[1:] + cycle[:1]):
                images[here] = there
        return tuple(images)

    def write(images: Permutation) -> str:
        text, left = "", set(range(degree))
        while left:
            cycle = [min(left)]
            while images[cycle[-1]] != cycle[0]:
                cycle.append(images[cycle[-1]])
            left -= set(cycle)
            text += f"({' '.join(map(str, cycle))})" if len(cycle) > 1 else ""
        return text or "()"

    return lambda prompt: f" [{tag(prompt)}: {write(compose([read(word) for word in sequence(prompt)]))}]"


def tag(prompt: str) -> str:
    """The word in the asked-for format [word: <answer>]."""
    return re.findall(r"\[(\w+): <answer>\]", prompt)[-1]
