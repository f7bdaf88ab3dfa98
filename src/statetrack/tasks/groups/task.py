"""Composing the elements of a permutation group: the word problem, answered at every prefix."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from statetrack.errors import BadInput
from statetrack.tasks import draws
from statetrack.tasks.base import Ints, Run, Task
from statetrack.tasks.finite import Automaton, check_weights
from statetrack.tasks.groups import Group, canonical, group, usual_name


@dataclass(frozen=True, kw_only=True)
class GroupTask(Task):
    """The product so far: y_t is the ID of p_t ∘ ... ∘ p_1, where p_1 acts first.

    Inputs and answers are element IDs. `over` says what inputs are drawn from: all `elements`, or the `generators`
    alone; `weights` are the shares of those, in the order of their IDs or as the generators are listed.

    In S3 the element 3 is [1,2,0] and 2 is [1,0,2]; first 3, then 2, takes 0 to 1 to 0, 1 to 2, and 2 to 0 to 1: that
    is [0,2,1], the element 1.

        inputs   3 2 1
        answers  3 1 0
    """

    group: str = field(metadata={"parameter": False})
    over: str = "elements"
    weights: tuple[float, ...] = ()

    base_name = "composition"

    def __post_init__(self) -> None:
        object.__setattr__(self, "group", canonical(self.group))
        super().__post_init__()
        if self.over not in ("elements", "generators"):
            raise BadInput(f"{self.label}: over={self.over} should be 'elements' or 'generators'")
        check_weights(self.weights, len(self.letters) if self.over == "generators" else self.inputs, self.label)

    @property
    def label(self) -> str:
        return f"{self.group}_composition"

    @property
    def title(self) -> str:
        return f"composition in {usual_name(self.group)}"

    @cached_property
    def group_object(self) -> Group:
        return group(self.group)

    @property
    def inputs(self) -> int:
        self.group_object.check_ids()
        return self.group_object.order

    @property
    def outputs(self) -> int:
        return self.group_object.order

    @cached_property
    def letters(self) -> Ints:
        """The IDs that inputs are drawn from."""
        if self.over == "generators":
            return np.asarray(self.group_object.id_of(self.group_object.generators), np.int32)
        return np.arange(self.inputs, dtype=np.int32)

    def step(self, state: int, symbol: int) -> int:
        return int(self.group_object.then(state, symbol))

    def run(self, inputs: Ints, state: Any = None) -> Run:
        begin = np.zeros(len(inputs), np.int32) if state is None else state
        products = self.group_object.prefix_products(inputs, begin)
        last = products[:, -1] if inputs.shape[1] else begin
        return Run(products, np.ones(inputs.shape, bool), last)

    @property
    def symbol_weights(self) -> tuple[float, ...] | None:
        """The share of every ID."""
        if self.over == "elements":
            return self.weights or None
        shares = np.zeros(self.inputs)
        np.add.at(shares, self.letters, self.weights or 1.0)
        return tuple(shares)

    def draw(self, keys: draws.Keys, start: int, stop: int, state: Any = None) -> Ints:
        ends = draws.thresholds(self.weights)
        letters = draws.symbols(keys, start, stop, len(self.letters), ends)
        return letters if self.over == "elements" else self.letters[letters]

    @cached_property
    def automaton(self) -> Automaton:
        """The group as an automaton, for groups that have a table of products."""
        answers = np.arange(self.inputs, dtype=np.int32)
        return Automaton(self.group_object.cayley.astype(np.int32), answers)
