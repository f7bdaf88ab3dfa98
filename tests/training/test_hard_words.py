"""Which words are tried: all where they are few, within the budget, the same in any window, none that ask nothing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import statetrack as st
from statetrack.results.evaluations import BreakingWord
from statetrack.training.words import (
    EVENT,
    HELD,
    PERIODIC,
    RARE,
    HardWords,
    PeriodicWords,
    Words,
    hard_words,
    judged,
    powers,
    shortest,
    silent_symbols,
)

USUAL = 2**18


def by_name(found: HardWords) -> dict[str, Words]:
    return {each.family: each for each in found.families}


def test_of_a_binary_task_every_u_v_k_is_there_once() -> None:
    """Two words with |u| <= 3 and |v| <= 4 that agree on their first 11 letters are one."""
    binary = [word for n in range(5) for word in itertools.product((0, 1), repeat=n)]
    wanted = {(u + v * 11)[:11] for u in binary if len(u) <= 3 for v in binary if v}
    families = by_name(hard_words(st.task("txc"), USUAL, 0, 64))
    rows = [tuple(row) for name in (EVENT, PERIODIC) for row in families[name].symbols(0, 11).tolist()]
    assert len(rows) == len(set(rows))
    assert set(rows) == wanted
    assert families[EVENT].symbols(0, 4).tolist() == [[1, 0, 0, 0]]


@pytest.mark.parametrize("task", ["txc", "flip_flop", "dyck", "modular_arithmetic", "s5", "stream.max", "even_pairs"])
@pytest.mark.parametrize(("budget", "length"), [(USUAL, 64), (2**20, 64), (USUAL, 512), (100, 4), (64, 64)])
def test_the_budget_is_kept_and_words_go_far(task: str, budget: int, length: int) -> None:
    found = hard_words(st.task(task), budget, 0, length)
    assert 0 < len(found) * found.steps <= budget
    assert found.steps >= min(budget, 8 * length)
    assert hard_words(st.task(task), budget, 0, length, most=40).steps == min(40, found.steps)


@pytest.mark.parametrize("task", ["txc", "s5", "modular_arithmetic", "s3_composition[over=generators]"])
def test_any_window_of_any_words_is_part_of_the_whole(task: str) -> None:
    for family in hard_words(st.task(task), 2**15, 3, 8).families:
        whole = family.symbols(0, 90)
        parts = [family.symbols(begin, min(90, begin + 13)) for begin in range(0, 90, 13)]
        assert (np.concatenate(parts, axis=1) == whole).all()
        assert (family.take([len(family) - 1]).symbols(7, 30) == whole[-1:, 7:30]).all()
        for tokens in (1, 2, 40):
            row = len(family) // 2
            word = BreakingWord(parts=powers(family.pair(row, tokens), tokens), family="", expected=0, given=1)
            assert word.symbols == whole[row, :tokens].tolist()


def test_words_depend_on_task_and_seed_alone() -> None:
    def symbols(task: str, seed: int) -> list[list[list[int]]]:
        return [family.symbols(0, 20).tolist() for family in hard_words(st.task(task), 2**14, seed, 8).families]

    assert symbols("s5", 0) == symbols("s5", 0)
    assert symbols("s5", 0) != symbols("s5", 1)


def test_silence_is_what_changes_no_state() -> None:
    assert silent_symbols(st.task("txc"), 0) == (0,)
    assert silent_symbols(st.task("s5"), 0) == (0,)  # the identity
    families = by_name(hard_words(st.task("s5"), 2**20, 0, 64))
    events = families[EVENT].symbols(0, 5)
    assert (events[:, 1:] == 0).all()
    assert (events[:, 0] != 0).all()


@pytest.mark.parametrize(("task", "letters"), [("s5_composition[over=generators]", {24, 33}), ("txc[p=1]", {1})])
def test_only_symbols_that_the_data_use_are_tried(task: str, letters: set[int]) -> None:
    shown = set(np.unique(st.task(task).sample(64, 16).inputs).tolist())
    assert shown == letters
    for family in hard_words(st.task(task), USUAL, 0, 64).families:
        assert set(np.unique(family.symbols(0, 64)).tolist()) <= letters


def test_held_symbols_stay_and_events_are_rare() -> None:
    families = by_name(hard_words(st.task("txc"), 2**20, 0, 64))
    held = families[HELD].symbols(0, 1024)
    changes = np.flatnonzero((np.diff(held) != 0).any(axis=0)) + 1
    assert (changes % 8 == 0).all()
    rare = families[RARE].symbols(0, 1024)
    assert 0.005 < rare.mean() < 0.03  # events at 1/16, 1/64 and 1/256, half of which are ones


@pytest.mark.parametrize("task", ["modular_arithmetic", "dyck", "dyck[kinds=1]"])
def test_words_that_leave_what_the_data_show_are_left_out(task: str) -> None:
    one = st.task(task)
    for family in hard_words(one, 2**16, 0, 16).families:
        assert judged(one, one.run(family.symbols(0, 64)))[:, 32:].any(axis=1).all()


def test_of_a_dyck_word_nothing_is_judged_from_its_first_mistake_on() -> None:
    one = st.task("dyck")
    assert not np.isin(one.sample(64, 256).targets, one.never_due).any()
    words = np.array([[0, 2, 2, 0]], np.int32)
    assert one.targets(words).tolist() == [[1, 0, 3, 3]]
    assert judged(one, one.run(words)).tolist() == [[True, True, False, False]]
    spoilt = st.task("dyck[wrong=0.5]")  # its data show mistakes
    assert np.isin(3, spoilt.sample(64, 16).targets)
    assert judged(spoilt, spoilt.run(words)).all()


@pytest.mark.parametrize("seed", range(20))
def test_a_word_and_its_shortest_form_are_one(seed: int) -> None:
    draw = np.random.default_rng(seed)
    u, v = (tuple(draw.integers(0, 2, draw.integers(low, 7)).tolist()) for low in (0, 1))
    short = shortest(u, v)
    assert len(short[0]) + len(short[1]) <= len(u) + len(v)
    rows = [PeriodicWords(PERIODIC, (pair,)).symbols(0, 60).tolist() for pair in ((u, v), short)]
    assert rows[0] == rows[1]
