"""Brackets against a real stack, and the walks that are drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import statetrack as st


def innermost(symbols: list[int], depth: int, kinds: int) -> int:
    stack: list[int] = []
    for symbol in symbols:
        if symbol < kinds:
            stack.append(symbol)
            if len(stack) > depth:
                return kinds + 1
        elif not stack or stack.pop() != symbol - kinds:
            return kinds + 1
    return stack[-1] + 1 if stack else 0


@pytest.mark.parametrize(
    ("text", "depth", "kinds"),
    [
        ("dyck", 4, 2),
        ("dyck[depth=1,kinds=1]", 1, 1),
        ("dyck[depth=3,kinds=4,p=0.7]", 3, 4),
        ("dyck[depth=12,p=0.6]", 12, 2),
        ("dyck[depth=3,kinds=3,wrong=0.2]", 3, 3),
    ],
)
def test_against_a_stack(text: str, depth: int, kinds: int, agree: Callable[..., None]) -> None:
    agree(text, lambda x: innermost(x, depth, kinds))


def test_the_number_of_states() -> None:
    """All stacks up to the depth, and one broken state; none can be spared."""
    for depth, kinds in ((4, 2), (3, 3), (6, 1)):
        automaton = st.task(f"dyck[depth={depth},kinds={kinds}]").automaton
        assert automaton.states == sum(kinds**d for d in range(depth + 1)) + 1
        assert automaton.minimised().states == automaton.states


def walk(task: st.Task, length: int = 300, count: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """The rows, and the depth before each bracket."""
    inputs = task.sample(length, count).inputs
    move = np.where(inputs < task.kinds, 1, -1)
    return inputs, np.cumsum(move, axis=1) - move


@pytest.mark.parametrize("p", [0.0, 0.3, 0.5, 1.0])
def test_walks_are_legal_and_open_at_their_rate(p: float) -> None:
    task = st.task(f"dyck[depth=3,kinds=3,p={p}]")
    inputs, depth = walk(task)
    assert not np.any(task.targets(inputs) == 4)
    opens = inputs < 3
    assert opens[depth == 0].all()
    assert not opens[depth == 3].any()
    between = opens[(depth > 0) & (depth < 3)]
    assert between.mean() == pytest.approx(p, abs=0.01)
    kinds = np.bincount(inputs[opens], minlength=3) / opens.sum()
    assert kinds == pytest.approx([1 / 3] * 3, abs=0.01)


def test_mistakes_come_at_their_rate_and_are_of_every_wrong_kind() -> None:
    task = st.task("dyck[depth=6,kinds=4,wrong=0.25]")
    inputs = task.sample(2, 20_000).inputs
    second = inputs[inputs[:, 1] >= 4]  # closed at once
    shift = (second[:, 1] - 4 - second[:, 0]) % 4
    share = np.bincount(shift, minlength=4) / len(shift)
    assert share == pytest.approx([0.75, 1 / 12, 1 / 12, 1 / 12], abs=0.015)


def test_after_a_mistake_anything_comes_and_the_answer_stays() -> None:
    task = st.task("dyck[wrong=1]")
    batch = task.sample(400, 200)
    broken = batch.targets == 3
    assert broken[:, -1].all()
    assert np.all(np.diff(broken.astype(int), axis=1) >= 0)
    share = np.bincount(batch.inputs[:, 100:].ravel(), minlength=4) / batch.inputs[:, 100:].size
    assert share == pytest.approx([0.25] * 4, abs=0.01)


def test_texts() -> None:
    task = st.task("dyck")
    assert [task.symbol_text(symbol) for symbol in range(4)] == ["(", "[", ")", "]"]
    assert [task.answer_text(answer) for answer in range(4)] == ["balanced", "(", "[", "broken"]
