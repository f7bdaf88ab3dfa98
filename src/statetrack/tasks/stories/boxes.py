"""Objects that are moved between boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product

from statetrack.tasks.base import between
from statetrack.tasks.stories.orders import Order, OrdersTask


@dataclass(frozen=True, kw_only=True)
class Boxes(OrdersTask):
    """In which box is one of the objects? Object i starts in box i mod `boxes`.

    The inputs are, in this order: move object 0 to box 0, to box 1, ..., object 1 to box 0, ...; pour box 0 into box
    1, 0 into 2, ..., 1 into 0, .... With 3 objects and 3 boxes there are 9 + 6; 1 moves object 0 to box 1, 5 moves
    object 1 to box 2, 12 pours box 1 into box 2 and 13 box 2 into box 0. The answer is the box of object 0 (`query`):

        inputs   5 1 12 13
        answers  0 1 2 0

    Moves of the other objects change nothing for this one, so its box is all the state there is: the rest distracts.
    """

    objects: int = between(1, 50, default=3)
    boxes: int = between(2, 50, default=3)
    query: int = 0

    base_name = "boxes"
    title = "objects in boxes"

    def check(self) -> None:
        self.check_range("query", 0, self.objects - 1)
        super().check()

    @cached_property
    def orders(self) -> tuple[Order, ...]:
        """Move the object a to box b, or pour everything in box a into box b."""
        return (
            *(("move", *pair) for pair in product(range(self.objects), range(self.boxes))),
            *(("pour", *pair) for pair in permutations(range(self.boxes), 2)),
        )

    @property
    def outputs(self) -> int:
        return self.boxes

    def start(self) -> int:
        return self.query % self.boxes

    def step(self, state: int, symbol: int) -> int:
        verb, a, b = self.orders[symbol]
        concerned = a == (self.query if verb == "move" else state)
        return b if concerned else state

    def symbol_text(self, symbol: int) -> str:
        verb, a, b = self.orders[symbol]
        return f"move object {a} to box {b}" if verb == "move" else f"pour box {a} into box {b}"

    def answer_text(self, answer: int) -> str:
        return f"box {answer}"

    @property
    def instruction(self) -> str:
        return (
            f"There are {self.objects} objects and {self.boxes} boxes, both numbered from 0. Object i starts in box i"
            f" modulo {self.boxes}. Each input moves one object to a box, or pours all that is in one box into another."
            f" Answer with the box that object {self.query} is in now."
        )

    def state_text(self, seen: Sequence[int]) -> str:
        return f"object {self.query} in box {self.state_after(seen)}"
