"""Lengths: fixed, in turn, or drawn."""

from __future__ import annotations

import numpy as np
import pytest

from statetrack import BadInput, task
from statetrack.data.lengths import Lengths


def drawn(text: str, name: str = "s5", seed: int = 0, split: str = "train", count: int = 3000) -> np.ndarray:
    return Lengths.read(text).of(task(name), seed, split, np.arange(count))


def test_listed_lengths_are_taken_in_turn() -> None:
    assert drawn("5, 3,9", count=7).tolist() == [5, 3, 9, 5, 3, 9, 5]
    assert drawn("500", count=2).tolist() == [500, 500]


def test_a_range_is_drawn_evenly_and_both_ends_occur() -> None:
    counts = np.bincount(drawn("3..12", count=20_000))
    assert counts[:3].sum() == 0
    assert len(counts) == 13
    assert abs(counts[3:] - 2000).max() < 6 * np.sqrt(2000)


def test_a_drawn_length_depends_on_task_seed_split_and_row_alone() -> None:
    whole = drawn("3..1024")
    some = np.array([2999, 7, 8, 0])
    assert Lengths.read("3..1024").of(task("s5"), 0, "train", some).tolist() == whole[some].tolist()
    assert (drawn("3..1024", name="s5_composition[ask=end]") == whole).all()
    for other in (drawn("3..1024", seed=1), drawn("3..1024", split="test"), drawn("3..1024", name="a5")):
        assert (other == whole).mean() < 0.02


@pytest.mark.parametrize("text", ["0", "-1", "1000000000", "5,0", "0..5", "3..1000000000", "9..3"])
def test_impossible_lengths_say_what_is_possible(text: str) -> None:
    with pytest.raises(BadInput, match=r"1\.\.16777216|smaller end"):
        Lengths.read(text)


@pytest.mark.parametrize("text", ["", "abc", "3..", "..5", "3...5", "1,,2", "1.5", "3..5..7"])
def test_what_is_no_length_is_refused_with_examples(text: str) -> None:
    with pytest.raises(BadInput, match=r"3\.\.1024"):
        Lengths.read(text)
