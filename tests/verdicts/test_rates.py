"""Rates with exact bounds: the words for them, and how many seeds are still needed."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statetrack.verdicts.rates import LEAST, OPEN, RARELY, SELDOM, USUALLY, Rate, rate

COUNTS = st.integers(0, 30)


@pytest.mark.parametrize(
    ("yes", "of", "word"),
    [
        (5, 5, USUALLY), (7, 8, USUALLY), (9, 10, USUALLY), (4, 4, OPEN), (8, 10, OPEN), (3, 3, OPEN),
        (0, 5, SELDOM), (1, 8, SELDOM), (1, 10, SELDOM), (0, 4, OPEN), (2, 10, OPEN), (0, 13, SELDOM),
        (0, 14, RARELY), (1, 14, SELDOM), (0, 0, OPEN),
    ],
)  # fmt: skip
def test_words(yes: int, of: int, word: str) -> None:
    assert Rate(yes, of - yes).word == word


@given(COUNTS, COUNTS)
def test_usually_is_what_a_fair_coin_hardly_does(yes: int, no: int) -> None:
    """By the binomial itself: so many heads or more in at most 5 % of the cases; and no rate is both."""
    n = yes + no
    tail = sum(comb(n, k) for k in range(yes, n + 1)) / 2**n
    assert (Rate(yes, no).word == USUALLY) == (tail < 0.05)
    assert Rate(yes, no).turned.seldom == (Rate(yes, no).word == USUALLY)


@given(COUNTS, COUNTS, st.integers(0, 8))
def test_what_is_open_never_decides(yes: int, no: int, unclear: int) -> None:
    """Whatever the open ones turn out to be, a word that was given stays true."""
    found = Rate(yes, no, unclear)
    ends = {Rate(yes + k, no + unclear - k).word for k in range(unclear + 1)}
    if found.word == USUALLY:
        assert ends == {USUALLY}
    if found.seldom:
        assert ends <= {SELDOM, RARELY}


@given(COUNTS, COUNTS, st.integers(0, 8))
def test_the_seeds_that_are_needed_are_enough_and_not_too_many(yes: int, no: int, unclear: int) -> None:
    found = Rate(yes, no, unclear)
    more = found.needed()
    grown = (Rate(yes + more, no, unclear), Rate(yes, no + more, unclear))
    assert any(each.word != OPEN for each in grown)
    if more:
        less = (Rate(yes + more - 1, no, unclear), Rate(yes, no + more - 1, unclear))
        assert all(each.word == OPEN for each in less)


def test_five_seeds_are_the_least_that_decide() -> None:
    assert min(n for n in range(20) if Rate(n, 0).word == USUALLY) == LEAST
    assert rate([True, False, None, None]) == Rate(1, 1, 2)
    assert rate([True, False, None, None]).text == "1 of 4 seeds, 2 open"
