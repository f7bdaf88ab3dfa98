"""Ray: results come home, and a node that goes takes nothing with it."""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statetrack.errors import BadInput
from statetrack.results import Store, status
from statetrack.sweeps import Options, from_blocks, ray_runner, run, sweep_of
from statetrack.sweeps.ray_runner import options
from statetrack.sweeps.units import Unit
from tests.strangers import SHORT
from tests.sweeps.counted_cells import KINDS, begun, sweep, with_root

ray = pytest.importorskip("ray")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("PYTHONPATH", with_root())
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield made
    ray.shutdown()
    made.shutdown()


def test_an_address_where_nobody_answers_is_refused_before_ray_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:  # bound, and nobody listens there
        taken.bind(("127.0.0.1", 0))
        silent = f"127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setattr(ray, "init", None)  # it would fail, or wait
        for address, why in (
            (silent, "refused"),
            (f"ray://{silent}", "refused"),
            ("nosuch.invalid:1", "nosuch|known|resolution|answer"),
        ):
            with pytest.raises(BadInput, match=rf"no Ray cluster at {address}: .*(?:{why})"):
                run(sweep(1), tmp_path / "out", Options(ray=address))
    assert list(Store(tmp_path / "out").records()) == []


def test_an_address_that_is_slow_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, found = threading.Event(), threading.Event()

    def slow(*_: Any, **__: Any) -> None:
        asked.set()
        found.wait()
        raise OSError("late")

    monkeypatch.setattr(socket, "create_connection", slow)
    monkeypatch.setattr(ray_runner, "ANSWER", 0.05)
    try:
        with pytest.raises(BadInput, match=r"no Ray cluster at slow:1: no answer within 0.05 seconds"):
            ray_runner._look_for("slow:1")
        assert asked.is_set()
    finally:
        found.set()


def test_a_node_removed_in_mid_run_loses_no_cell(cluster: Any, tmp_path: Path) -> None:
    log, store = tmp_path / "log", Store(tmp_path / "out")
    node = cluster.add_node(num_cpus=2)
    cells = sweep(40, log=str(log), seconds=0.2, weights=True)
    removed = threading.Event()

    def remove() -> None:
        while len(begun(log)) < 8:
            time.sleep(0.05)
        cluster.remove_node(node)
        removed.set()

    remover = threading.Thread(target=remove)
    remover.start()
    tally = run(cells, store.folder, Options(ray=cluster.address))
    remover.join()
    assert removed.is_set()
    assert tally.counts == {"done": 40}
    assert status(store).damaged == []
    assert all(store.path(cell, "safetensors").exists() for cell in cells.cells)
    count = len(begun(log))
    assert count >= 40
    assert run(cells, store.folder, Options(workers=0)).found == 40
    assert len(begun(log)) == count


def test_workers_import_nothing_from_the_folder_that_one_is_in(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs").mkdir()
    for name in ("torch", "yaml", "psutil"):
        (tmp_path / "theirs" / f"{name}.py").write_text(f"open({str(tmp_path / 'it ran')!r}, 'w').close()\n1 / 0\n")
    monkeypatch.chdir(tmp_path / "theirs")
    monkeypatch.setattr(sys, "path", [part for part in sys.path if part not in ("", ".")])
    cells = [{"tasks": ["txc"], "subjects": ["mlp"], "lengths": [4], "settings": SHORT}]
    tally = run(from_blocks("one", cells), tmp_path / "out", Options(ray=cluster.address))
    assert tally.counts == {"done": 1}, [each.reason for each in tally.failures]
    assert not (tmp_path / "it ran").exists()


def test_a_gpu_that_faults_costs_its_process_and_no_cell(cluster: Any, tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    cells = sweep_of("mixed", [*sweep(3).cells, *sweep(1, "counted:faults", log=log).cells], KINDS)
    assert run(cells, tmp_path / "out", Options(ray=cluster.address)).counts == {"done": 4}


def test_a_cell_beyond_its_time_has_failed(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that does not notice, whose process is ended: the others go on, and it is begun once."""
    monkeypatch.setattr(ray_runner, "GRACE", 0.5)
    log, store = tmp_path / "log", Store(tmp_path / "out")
    slow, deaf = (sweep(1, subject, seconds=60, log=str(log)).cells for subject in ("counted:well", "counted:deaf"))
    cells = sweep_of("mixed", [*slow, *deaf, *sweep(3).cells], KINDS)
    tally = run(cells, store.folder, Options(ray=cluster.address, cell_seconds=0.5))
    assert tally.counts == {"done": 3, "failed": 2}
    for cell in (*slow, *deaf):
        record = store.record(cell)
        assert record is not None
        assert record.reason == "it took longer than the 0.5 s that a cell may take (--cell-seconds)"
    assert sorted(begun(log)) == sorted(cell.key for cell in (*slow, *deaf))


def test_what_a_cell_asks_of_the_cluster() -> None:
    unit = Unit("", (), 1.0, {"cpus": 2, "memory_gb": 1.5, "tpu": 1})
    asked = options(unit, 0.25)
    assert (asked["num_cpus"], asked["num_gpus"], asked["memory"]) == (2, 0.25, 3 * 2**29)
    assert asked["resources"] == {"tpu": 1}
    assert options(Unit("", (), 1.0, {}, alone=True), 0.25)["num_gpus"] == 1
    assert options(Unit("", (), 1.0, {}, alone=True), 0.0)["num_gpus"] == 0
