"""Every stream against plain Python on the whole prefix."""

from __future__ import annotations

import functools
import operator
import statistics
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

import statetrack as st


def mode(numbers: list[int]) -> int:
    counts = Counter(numbers)
    most = max(counts.values())
    return max(number for number, count in counts.items() if count == most)


def echo(numbers: list[int], k: int) -> int | None:
    return numbers[-1 - k] if len(numbers) > k else None


def xor(numbers: list[int]) -> int:
    return functools.reduce(operator.xor, numbers)


ORACLES: dict[str, Callable[[list[int]], int | None]] = {
    "track_the_stat.median": lambda x: int(2 * statistics.median(x)),
    "track_the_stat.mode": mode,
    "stream.max": max,
    "stream.min": min,
    "stream.distinct": lambda x: len(set(x)),
    "stream.sum_mod": lambda x: sum(x) % 10,
    "stream.sum_mod[m=97]": lambda x: sum(x) % 97,
    "stream.xor": xor,
    "stream.xor[bits=1]": xor,
    "stream.xor[bits=10]": xor,
    "stream.majority": lambda x: int(2 * sum(n >= 50 for n in x) >= len(x)),
    "stream.window_median": lambda x: int(2 * statistics.median(x[-5:])),
    "stream.window_median[k=1]": lambda x: 2 * x[-1],
    "stream.window_median[k=8]": lambda x: int(2 * statistics.median(x[-8:])),
    "stream.window_median[k=100]": lambda x: int(2 * statistics.median(x)),
    "stream.echo": lambda x: echo(x, 2),
    "stream.echo[k=1]": lambda x: echo(x, 1),
    "stream.echo[k=30]": lambda x: echo(x, 30),
}


@pytest.mark.parametrize("text", ORACLES)
def test_brute_force(text: str, agree: Callable[..., None]) -> None:
    agree(text, ORACLES[text], count=20, length=60)


@pytest.mark.parametrize("text", ["track_the_stat.median", "track_the_stat.mode", "stream.distinct"])
@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.0,) * 97 + (1.0, 2.0, 1.0)])
def test_few_numbers_make_many_ties(text: str, weights: tuple[float, ...], agree: Callable[..., None]) -> None:
    padded = weights + (0.0,) * (100 - len(weights))
    agree(st.task(text).with_parameters(weights=padded).name, ORACLES[text], count=10, length=80)


def test_values_and_texts_of_medians() -> None:
    for name in ("track_the_stat.median", "stream.window_median"):
        task = st.task(name)
        assert task.outputs == 199
        assert task.answers([3, 4, 4]).tolist() == [3, 3.5, 4]
        assert [task.answer_text(answer) for answer in (6, 7)] == ["3", "3.5"]


def test_distinct_reaches_a_hundred() -> None:
    task = st.task("stream.distinct")
    answers = task.targets(np.random.default_rng(0).permutation(100))
    assert answers.tolist() == list(range(1, 101))
    assert answers.max() < task.outputs


def test_echo_asks_nothing_at_first() -> None:
    assert st.task("stream.echo[k=3]").sample(6, 2).mask.tolist() == [[0, 0, 0, 1, 1, 1]] * 2
    assert not st.task("stream.echo[k=9]").sample(6, 2).mask.any()
