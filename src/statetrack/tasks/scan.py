"""Many rows through one transition table: the state after every input.

    state_0 = start,   state_{t+1} = table[state_t, input_t]

Worked by hand: parity is the table [[0, 1], [1, 0]]; from the state 0, the inputs 1 1 0 1 lead to 1 0 0 1.

>>> scan(np.array([[0, 1], [1, 0]]), np.array([[1, 1, 0, 1]]), 0).tolist()
[[1, 0, 0, 1]]

One row is a chain of look-ups, each of which waits for the one before. Both versions here advance many rows together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from statetrack.tasks import native

WIDTH = 8  # rows that the compiled loop advances together: enough look-ups on their way to hide that each takes time
ROWS = 512  # rows that one thread takes at a time
STEPS = 128  # inputs that the numpy loop transposes at a time, so that they stay in the cache

Ints = NDArray[np.int32]


def scan(table: NDArray[np.integer], inputs: NDArray[np.integer], start: ArrayLike) -> Ints:
    """The states (count, length) after every input of every row.

    `table` is (states, symbols), `inputs` (count, length) and `start` one state or one per row; all must be in range.
    """
    count, length = inputs.shape
    states = np.empty((count, length), np.int32)
    begin = np.broadcast_to(np.asarray(start), count).astype(np.int32)
    symbols = table.shape[1]
    given: NDArray[np.integer] = inputs
    if native.available():
        loop, steps = native.compiled(_loop), np.ascontiguousarray(table).reshape(-1)
        given = np.ascontiguousarray(inputs, dtype=np.int32)  # one kind of array, so that the loop is compiled once
    else:
        loop, steps = _vectorised, table.astype(np.intp).reshape(-1)
    native.run_blocks(lambda a, b: loop(steps, symbols, given[a:b], begin[a:b], states[a:b]), count, block=ROWS)
    return states


def _loop(steps: NDArray[np.integer], symbols: int, inputs: Ints, begin: Ints, states: Ints) -> None:
    """For numba: WIDTH rows side by side."""
    count, length = inputs.shape
    state = np.empty(WIDTH, np.int64)
    for first in range(0, count, WIDTH):
        width = min(WIDTH, count - first)
        for i in range(width):
            state[i] = begin[first + i]
        for t in range(length):
            for i in range(width):
                state[i] = steps[state[i] * symbols + inputs[first + i, t]]
                states[first + i, t] = state[i]


def _vectorised(steps: NDArray[np.intp], symbols: int, inputs: NDArray[np.integer], begin: Ints, states: Ints) -> None:
    """For numpy: all rows of the block at once, on inputs laid out by time."""
    state = begin.astype(np.intp)
    place = np.empty_like(state)
    for first in range(0, inputs.shape[1], STEPS):
        by_time = inputs[:, first : first + STEPS].T.astype(np.intp, order="C")
        after = np.empty(by_time.shape, np.int32)
        for t, symbol in enumerate(by_time):
            np.multiply(state, symbols, out=place)
            place += symbol
            np.take(steps, place, out=state, mode="clip")  # the other modes copy; nothing is out of range
            after[t] = state
        states[:, first : first + STEPS] = after.T
