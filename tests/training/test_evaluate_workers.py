"""Several processes evaluate the cells of a folder: the same numbers, and nothing of one is lost with another."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from statetrack.cli import main
from statetrack.errors import BadInput
from statetrack.results import Store, TrainingRecord
from statetrack.results.evaluations import Evaluation
from statetrack.training import train_many
from statetrack.training.folder import evaluate_folder
from statetrack.training.folder_workers import DIED
from statetrack.training.further import Wanted
from tests.strangers import SHORT

MODEL = "gru[dim=4,hidden=8]"
OWN = """
import os, torch

class {name}(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.table = torch.nn.Embedding(inputs, outputs)

    def forward(self, ids):
        {dies}
        return self.table(ids)
"""


def trained(place: Path, model: str = MODEL, seeds: int = 3) -> list[TrainingRecord]:
    made = train_many(
        "txc", model, seeds=list(range(seeds)), length=4, settings=SHORT, words=0, device="cpu", out=place
    )
    return [result.record for result in made]


def evaluations(place: Path) -> list[tuple[str, tuple[Evaluation, ...]]]:
    records = [record for record in Store(place).records() if isinstance(record, TrainingRecord)]
    return [(record.cell.key, record.evaluations) for record in records]


def test_workers_measure_what_one_process_measures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ["--lengths=6,100", "--stream=2048", "--words=5000", "--device=cpu"]
    printed = []
    for name, more in (("alone", []), ("shared", ["--workers=2"])):
        trained(tmp_path / name)
        assert main(["evaluate", str(tmp_path / name), *wanted, *more]) == 0
        printed.append(capsys.readouterr().out.replace(name, "x"))
    assert printed[0] == printed[1]
    assert "3 records of " in printed[0]
    assert evaluations(tmp_path / "alone") == evaluations(tmp_path / "shared")
    assert main(["evaluate", str(tmp_path / "shared"), *wanted, "--workers=2"]) == 0
    assert "; 3 held it already; 0 left out" in capsys.readouterr().out


def test_a_cell_that_fails_is_named_and_its_code_is_run_only_where_it_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(OWN.format(name="Own", dies=""))
    own, *_ = trained(tmp_path / "cells", "own.py:Own", 1)
    trained(tmp_path / "cells", seeds=1)
    monkeypatch.setenv("STATETRACK_CONFIG", str(tmp_path / "somebody else"))
    monkeypatch.setattr("statetrack.trust._remembered", set())
    asked = Wanted(lengths=(6,))
    refused = evaluate_folder(tmp_path / "cells", asked, device="cpu", workers=2)
    assert [left.what for left in refused.left_out] == [str(own.cell)]
    assert "is not run: name it with --trust own.py:Own" in refused.left_out[0].why
    assert refused.grown == 1
    allowed = evaluate_folder(tmp_path / "cells", asked, device="cpu", workers=2, trust_code=True)
    assert (allowed.grown, allowed.left_out) == (1, [])


def test_a_worker_that_dies_is_said_and_the_next_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dies = 'os._exit(9) if os.environ.get("DIE") and ids.shape[1] == 6 else None'
    Path("own.py").write_text(OWN.format(name="Own", dies=dies))
    trained(tmp_path / "cells", "own.py:Own", 1)
    asked = Wanted(lengths=(6,))
    monkeypatch.setenv("DIE", "1")
    tally = evaluate_folder(tmp_path / "cells", asked, device="cpu", workers=2)
    assert [left.why for left in tally.left_out] == [DIED]
    monkeypatch.delenv("DIE")
    assert evaluate_folder(tmp_path / "cells", asked, device="cpu", workers=2).grown == 1


def test_ctrl_c_ends_the_workers_and_says_that_nothing_was_measured(tmp_path: Path) -> None:
    trained(tmp_path / "cells", seeds=2)
    command = ["evaluate", str(tmp_path / "cells"), f"--stream={2**24}", "--workers=2", "--device=cpu"]
    process = subprocess.Popen(
        [sys.executable, "-m", "statetrack", *command], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    workers = started_by(process.pid, 2)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    lines = [line for line in said.splitlines() if not line.startswith("evaluate: ")]
    assert len(lines) == 1, said
    assert re.search(r"interrupted; no cell was measured yet; start again with: .* evaluate ", lines[0])
    assert not any(parent_of(worker) for worker in workers)


def test_workers_end_with_the_process_that_started_them_however_it_ends(tmp_path: Path) -> None:
    trained(tmp_path / "cells", seeds=2)
    command = ["evaluate", str(tmp_path / "cells"), f"--stream={2**24}", "--workers=2", "--device=cpu"]
    process = subprocess.Popen([sys.executable, "-m", "statetrack", *command], stderr=subprocess.DEVNULL)
    workers = started_by(process.pid, 2)
    process.kill()
    process.wait()
    wait_for(lambda: not any(parent_of(worker) for worker in workers))


def started_by(parent: int, count: int) -> list[int]:
    """The processes that measure for it, once there are so many."""
    found: list[int] = []

    def there() -> bool:
        found[:] = [process for process in processes() if parent_of(process) == parent and measures(process)]
        return len(found) == count

    wait_for(there)
    return found


def processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def measures(process: int) -> bool:
    with suppress(OSError):
        return b"spawn_main" in Path(f"/proc/{process}/cmdline").read_bytes()
    return False


def parent_of(process: int) -> int | None:
    """None of one that is over, also where nobody has asked yet how it ended."""
    with suppress(OSError):
        state, parent = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:2]
        return int(parent) if state != "Z" else None
    return None


def wait_for(true: Callable[[], bool]) -> None:
    for _ in range(600):
        if true():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come about within a minute")


def test_a_number_of_workers_that_makes_no_sense_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record, *_ = trained(tmp_path, seeds=1)
    for workers in ("0", "-1", "100000"):
        assert main(["evaluate", str(tmp_path), "--lengths=6", f"--workers={workers}"]) == 2
        assert capsys.readouterr().err == f"statetrack: workers={workers} should lie in 1..1024\n"
    weights = str(tmp_path / f"{record.cell.key}.safetensors")
    assert main(["evaluate", "txc", weights, "--workers=2"]) == 2
    assert "--workers share the cells of a folder" in capsys.readouterr().err
    with pytest.raises(BadInput, match="workers=0"):
        evaluate_folder(tmp_path, Wanted(lengths=(6,)), workers=0)
