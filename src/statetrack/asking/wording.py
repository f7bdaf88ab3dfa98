"""How a task's inputs, answers and states are written, and what a model is told about them.

A group's elements can be written in four styles (see `rules.STYLES`); every other task has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from statetrack.asking.answers import CYCLES, IMAGES, INTEGER, Form, form
from statetrack.asking.rules import Rules
from statetrack.errors import BadInput
from statetrack.tasks import Task
from statetrack.tasks.groups import usual_name
from statetrack.tasks.groups.permutations import cycle_text
from statetrack.tasks.groups.task import GroupTask


@dataclass(frozen=True)
class Wording:
    """The words of a task that is not a group's."""

    task: Task

    @property
    def tag(self) -> str:
        """What stands before the colon of an answer."""
        return self.task.tag

    @cached_property
    def form(self) -> Form:
        return form(self.task, self.tag)

    def symbol(self, symbol: int) -> str:
        return self.task.symbol_text(symbol)

    def message(self, symbols: Sequence[int]) -> str:
        """Several inputs side by side."""
        if len(symbols) == 1:  # as in most dialogues, at every turn
            return self.symbol(symbols[0])
        texts = [self.symbol(symbol) for symbol in symbols]
        plain = all(" " not in text for text in texts)
        return (" " if plain else ", ").join(texts)

    def answer(self, answer: int) -> str:
        return self.task.answer_text(answer)

    def state(self, seen: Sequence[int]) -> str:
        """The state after these inputs."""
        return self.task.state_text(seen)

    def about(self, row: Sequence[int]) -> str:
        """What is asked, and what has to be known of the symbols in this row."""
        return self.task.instruction


@dataclass(frozen=True)
class GroupWording(Wording):
    """The words of a group's composition.

    `ids` writes elements by their IDs and answers by ID; `table` gives the one-line notation of the IDs that are used
    and asks for the product in that notation, `cycles` writes cycles throughout, `generators` names the generators.
    With a table or cycles the answer is not an ID, because the product's ID need not be among those shown.
    """

    task: GroupTask
    style: str = "ids"
    relabel: int | None = None

    def __post_init__(self) -> None:
        if self.style == "generators" and self.task.over != "generators":
            raise BadInput(f"style generators draws generators only: write {self.task.group}[over=generators]")

    @cached_property
    def names(self) -> NDArray[np.int64] | None:
        """The ID that each element is called by; None where it is its own."""
        return None if self.relabel is None else np.random.default_rng(self.relabel).permutation(self.task.inputs)

    @cached_property
    def form(self) -> Form:
        if self.style == "ids":
            return Form(self.tag, INTEGER)
        return Form(self.tag, CYCLES if self.style == "cycles" else IMAGES, self.task.group_object.degree)

    def label(self, element: int) -> str:
        """The ID by which an element is called."""
        return str(element if self.names is None else int(self.names[element]))

    def symbol(self, symbol: int) -> str:
        if self.style == "cycles":
            return cycle_text(self.task.group_object.elements[symbol])
        if self.style == "generators":
            return self.letters[symbol]
        return self.label(symbol)

    def answer(self, answer: int) -> str:
        if self.style == "ids":
            return self.label(answer)
        images = self.task.group_object.elements[answer]
        return cycle_text(images) if self.style == "cycles" else " ".join(map(str, images.tolist()))

    def state(self, seen: Sequence[int]) -> str:
        """The product so far, written as answers are."""
        return self.answer(self.task.state_after(seen))

    @cached_property
    def letters(self) -> dict[int, str]:
        """The generators' names: g1, g2, ..."""
        different = dict.fromkeys(self.task.letters.tolist())
        return {element: f"g{number}" for number, element in enumerate(different, 1)}

    def about(self, row: Sequence[int]) -> str:
        return (
            f"Each input is a permutation from the group {usual_name(self.task.group)}, which acts on the points 0 to"
            f" {self.task.group_object.degree - 1}. Compose them one after the other, the first one acting first"
            f" (p_n ∘ ... ∘ p_2 ∘ p_1). {self.notation(row)}"
        )

    def notation(self, row: Sequence[int]) -> str:
        """How permutations are written here, with the table of those that are used."""
        if self.style == "ids":
            order = (
                "IDs number all elements of the group in lexicographic order of their one-line notation, from 0, the"
                " identity."
                if self.relabel is None
                else "IDs were given to the elements in a random order."
            )
            return f"Permutations are written by their integer IDs. {order} Answer with the ID of the product so far."
        if self.style == "cycles":
            return (
                "Permutations are written in cycle notation: (0 2 1) takes 0 to 2, 2 to 1 and 1 to 0; () is the"
                " identity. Answer with the product so far in cycle notation: each cycle from its least point, cycles"
                " in the order of their least points, fixed points left out, () for the identity."
            )
        called = self.letters if self.style == "generators" else {e: self.label(e) for e in sorted(set(row))}
        elements = self.task.group_object.elements
        table = "\n".join(f"{name} = {' '.join(map(str, elements[e].tolist()))}" for e, name in called.items())
        return (
            "In one-line notation the i-th entry, counted from 0, is the image of point i. The permutations are:\n"
            f"{table}\nAnswer with the one-line notation of the product so far, entries separated by single spaces."
        )


def wording(task: Task, rules: Rules) -> Wording:
    """The words of a task under these rules; the same object for all samples, with what it has worked out."""
    return _wording(task, rules.style, rules.relabel)


@lru_cache(maxsize=256)
def _wording(task: Task, style: str, relabel: int | None) -> Wording:
    if isinstance(task, GroupTask):
        return GroupWording(task, style, relabel)
    if style != "ids" or relabel is not None:
        raise BadInput(f"style and relabel belong to permutation groups; {task.name} has one way of writing")
    return Wording(task)
