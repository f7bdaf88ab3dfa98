"""The service that lets workers share a GPU: here a script that behaves like it.

The real one is tried in tests/training/test_on_gpu.py.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from statetrack.sweeps import sharing
from statetrack.sweeps.local import places

SERVICE = """#!/bin/sh
if [ "$1" = -f ]; then
  echo "$$ $CUDA_VISIBLE_DEVICES" > {log}
  touch "$CUDA_MPS_PIPE_DIRECTORY/control"
  while [ ! -e "$CUDA_MPS_PIPE_DIRECTORY/quit" ]; do sleep 0.02; done
  rm {log}
else
  read word; touch "$CUDA_MPS_PIPE_DIRECTORY/$word"
fi
"""


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """A service on the path; says whether it runs."""
    log = tmp_path / "log"
    program = tmp_path / sharing.CONTROL
    program.write_text(SERVICE.format(log=log))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    monkeypatch.delenv(sharing.PIPES, raising=False)
    monkeypatch.delenv(sharing.SWITCH, raising=False)
    monkeypatch.setattr(sharing, "USUAL", str(tmp_path / "none"))
    monkeypatch.setattr(sharing, "TRIAL", "")
    return log.exists


def test_workers_get_its_folder_and_it_ends_with_them(running):
    with sharing.shared([0, 0, 1, 1]) as added:
        assert running()
        assert (Path(added[sharing.PIPES]) / "control").exists()
    assert not running()
    assert not Path(added[sharing.PIPES]).exists()


def test_it_numbers_gpus_as_the_machine_does(running, tmp_path):
    with sharing.shared([0, 0]):
        assert (tmp_path / "log").read_text().split()[1:] == []


@pytest.mark.parametrize("gpus", [[None, None], [0], [0, 1]])
def test_nothing_is_started_where_nothing_is_shared(running, gpus):
    with sharing.shared(gpus) as added:
        assert added == {}
        assert not running()


def test_that_of_the_user_is_left_alone(running, monkeypatch, tmp_path):
    monkeypatch.setenv(sharing.PIPES, str(tmp_path))
    with sharing.shared([0, 0]) as added:
        assert added == {}
        assert not running()


def test_it_can_be_turned_off(running, monkeypatch):
    monkeypatch.setenv(sharing.SWITCH, "0")
    with sharing.shared([0, 0]) as added:
        assert added == {}
        assert not running()
    assert sharing.workers_per_gpu() == sharing.IN_TURNS


@pytest.mark.parametrize("broken", ["trial", "service"])
def test_workers_take_turns_where_it_does_not_work(running, broken, monkeypatch, tmp_path, capsys):
    if broken == "trial":
        monkeypatch.setattr(sharing, "TRIAL", "import sys; sys.exit(806)")
    else:
        monkeypatch.setattr(sharing, "BEGIN", 0.5)
        (tmp_path / sharing.CONTROL).write_text("#!/bin/sh\nexit 1\n")
    with sharing.shared([0, 0]) as added:
        assert added == {}
    assert "take turns" in capsys.readouterr().err
    assert not running()


def test_it_ends_when_its_sweep_is_killed(running, tmp_path):
    code = (
        "import sys, time; from statetrack.sweeps import sharing; sharing.TRIAL = ''\n"
        f"sharing.USUAL = {str(tmp_path / 'none')!r}\n"
        "with sharing.shared([0, 0]): print('up', flush=True); time.sleep(60)"
    )
    sweep = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert sweep.stdout is not None
    assert sweep.stdout.readline() == b"up\n"
    assert running()
    sweep.send_signal(signal.SIGKILL)
    sweep.wait()
    sweep.stdout.close()
    deadline = time.monotonic() + 20
    while running() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running()


def test_more_workers_where_they_compute_at_the_same_time(running, monkeypatch):
    monkeypatch.setattr("statetrack.sweeps.local.count_gpus", lambda: 2)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(16)))
    assert len(places(0, "auto", None)) == 2 * sharing.TOGETHER
    assert len(places(0, "auto", 3)) == 6
    monkeypatch.setenv(sharing.SWITCH, "0")
    assert len(places(0, "auto", None)) == 2 * sharing.IN_TURNS
