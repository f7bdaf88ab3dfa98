"""A cell that takes too long has failed, and the others go on."""

from __future__ import annotations

import pytest

from statetrack.results import Store
from statetrack.sweeps import Options, local, run
from tests.sweeps.counted_cells import KINDS, begun, sweep, sweep_of, with_root

SAID = "it took longer than the 0.3 s that a cell may take (--cell-seconds)"


@pytest.fixture(autouse=True)
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", with_root())


@pytest.mark.parametrize("workers", [0, 1])
def test_a_cell_beyond_its_time_has_failed_with_the_reason(workers: int, tmp_path) -> None:
    slow, quick = sweep(1, seconds=60), sweep(2)
    both = sweep_of("both", [*slow.cells, *quick.cells], KINDS)
    tally = run(both, tmp_path / "out", Options(workers=workers, cell_seconds=0.3))
    assert (tally.finished, tally.counts["failed"]) == (2, 1)
    record = Store(tmp_path / "out").record(slow.cells[0])
    assert record is not None
    assert (record.status, record.reason) == ("failed", SAID)
    log = tmp_path / "log"
    again = sweep_of("again", [*sweep(1, seconds=0.01, log=str(log)).cells], KINDS)
    assert run(again, tmp_path / "out", Options(workers=0, cell_seconds=30)).finished == 1
    assert len(begun(log)) == 1


def test_an_alarm_while_an_object_is_deleted_rings_again(tmp_path, capfd: pytest.CaptureFixture[str]) -> None:
    slow = sweep(1, "counted:deletes", seconds=60)
    tally = run(slow, tmp_path / "out", Options(workers=0, cell_seconds=0.3))
    assert tally.counts["failed"] == 1
    record = Store(tmp_path / "out").record(slow.cells[0])
    assert record is not None
    assert record.reason == SAID
    assert "OverTime" not in capfd.readouterr().err


def test_a_worker_that_does_not_hear_the_alarm_is_ended(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a loop outside Python."""
    monkeypatch.setattr(local, "GRACE", 0.3)
    deaf, quick = sweep(1, "counted:deaf", seconds=60), sweep(2)
    both = sweep_of("both", [*deaf.cells, *quick.cells], KINDS)
    tally = run(both, tmp_path / "out", Options(workers=1, cell_seconds=0.3))
    assert (tally.finished, tally.counts["failed"]) == (2, 1)
    record = Store(tmp_path / "out").record(deaf.cells[0])
    assert record is not None
    assert record.reason == SAID
