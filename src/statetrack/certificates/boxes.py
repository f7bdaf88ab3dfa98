"""A cover by boxes, grown forward from the start: for networks whose entries settle each for itself.

A node is a state of the task's automaton with the last few tokens, and has several boxes. The image of a box joins the
nearest box of the node that it comes to, or is a new one; a box that grew is looked at again. It ends when no image
leaves its box, or when boxes get too many or too wide.

Some networks leave their start by steps that widen every box, and settle only then. For these, boxes are first put
around states that random words lead to, and only they may grow; what leads there from the start stays apart.
"""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from statetrack.certificates.cover import BoxMaps, Columns, Cover, Floats

MARGIN = 1e-6  # beside epsilon: the checker rounds outward
GROWTH = 0.02  # a box that grows gets so much more room, so that it need not grow at every visit
WIDEST = 1.6  # a number that may move so far may be anywhere
MOST_BOXES, MOST_VISITS = 3000, 20_000
ROWS, STEPS, BURN = 128, 128, 64  # random words that show where states settle
Node = tuple[int, tuple[int, ...]]


@dataclass(frozen=True)
class Way:
    """How many tokens a node remembers, within which distance an image joins a box, and whether only boxes around
    settled states may grow.
    """

    memory: int
    near: float
    settled: bool = False


WAYS = (Way(1, 0.05), Way(1, 0.02), Way(2, 0.02), Way(1, 0.1, True), Way(2, 0.1, True), Way(3, 0.02), Way(3, 0.005),
        Way(3, 0.05, True), Way(4, 0.005))  # fmt: skip


@dataclass(eq=False)
class Box:
    """All columns of a part between lo and hi, both (columns, n)."""

    node: Node
    lo: Floats
    hi: Floats
    grows: bool
    waiting: bool = True


@dataclass
class Growth:
    """The boxes so far, by node."""

    maps: BoxMaps
    steps: NDArray[np.integer]
    way: Way
    boxes: list[Box] = field(default_factory=list)
    at: dict[Node, list[Box]] = field(default_factory=dict)
    waiting: deque[Box] = field(default_factory=deque)

    def new(self, node: Node, lo: Floats, hi: Floats, grows: bool) -> None:
        box = Box(node, lo, hi, grows)
        self.boxes.append(box)
        self.at.setdefault(node, []).append(box)
        self.waiting.append(box)

    def after(self, node: Node, token: int) -> Node:
        return int(self.steps[node[0], token]), (*node[1], token)[-self.way.memory :]

    def nearest(self, node: Node, lo: Floats, hi: Floats) -> tuple[Box | None, float]:
        """The box of a node that least has to grow to hold lo..hi, and by how much, as a step sees it; 0 where it
        holds it.
        """
        best, least = None, np.inf
        low, high = self.maps.seen(lo), self.maps.seen(hi)
        for box in self.at.get(node, ()):
            if (box.lo <= lo).all() and (hi <= box.hi).all():
                return box, 0.0
            seen = self.maps.seen(box.lo), self.maps.seen(box.hi)
            out = max(1e-300, float((seen[0] - low).max()), float((high - seen[1]).max()))
            if out < least and box.grows:
                best, least = box, out
        return best, least


def grow(
    maps: BoxMaps,
    columns: Columns,
    steps: NDArray[np.integer],
    epsilon: float,
    way: Way,
    until: float = math.inf, most_visits: int = MOST_VISITS,
) -> Cover | None:  # fmt: skip
    """A cover of these columns together, or None where none was found this way until then."""
    start = maps.start_of(columns)
    growth, slack = Growth(maps, steps, way), epsilon + MARGIN
    growth.new((0, ()), start - MARGIN, start + MARGIN, grows=False)
    if way.settled and not _settle(growth, maps, columns, slack):
        return None
    visits = 0
    while growth.waiting:
        box = growth.waiting.popleft()
        box.waiting = False
        visits += 1
        if time.monotonic() > until or visits > most_visits or len(growth.boxes) > MOST_BOXES:
            return None
        for token in range(steps.shape[1]):
            lo, hi = maps.box_image(columns, token, box.lo, box.hi, slack)
            if not _take(growth, growth.after(box.node, token), lo, hi, slack):
                return None
    return _cover(growth, maps, columns, slack)


def _take(growth: Growth, node: Node, lo: Floats, hi: Floats, slack: float) -> bool:
    """Put an image into a box of its node. A number that may be anywhere stays so, and where all may, it is of no use
    (False).
    """
    box, out = growth.nearest(node, lo, hi)
    if out == 0.0:
        return True
    if box is None or out > growth.way.near:
        growth.new(node, lo - MARGIN, hi + MARGIN, grows=not growth.way.settled)
        return True
    room = GROWTH * (np.maximum(box.hi, hi) - np.minimum(box.lo, lo)) + MARGIN
    # Only where it has to: beyond the other side the state may belong to another answer.
    maps = growth.maps
    low = np.where(lo < box.lo, lo - room * maps.room(lo, -1), box.lo)
    high = np.where(hi > box.hi, hi + room * maps.room(hi, 1), box.hi)
    if not box.waiting:
        box.waiting = True
        growth.waiting.append(box)
    wider = maps.anywhere(low, high, WIDEST, slack)
    if wider is None:
        return False
    box.lo, box.hi = wider
    return True


def _settle(growth: Growth, maps: BoxMaps, columns: Columns, slack: float) -> bool:
    """Boxes around what random words lead to, as wide as one step with its error makes them."""
    rng = np.random.default_rng(0)
    states = np.repeat(maps.start_of(columns)[None], ROWS, axis=0)
    nodes: list[Node] = [(0, ())] * ROWS
    for step in range(STEPS):
        tokens = rng.integers(0, maps.tokens, ROWS)
        for token in range(maps.tokens):
            states[tokens == token] = maps.image(columns, token, states[tokens == token])
        nodes = [growth.after(node, int(token)) for node, token in zip(nodes, tokens)]
        for node, state in zip(nodes, states) if step >= BURN else ():
            box, out = growth.nearest(node, state - slack, state + slack)
            if box is None or out > growth.way.near:
                growth.new(node, state - slack, state + slack, grows=True)
            elif not _take(growth, node, state - slack, state + slack, slack):
                return False
    return True


def _cover(growth: Growth, maps: BoxMaps, columns: Columns, slack: float) -> Cover:
    number = {id(box): place for place, box in enumerate(growth.boxes)}
    tokens = growth.steps.shape[1]
    following = np.empty((len(growth.boxes), tokens), np.int64)
    for place, box in enumerate(growth.boxes):
        for token in range(tokens):
            into, _ = growth.nearest(
                growth.after(box.node, token), *maps.box_image(columns, token, box.lo, box.hi, slack)
            )
            following[place, token] = number[id(into)]
    lo, hi = (np.stack([getattr(box, end) for box in growth.boxes]) for end in ("lo", "hi"))
    centres = (lo + hi) / 2
    radii = np.maximum(hi - centres, centres - lo) * (1 + 1e-12)
    return Cover(centres, radii, following)
