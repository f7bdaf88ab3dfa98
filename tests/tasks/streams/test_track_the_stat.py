"""Track the Stat as the original has it."""

from __future__ import annotations

import numpy as np
import pytest

import statetrack as st

BOTH = pytest.mark.parametrize("name", ["track_the_stat.median", "track_the_stat.mode"])


def test_the_first_numbers_of_seed_zero() -> None:
    task = st.task("track_the_stat.median")
    batch = task.sample(4, 1, seed=0, split="original")
    assert batch.inputs[0].tolist() == [85, 63, 51, 26]
    assert task.answers(batch.inputs)[0].tolist() == [85, 74, 63, 57]


@BOTH
def test_rows_are_the_original_streams(name: str) -> None:
    rows = st.task(name).sample(300, 6, seed=10, split="original", first=2).inputs
    for seed, row in zip(range(12, 18), rows):
        assert np.array_equal(row, np.random.default_rng(seed).integers(0, 100, size=300))


@BOTH
@pytest.mark.parametrize("length", [1, 2, 77, 299, 1000])
def test_a_shorter_stream_is_the_beginning_of_a_longer_one(name: str, length: int) -> None:
    whole = np.array([np.random.default_rng(seed).integers(0, 100, size=max(300, length)) for seed in range(5)])
    assert np.array_equal(st.task(name).sample(length, 5, split="original").inputs, whole[:, :length])


@pytest.mark.parametrize(("name", "share"), [("track_the_stat.mode", 0.963), ("track_the_stat.median", 0.446)])
def test_how_often_the_answer_stays_the_same(name: str, share: float) -> None:
    answers = st.task(name).sample(300, 250, split="original").targets
    assert np.mean(answers[:, 1:] == answers[:, :-1]) == pytest.approx(share, abs=0.001)


def test_copying_the_last_mode_lasts_four_turns() -> None:
    answers = st.task("track_the_stat.mode").sample(300, 250, split="original").targets
    turns = 1 + np.argmax(answers[:, 1:] != answers[:, :-1], axis=1)  # the first answer is the number itself
    assert turns.mean() == pytest.approx(4.2, abs=0.05)


@pytest.mark.parametrize("window", [64])
def test_a_short_memory_lasts_its_length(window: int) -> None:
    numbers = st.task("track_the_stat.median").sample(300, 250, split="original").inputs
    right = st.task("track_the_stat.median").targets(numbers)
    seen = st.task(f"stream.window_median[k={window}]").targets(numbers)
    assert np.argmax(right != seen, axis=1).mean() == pytest.approx(64.9, abs=0.05)


@BOTH
def test_the_original_is_a_split_of_its_own(name: str) -> None:
    task = st.task(name)
    assert task.splits == ("train", "validation", "test", "original")
    with pytest.raises(st.BadInput, match="should be one of train, validation, test, original"):
        task.sample(4, 1, split="origin")
    with pytest.raises(st.BadInput, match="should be one of train, validation, test"):
        st.task("stream.max").sample(4, 1, split="original")
