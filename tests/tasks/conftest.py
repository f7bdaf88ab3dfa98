"""What the tests of single tasks share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import statetrack as st

Oracle = Callable[[list[int]], "int | None"]


def _agree(text: str, oracle: Oracle, count: int = 40, length: int = 24) -> None:
    """A task's answers are those of a plain function of the whole prefix, on its own data and on any inputs."""
    task = st.task(text)
    own = task.sample(length, count, seed=1).inputs
    free = np.random.default_rng(1).integers(0, task.inputs, size=(count, length), dtype=np.int32)
    for inputs in (own, free):
        run = task.run(inputs)
        for row, symbols in enumerate(inputs.tolist()):
            expected = [oracle(symbols[: t + 1]) for t in range(length)]
            got = [int(y) if d else None for y, d in zip(run.targets[row], run.defined[row])]
            assert got == expected, (text, symbols)


@pytest.fixture(scope="session")
def agree() -> Callable[..., None]:
    return _agree
