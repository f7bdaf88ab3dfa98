"""cycle_navigation, even_pairs and modular_arithmetic, with the examples of neural_networks_chomsky_hierarchy."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

import statetrack as st


@pytest.mark.parametrize(("text", "m"), [("cycle_navigation", 5), ("cycle_navigation[m=4,weights=[1,1,3]]", 4)])
def test_cycle_navigation(text: str, m: int, agree: Callable[..., None]) -> None:
    agree(text, lambda x: (x.count(2) - x.count(0)) % m)


def test_cycle_navigation_as_published() -> None:
    for moves, place in (([1, -1, 0, -1, -1], 3), ([1, 1, 1, -1], 2)):
        assert st.task("cycle_navigation").targets(np.array(moves) + 1)[-1] == place


def changes(symbols: list[int]) -> int:
    return sum(a != b for a, b in pairwise(symbols)) % 2


@pytest.mark.parametrize("text", ["even_pairs", "even_pairs[p=0.1]"])
def test_even_pairs(text: str, agree: Callable[..., None]) -> None:
    agree(text, changes)


def test_even_pairs_as_published() -> None:
    for string, odd in (("001110", 0), ("0101001", 1)):
        assert st.task("even_pairs").targets([int(bit) for bit in string])[-1] == odd


def value(symbols: list[int], m: int) -> int | None:
    """Python's own arithmetic on the expression as text."""
    text = "".join(f"{symbol:d}" if symbol < m else "+-*"[symbol - m] for symbol in symbols)
    alternating = all((symbol < m) == (t % 2 == 0) for t, symbol in enumerate(symbols))
    return eval(text) % m if alternating and re.fullmatch(r"\d+([-+*]\d+)*", text) else None


@pytest.mark.parametrize("m", [2, 5, 12, 50])
def test_modular_arithmetic(m: int, agree: Callable[..., None]) -> None:
    agree(f"modular_arithmetic[m={m}]", lambda x: value(x, m))


def test_modular_arithmetic_as_published() -> None:
    for text, result in (("1+2*3", 2), ("1-1-1", 4), ("0*1+4*3-2", 0)):
        symbols = [int(c) if c.isdigit() else 5 + "+-*".index(c) for c in text]
        assert st.task("modular_arithmetic").targets(symbols)[-1] == result


def test_modular_arithmetic_alternates_and_is_asked_after_numbers() -> None:
    batch = st.task("modular_arithmetic").sample(41, 300)
    assert np.all((batch.inputs < 5) == (np.arange(41) % 2 == 0))
    assert np.array_equal(batch.mask, np.broadcast_to(np.arange(41) % 2 == 0, (300, 41)))
    assert set(batch.inputs.ravel().tolist()) == set(range(8))


def test_modular_arithmetic_weights_hold_among_numbers_and_among_operators() -> None:
    inputs = st.task("modular_arithmetic[m=2,weights=[1,3,0,1,4]]").sample(200, 500).inputs
    numbers, operators = inputs[:, ::2], inputs[:, 1::2]
    assert np.mean(numbers == 1) == pytest.approx(0.75, abs=0.01)
    assert not np.any(operators == 2)
    assert np.mean(operators == 4) == pytest.approx(0.8, abs=0.01)
