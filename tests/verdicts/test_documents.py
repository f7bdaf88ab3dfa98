"""The documents' predictions are all there, and what is called false is false by numbers."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import statetrack as st
from statetrack.models import find
from statetrack.theory import floors
from statetrack.verdicts.documents import DESIGN, predictions

ALL = {known.key: known for known in predictions()}


def test_every_section_is_there() -> None:
    sections = {known.section.split(",")[0] for known in ALL.values() if known.document == DESIGN}
    assert {"2", "3.3", "4.1", "4.2", "6.1", "6.2", "6.3", "6.4", "7", "8"} <= sections
    assert len([key for key in ALL if key.startswith("4.2-")]) == 24
    assert len(ALL) == len(predictions())
    assert {"p-ssm", "p-cot", "p-solvable"} <= set(ALL)


def test_each_names_models_and_tasks_that_exist() -> None:
    for known in ALL.values():
        assert json.loads(json.dumps(known.to_dict()))["says"]
        if known.test is not None:
            assert st.task(known.test.task).name == known.test.task
            assert find(known.test.model).name == known.test.model
            assert not known.test.other or find(known.test.other)


def test_what_is_false_comes_with_two_lines() -> None:
    for known in ALL.values():
        assert len(known.argument) == (2 if known.false else 0), known.key
    assert len([known for known in ALL.values() if known.false]) >= 20


def test_the_crossover() -> None:
    low, high = 10.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if middle < 512 * math.log(middle) else (low, middle)
    assert low == pytest.approx(4281, abs=1)
    assert 512 * math.log(4300) == pytest.approx(4284, abs=1)


def test_fsm_predictions_lie_below_a_constant() -> None:
    for key, known in ALL.items():
        if key.startswith("4.2-fsm") and known.false and known.test is not None:
            assert known.test.value < floors(st.task("fsm"), known.test.lengths[0])["constant"].average
    assert [key for key in ALL if key.startswith("4.2-fsm") and ALL[key].false] == [
        "4.2-fsm-64-mamba2-4l",
        "4.2-fsm-1024-mamba2-4l",
        "4.2-fsm-1024-mamba2-32l",
    ]


def test_entries_with_increasing_maps_never_cycle() -> None:
    """S = tanh(d S + u) under a repeated word ends in a fixed point, entry by entry."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        word = [(rng.uniform(0, 1), rng.normal()) for _ in range(rng.integers(1, 5))]
        state, trail = rng.normal(), []
        for _ in range(400):
            for d, u in word:
                state = math.tanh(d * state + u)
            trail.append(state)
        assert abs(trail[-1] - trail[-2]) < 1e-9
        assert np.all(np.diff(trail) >= -1e-12) or np.all(np.diff(trail) <= 1e-12)
