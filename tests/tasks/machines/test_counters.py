"""rtc, txc, fsm, xor_lag, mod_counter, flip_flop: brute force, and the numbers that are known of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

import statetrack as st


def all_strings(length: int) -> np.ndarray:
    return np.array(list(itertools.product((0, 1), repeat=length)), np.int32)


def flip_flop(symbols: list[int]) -> int:
    writes = [symbol - 1 for symbol in symbols if symbol]
    return writes[-1] if writes else 0


ORACLES: dict[str, Callable[[list[int]], int]] = {
    "rtc": lambda x: int(x.count(1) >= math.ceil(len(x) / 2)),
    "rtc[p=0.3]": lambda x: int(x.count(1) >= math.ceil(len(x) / 2)),
    "txc": lambda x: x.count(1) % 2,
    "fsm": lambda x: int(x.count(1) >= 3),
    "fsm[k=7,p=0.3]": lambda x: int(x.count(1) >= 7),
    "xor_lag": lambda x: x[-1] ^ ([0, *x][-2]),
    "xor_lag[k=5]": lambda x: x[-1] ^ ([0] * 5 + x)[-6],
    "xor_lag[k=16]": lambda x: x[-1] ^ ([0] * 16 + x)[-17],
    "mod_counter": lambda x: x.count(1) % 5,
    "mod_counter[m=3,p=0.8]": lambda x: x.count(1) % 3,
    "flip_flop": flip_flop,
    "flip_flop[weights=[10,1,1]]": flip_flop,
    "flip_flop[symbols=5]": flip_flop,
}


@pytest.mark.parametrize("text", ORACLES)
def test_brute_force(text: str, agree: Callable[..., None]) -> None:
    agree(text, ORACLES[text])


@pytest.mark.parametrize("text", [text for text in ORACLES if not text.startswith("flip_flop")])
def test_every_string_of_length_ten(text: str) -> None:
    strings = all_strings(10)
    expected = [[ORACLES[text](x[: t + 1]) for t in range(10)] for x in strings.tolist()]
    assert np.array_equal(st.task(text).targets(strings), expected)


def test_fsm_is_nearly_constant() -> None:
    """Always-1 scores 1 - 5/T and the majority by position 1 - 1.875/T, up to what is left after T positions."""
    ones = st.task("fsm").targets(all_strings(16)).mean(axis=0)
    wrong = sum(sum(math.comb(t, j) for j in range(3)) / 2**t for t in range(1, 17))
    assert np.sum(1 - ones) == pytest.approx(wrong)
    assert np.sum(1 - ones) == pytest.approx(5, abs=0.005)
    assert np.sum(np.minimum(ones, 1 - ones)) == pytest.approx(1.875, abs=0.005)
    sampled = st.task("fsm").sample(64, 20_000).targets.mean()
    assert sampled == pytest.approx(1 - 5 / 64, abs=0.001)


def test_rtc_floors_at_sixteen() -> None:
    strings = all_strings(16)
    answers = st.task("rtc").targets(strings)
    ones = answers.mean(axis=0)
    assert np.mean(np.maximum(ones, 1 - ones)) == pytest.approx(0.573, abs=5e-4)
    by_input = [[answers[strings[:, t] == x, t].mean() for x in (0, 1)] for t in range(16)]
    assert np.mean(np.maximum(by_input, 1 - np.array(by_input))) == pytest.approx(0.671, abs=5e-4)


@pytest.mark.parametrize("name", ["rtc", "fsm"])
def test_at_a_crossing_the_answer_is_the_input(name: str) -> None:
    strings = all_strings(12)
    answers = st.task(name).targets(strings)
    crossing = answers[:, 1:] != answers[:, :-1]
    assert crossing.any()
    assert np.array_equal(answers[:, 1:][crossing], strings[:, 1:][crossing])


def test_rtc_counts_without_a_bound() -> None:
    task = st.task("rtc")
    up, down = np.ones((1, 50_000), np.int32), np.zeros((1, 50_001), np.int32)
    answers = task.targets(np.concatenate([up, down], axis=1))
    assert answers.sum() == 100_000
    assert answers[0, -1] == 0


def test_mod_two_is_parity() -> None:
    inputs = all_strings(8)
    assert np.array_equal(st.task("mod_counter[m=2]").targets(inputs), st.task("txc").targets(inputs))


def test_rates_of_nothing_and_of_all() -> None:
    assert not st.task("txc[p=0]").sample(50, 20).inputs.any()
    assert st.task("txc[p=1]").sample(50, 20).inputs.all()


def test_state_counts() -> None:
    counts = {"txc": 2, "fsm[k=7]": 8, "xor_lag[k=3]": 16, "mod_counter[m=9]": 9, "flip_flop": 2, "even_pairs": 5}
    for text, states in counts.items():
        assert st.task(text).automaton.minimised().states == states, text
