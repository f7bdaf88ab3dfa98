"""How long the rest may take: nothing is said without ground, and cells count by what they cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from statetrack.results import Cell, Store, Sweep
from statetrack.results.pace import CostBySubject, Pace
from statetrack.results.plans import PlannedCell
from statetrack.results.records import DONE, FAILED
from statetrack.sweeps.bar import words
from statetrack.sweeps.schedule import Schedule
from statetrack.sweeps.units import Outcome
from tests.sweeps.counted_cells import KINDS


def done(*cells: tuple[str, float, float]) -> Pace:
    """Finished cells, each (subject, cost, seconds)."""
    pace = Pace()
    for cell in cells:
        pace.add(*cell)
    return pace


def work(*cells: tuple[str, float]) -> CostBySubject:
    left = CostBySubject()
    for cell in cells:
        left.add(*cell)
    return left


def test_nothing_is_said_before_there_is_ground() -> None:
    left = work(("gru", 10.0))
    assert Pace().seconds_left(left, 1) is None
    assert done(*[("gru", 10.0, 5.0)] * 2).seconds_left(left, 1) is None
    assert done(*[("gru", 10.0, 5.0)] * 3).seconds_left(left, 1) == pytest.approx(5.0)
    assert done(*[("gru", 10.0, 5.0)] * 7).seconds_left(left, 8) is None  # one worker has finished nothing yet
    assert done(*[("gru", 0.01, 0.1)] * 3).seconds_left(left, 1) is None  # three, but of no weight
    assert Pace().seconds_left(CostBySubject(), 1) == 0.0


def test_cells_count_by_their_cost_and_at_the_pace_of_their_subject() -> None:
    pace = done(("gru", 10.0, 5.0), ("gru", 10.0, 5.0), ("mlp", 10.0, 1.0))
    assert pace.seconds_left(work(("gru", 40.0)), 1) == pytest.approx(20.0)
    assert pace.seconds_left(work(("gru", 40.0), ("mlp", 40.0)), 1) == pytest.approx(24.0)
    assert pace.seconds_left(work(("gru", 40.0), ("mlp", 40.0)), 3) == pytest.approx(8.0)
    new = pace.seconds_left(work(("lstm", 160.0)), 1)  # 16 times the cost of those done, which took 11 s / 3
    assert new == pytest.approx(16**0.75 * 11 / 3)


def test_a_schedule_knows_the_cost_that_is_left_and_learns_from_results_alone(tmp_path: Path) -> None:
    costs = [40.0, 10.0, 10.0, 10.0, 10.0]
    cells = [Cell("none", "counted:well", 1, seed, {}) for seed in range(len(costs))]
    entries = tuple(PlannedCell(cell, KINDS["counted"], cost) for cell, cost in zip(cells, costs))
    schedule = Schedule(Sweep("five", "", entries), Store(tmp_path / "out"))
    units = [schedule.next() for _ in costs]
    assert [unit.cost for unit in units if unit] == costs
    for unit in units[1:4]:
        assert unit is not None
        assert words(schedule.tally, 1).endswith("time left: not known yet")
        schedule.settle(unit, {cell.key: Outcome(DONE, 2.0) for cell in unit.cells})
    assert words(schedule.tally, 1) == "3 of 5, time left: 10 s"  # 50 of cost at 2 s for 10, not two cells at 2 s
    assert units[4] is not None
    schedule.settle(units[4], {cell.key: Outcome(FAILED, 0.001, "at once") for cell in units[4].cells})
    assert words(schedule.tally, 1) == "4 of 5, 1 failed, time left: 8 s"
