"""Records, claims and plans of a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from statetrack.results import Cell, Store, claims, plans, status
from statetrack.results.records import no_result
from statetrack.results.store import Damage
from statetrack.sweeps import Options, run
from tests.sweeps.counted_cells import begun, made, sweep

WAITING = """
import sys, time
from pathlib import Path
from statetrack.results import Cell, Store, claims
claim = claims.take(Store(Path(sys.argv[1])), Cell("t", "s", 1, 0, {}))
print("held" if claim else "refused", flush=True)
time.sleep(60)
"""
plain = some.recursive(
    some.none()
    | some.booleans()
    | some.integers(-5, 5)
    | some.floats(allow_nan=False, allow_infinity=False)
    | some.text(max_size=3),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(protocol=some.dictionaries(some.text(max_size=3), plain, max_size=4), seed=some.integers(0, 9))
def test_a_cell_survives_its_file(protocol: dict, seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    store = Store(tmp_path_factory.mktemp("store"))
    cell = Cell("txc", "mlp", 8, seed, protocol)
    store.write(made(cell))
    assert store.read(cell) == made(cell)
    assert store.read(Cell("txc", "mlp", 8, seed + 1, protocol)) is None


def test_failed_and_skipped_cells_have_a_record_and_no_result(tmp_path: Path) -> None:
    for state, finished in (("done", True), ("diverged", True), ("failed", False), ("skipped", False)):
        store, cell = Store(tmp_path / state), Cell("t", "s", 1, 0, {})
        store.write(replace(made(cell), status=state) if finished else no_result(cell, state, "?"))
        assert (store.read(cell) is not None) == finished
        assert store.record(cell) is not None


def spoil(path: Path, how: str) -> None:
    whole = path.read_bytes()
    contents = {
        "truncated": whole[: len(whole) // 2],
        "empty": b"",
        "foreign": b'{"name": "package", "version": 3}',
        "other cell": whole.replace(b'"length": ', b'"length": 9'),
        "wrong number": whole.replace(b'"accuracy": 0.5', b'"accuracy": "a half"'),
        "field missing": whole.replace(b'"learning_rate": 1.0,', b""),
        "unknown kind": whole.replace(b'"kind": "training"', b'"kind": "trainig"'),
        "list": b"[1, 2]",
        "binary": bytes(range(256)),
    }
    path.write_bytes(contents[how])


HOW = ["truncated", "empty", "foreign", "other cell", "wrong number", "field missing", "unknown kind", "list", "binary"]


@pytest.mark.parametrize("how", HOW)
def test_a_damaged_file_is_named_and_its_cell_run_again(how: str, tmp_path: Path) -> None:
    log, store = tmp_path / "log", Store(tmp_path / "out")
    cells = sweep(4, log=str(log))
    run(cells, store.folder, Options(workers=0))
    victim = store.path(cells.cells[2])
    whole = victim.read_bytes()
    spoil(victim, how)
    assert victim.read_bytes() != whole
    (damage,) = status(store).damaged
    assert damage.path == victim
    assert isinstance(damage, Damage)
    assert status(store).counts["missing"] == 1
    run(cells, store.folder, Options(workers=0))
    assert begun(log)[4:] == [victim.stem]
    assert status(store).damaged == []
    assert status(store).counts["done"] == 4


def test_a_foreign_file_beside_the_cells_is_named_and_left_alone(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    (store.folder / "package.json").write_text('{"a": 1}')
    tally = run(sweep(2), store.folder, Options(workers=0))
    assert tally.finished == 2
    assert (status(store).damaged, status(store).foreign) == ([], ["package.json"])
    assert (store.folder / "package.json").read_text() == '{"a": 1}'


def test_a_copy_of_a_record_under_another_name_is_damage_and_not_foreign(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = store.write(made(Cell("t", "s", 1, 0, {})))
    (tmp_path / "copy.json").write_bytes(path.read_bytes())
    (tmp_path / "newer.json").write_text('{"format": 99}')  # not ours, whatever its format is
    assert [str(each) for each in store.damaged()] == ["copy.json: the record of another cell"]
    assert store.foreign() == ["newer.json"]


def test_a_claim_excludes_others_until_its_process_is_killed(tmp_path: Path) -> None:
    store, cell = Store(tmp_path / "out"), Cell("t", "s", 1, 0, {})
    holder = subprocess.Popen([sys.executable, "-c", WAITING, str(store.folder)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert claims.take(store, cell) is None
        assert [key for key, _ in claims.running(store)] == [cell.key]
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    assert list(claims.running(store)) == []
    with claims.take(store, cell) as claim:
        assert claim is not None
        assert claims.take(store, cell) is None  # also within one process
    assert os.listdir(store.hidden / "claims") == []


def test_a_plan_comes_back_as_it_was(tmp_path: Path) -> None:
    store, cells = Store(tmp_path / "out"), sweep(5, seconds=0.5, rates=(1, 2))
    plans.save(store, cells)
    (back,) = plans.saved(store)
    assert back == cells
    assert status(store).counts["missing"] == 5
    assert status(store).seconds_left is None  # nothing was measured yet
