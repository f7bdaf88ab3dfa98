"""Numbers to text and back, against Python's own join, split and json."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statetrack.data.columns import Codebook, Joined, Listed, Same, Whole
from statetrack.data.text import NotNumbers, numbers

ROWS = st.lists(st.lists(st.integers(0, 1_234), min_size=1, max_size=30), min_size=1, max_size=20)


def flat(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return np.array([code for row in rows for code in row], np.int32), starts


@given(ROWS)
def test_joined_text_is_what_join_gives(rows: list[list[int]]) -> None:
    column = Joined(Codebook(np.arange(1_235)), *flat(rows))
    wanted = [" ".join(map(str, row)) for row in rows]
    assert [json.loads(text) for text in column.json()] == wanted
    assert column.arrow(len(rows)).to_pylist() == wanted


@given(ROWS, st.booleans())
def test_lists_are_what_json_writes(rows: list[list[int]], halves: bool) -> None:
    values = np.arange(1_234) / 2 if halves else np.arange(1_234)  # the last code stands for nothing
    column = Listed(Codebook(values, gaps=True), *flat(rows))
    wanted = [[None if code == 1_234 else values[code].item() for code in row] for row in rows]
    assert [text.decode() for text in column.json()] == [json.dumps(row) for row in wanted]
    assert column.arrow(len(rows)).to_pylist() == wanted


def test_a_column_of_one_value_and_one_of_integers() -> None:
    assert Same("elementary_abelian").json() == b'"elementary_abelian"'
    assert Same(7).arrow(3).to_pylist() == [7, 7, 7]
    assert Whole(np.array([5, 2**40])).json() == [b"5", b"1099511627776"]
    assert Whole(np.array([5, 2**40])).arrow(2).to_pylist() == [5, 2**40]


@given(st.lists(st.lists(st.integers(0, 10**18 - 1), min_size=1, max_size=20), min_size=1, max_size=20))
def test_numbers_reads_what_join_wrote(rows: list[list[int]]) -> None:
    values, starts = numbers([" ".join(map(str, row)) for row in rows])
    assert [values[a:b].tolist() for a, b in pairwise(starts)] == rows


def test_numbers_takes_any_white_space() -> None:
    values, starts = numbers(["  12\t3\n4 ", "5\r\n", "0006"])
    assert values.tolist() == [12, 3, 4, 5, 6]
    assert starts.tolist() == [0, 3, 4, 5]


@pytest.mark.parametrize(
    ("rows", "row", "problem"),
    [
        (["1 2", "3 x4 5", "6"], 1, "'x4'"),
        (["1 2", "3", "-6"], 2, "'-6'"),
        (["1.5", "3"], 0, "'1.5'"),
        (["1", "٣"], 1, "'٣'"),
        (["1", "", "3"], 1, "no number"),
        (["1", "2", "   "], 2, "no number"),
        (["1", "2 " + "9" * 30], 1, "30 digits"),
    ],
)
def test_numbers_says_which_row_is_not_numbers(rows: list[str], row: int, problem: str) -> None:
    with pytest.raises(NotNumbers) as caught:
        numbers(rows)
    assert caught.value.row == row
    assert problem in caught.value.problem
