"""Running rows through a table: against the plain loop, and the two implementations against each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statetrack.tasks import native
from statetrack.tasks.scan import scan


def plainly(table: np.ndarray, inputs: np.ndarray, start: np.ndarray) -> list[list[int]]:
    out = []
    for row, state in zip(inputs, start):
        states = []
        for symbol in row:
            state = table[state, symbol]
            states.append(int(state))
        out.append(states)
    return out


@pytest.fixture(params=["numpy", "numba"])
def numba(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test runs on both implementations."""
    if request.param == "numba":
        pytest.importorskip("numba")
    monkeypatch.setenv("STATETRACK_NUMBA", "1" if request.param == "numba" else "0")
    assert native.available() == (request.param == "numba")


@pytest.mark.usefixtures("numba")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # the setting is the same for every example
@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 20), st.integers(0, 300), st.integers(0, 2**32 - 1))
def test_scan_is_the_loop(states: int, symbols: int, count: int, length: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    table = draw.integers(0, states, (states, symbols), dtype=np.int32)
    inputs = draw.integers(0, symbols, (count, length), dtype=np.int32)
    start = draw.integers(0, states, count)
    got = scan(table, inputs, start)
    assert got.shape == (count, length)
    assert got.dtype == np.int32
    assert got.tolist() == plainly(table, inputs, start)


@pytest.mark.usefixtures("numba")
def test_many_blocks_and_kinds_of_arrays() -> None:
    draw = np.random.default_rng(0)
    table = draw.integers(0, 300, (300, 7)).astype(np.uint16)
    inputs = draw.integers(0, 7, (1500, 20))
    expected = plainly(table, inputs, np.full(1500, 299))
    for kind in (np.uint8, np.int64):
        assert scan(table, inputs.astype(kind), 299).tolist() == expected
    assert scan(table, np.asfortranarray(inputs), 299).tolist() == expected
    assert scan(np.asfortranarray(table), inputs, 299).tolist() == expected
    frozen = table.copy()
    frozen.flags.writeable = False
    assert scan(frozen, inputs[::-1], 299).tolist() == expected[::-1]


def test_it_goes_on_where_it_stopped() -> None:
    draw = np.random.default_rng(0)
    table, inputs = draw.integers(0, 9, (9, 3)), draw.integers(0, 3, (5, 40))
    whole = scan(table, inputs, 4)
    head = scan(table, inputs[:, :13], 4)
    tail = scan(table, inputs[:, 13:], head[:, -1])
    assert (np.concatenate([head, tail], axis=1) == whole).all()
