"""Nothing that a record, an archive or a sweep file names is run unless the user has allowed it."""

from __future__ import annotations

from pathlib import Path

import pytest

from statetrack import trust
from statetrack.cli import main
from statetrack.errors import BadInput

pytest.importorskip("torch")

from statetrack.diagnosis import diagnose_folder
from statetrack.diagnosis.folder import Selection
from statetrack.models import model
from statetrack.reports import page_of
from statetrack.results.records import DONE
from statetrack.sweeps import Options, from_blocks, read, run, sweep_of
from statetrack.sweeps.ray_runner import at_node
from statetrack.sweeps.units import units_of
from statetrack.training import train
from tests.strangers import SHORT, archive, hub

MINE = """
from pathlib import Path
import torch

Path({marker!r}).touch()

class Mine(torch.nn.Module):
    def __init__(self, inputs, outputs, width=4):
        super().__init__()
        self.table, self.head = torch.nn.Embedding(inputs, width), torch.nn.Linear(width, outputs)

    def forward(self, ids):
        return self.head(self.table(ids))
"""


TASK = """
from pathlib import Path
from statetrack.tasks.finite import BinaryTask

Path({marker!r}).touch()

class Last(BinaryTask):
    outputs = 2

    def step(self, state, symbol):
        return symbol
"""


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has run nothing yet."""
    monkeypatch.setenv(trust.SETTINGS, str(tmp_path / "settings"))
    monkeypatch.setattr(trust, "_remembered", set())
    return tmp_path / "settings"


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "it ran"


@pytest.fixture
def address(tmp_path: Path, marker: Path) -> str:
    (tmp_path / "mine.py").write_text(MINE.format(marker=str(marker)))
    return f"{tmp_path}/mine.py:Mine"


@pytest.fixture
def own_task(tmp_path: Path, marker: Path) -> str:
    (tmp_path / "last.py").write_text(TASK.format(marker=str(marker)))
    return f"{tmp_path}/last.py:Last"


@pytest.fixture
def sweep(tmp_path: Path, address: str) -> Path:
    lines = f"tasks: [txc]\nsubjects: ['{address}[width=3]', mlp]\nlengths: [4]\nsettings: {SHORT}\n"
    (tmp_path / "theirs.yaml").write_text(lines)
    return tmp_path / "theirs.yaml"


def test_a_strangers_archive_runs_nothing(tmp_path: Path, marker: Path, capfd: pytest.CaptureFixture[str]) -> None:
    packed = archive(tmp_path, hub(tmp_path, marker))
    assert main(["unpack", str(packed), str(tmp_path / "mine")]) == 0
    assert main(["diagnose", str(tmp_path / "mine")]) == 1
    assert "torch.hub:load is code of a file that may come from elsewhere, and is not run" in capfd.readouterr().err
    assert main(["diagnose", str(tmp_path / "mine"), "--trust-code"]) == 1
    said = capfd.readouterr().err
    assert "--trust-code: running torch.hub:load" in said
    assert "torch.hub:load is a function, and not a class of torch.nn.Module" in said
    assert not marker.exists()


def test_records_are_read_again_by_who_has_run_the_code(tmp_path: Path, address: str, marker: Path) -> None:
    train("txc", address, length=4, settings=SHORT, out=tmp_path / "mine")
    assert not diagnose_folder(tmp_path / "mine").left_out
    (tmp_path / "mine.py").write_text((tmp_path / "mine.py").read_text() + "\n")
    marker.unlink()
    left = diagnose_folder(tmp_path / "mine", Selection(again=True)).left_out
    assert ["has changed: its sha256 begins with" in each.why for each in left] == [True]
    assert not marker.exists()


def test_a_strangers_record_of_ones_own_kind_of_file(tmp_path: Path, address: str, marker: Path) -> None:
    packed = archive(tmp_path, address)
    assert main(["unpack", str(packed), str(tmp_path / "mine")]) == 0
    assert ["is not run" in each.why for each in diagnose_folder(tmp_path / "mine").left_out] == [True]
    assert not marker.exists()
    assert ["does not fit" in each.why for each in diagnose_folder(tmp_path / "mine", trust_code=True).left_out] == [
        True
    ]
    assert marker.exists()


def test_a_sweep_file_that_names_code(
    tmp_path: Path, sweep: Path, address: str, marker: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    line = ["sweep", str(sweep), "--out", str(tmp_path / "out"), "--dry-run"]
    assert main(line) == 2
    assert f"theirs.yaml, line 2: {address} is code of a file" in capfd.readouterr().err
    assert not marker.exists()
    assert main([*line, "--trust", "other.py:Mine"]) == 2
    assert main([*line, "--trust", address]) == 0
    assert marker.exists()
    assert main(line) == 0  # it was run with this hash


def test_all_code_of_a_sweep(sweep: Path, address: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadInput, match="is not run"):
        read(sweep)
    assert len(read(sweep, trust_code=True).cells) == 2
    assert f"--trust-code: running {address}, sha256 " in capfd.readouterr().err
    assert len(read(sweep).cells) == 2


def test_cells_from_elsewhere_are_not_handed_to_workers(tmp_path: Path, address: str, marker: Path) -> None:
    cell = train("txc", "mlp", length=4, settings=SHORT).cell
    theirs = sweep_of("theirs", [type(cell)("txc", address, 4, 0, cell.protocol)])
    with pytest.raises(trust.Untrusted):
        run(theirs, tmp_path / "out", Options(workers=1))
    assert not marker.exists()


def test_workers_run_what_they_are_sent(tmp_path: Path, address: str, own_task: str, settings: Path) -> None:
    settings.write_text("a file where the folder should be")
    blocks = [{"tasks": own_task, "subjects": [address], "lengths": [4], "settings": SHORT}]
    planned = from_blocks("mine", blocks)
    assert run(planned, tmp_path / "out", Options(workers=1)).finished == 1
    trust._remembered.clear()  # as it is on another machine
    ((key, outcome, files),) = at_node(units_of(planned.entries, 1)[0], {}, weights=False)
    assert (key, outcome.status, outcome.reason) == (planned.cells[0].key, DONE, "")
    assert f"{key}.json" in files


def test_the_list_is_the_users_own(tmp_path: Path, address: str, settings: Path) -> None:
    model(address, inputs=2, outputs=2)
    listed = settings / trust.LIST
    assert listed.stat().st_mode & 0o077 == 0
    assert len(listed.read_text().splitlines()) == 1
    model(address, inputs=2, outputs=2, width=8)
    assert len(listed.read_text().splitlines()) == 1
    sha256 = listed.read_text().split()[0]
    assert len(sha256) == 64
    trust._remembered.clear()
    trust.require(address, sha256)
    for other in ((address, sha256[:-1] + "x"), (address, sha256[:8]), ("other.py:Mine", sha256), (address, "")):
        with pytest.raises(trust.Untrusted):
            trust.require(*other)


def test_a_list_that_is_damaged_allows_nothing(settings: Path) -> None:
    settings.mkdir()
    (settings / trust.LIST).write_bytes(b'\xff\x00 "a"\nab\nab {"a": \nab "mine.py:Mine"\n')
    trust.require("mine.py:Mine", "ab")
    with pytest.raises(trust.Untrusted):
        trust.require("other.py:Mine", "ab")


def leads(folder: Path) -> str:
    """What a report says before its figures."""
    return " ".join(line for section in page_of(folder).sections for line in section.lead)


def test_a_strangers_task_is_not_run_and_stops_nothing(
    tmp_path: Path, own_task: str, marker: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "mine"
    assert main(["unpack", str(archive(tmp_path, "mlp[hidden=4]", own_task)), str(folder)]) == 0
    assert ["is not run" in each.why for each in diagnose_folder(folder).left_out] == [True]
    for verb in ("report", "results", "status", "documents"):
        assert main([verb, str(folder)]) == 0
    assert f"not at hand here ({own_task} is code of a file that may come from elsewhere" in leads(folder)
    assert not marker.exists()
    assert main(["report", str(folder), "--trust", own_task]) == 0
    assert marker.exists()
    assert "not at hand" not in leads(folder)
    (tmp_path / "last.py").unlink()
    assert f"not at hand here (no file {tmp_path}/last.py" in leads(folder)


@pytest.mark.parametrize("subject", ["mlp[hidden=4]", "ask:none random"])
def test_a_sweep_file_that_names_a_task(
    tmp_path: Path, own_task: str, subject: str, marker: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    how = f"settings: {SHORT}" if subject.startswith("mlp") else "protocol: ask"
    (tmp_path / "theirs.yaml").write_text(f"tasks:\n- '{own_task}'\nsubjects: ['{subject}']\nlengths: [4]\n{how}\n")
    line = ["sweep", str(tmp_path / "theirs.yaml"), "--out", str(tmp_path / "out"), "--workers", "0"]
    assert main(line) == 2
    assert f"theirs.yaml, line 2: {own_task} is code of a file" in capfd.readouterr().err
    assert not marker.exists()
    assert main([*line, "--trust", own_task]) == 0
    assert main(line) == 0
    assert "1 was there before" in capfd.readouterr().out
    (tmp_path / "last.py").write_text((tmp_path / "last.py").read_text() + "\n# edited\n")
    assert main([*line, "--trust-code"]) == 0
    said = capfd.readouterr()
    assert "0 were there before" in said.out
    assert f"--trust-code: running {own_task}, sha256 " in said.err


def test_a_strangers_cells_of_a_task_are_not_handed_to_workers(tmp_path: Path, own_task: str, marker: Path) -> None:
    cell = train("txc", "mlp[hidden=4]", length=4, settings=SHORT).cell
    theirs = sweep_of("theirs", [type(cell)(own_task, "mlp[hidden=4]", 4, 0, cell.protocol)])
    with pytest.raises(trust.Untrusted):
        run(theirs, tmp_path / "out", Options(workers=1))
    assert not marker.exists()


def test_an_edited_task_is_another_cell_in_the_same_process(tmp_path: Path, own_task: str) -> None:
    blocks = [{"tasks": [own_task], "subjects": ["mlp[hidden=4]"], "lengths": [4], "settings": SHORT}]
    before = from_blocks("mine", blocks).cells[0]
    (tmp_path / "last.py").write_text((tmp_path / "last.py").read_text() + "\n# edited\n")
    assert from_blocks("mine", blocks).cells[0].key != before.key


def test_an_edited_model_is_another_cell_in_the_same_process(tmp_path: Path, address: str) -> None:
    blocks = [{"tasks": ["txc"], "subjects": [address], "lengths": [4], "settings": SHORT}]
    before = from_blocks("mine", blocks).cells[0]
    (tmp_path / "mine.py").write_text((tmp_path / "mine.py").read_text() + "\n# edited\n")
    assert from_blocks("mine", blocks).cells[0].key != before.key


@pytest.mark.parametrize("subject", ["os:system[command=true]", "torch.hub:load", "builtins:eval"])
def test_functions_are_not_built_even_when_named(subject: str) -> None:
    with pytest.raises(BadInput, match=r"not a class of torch\.nn\.Module"):
        train("txc", subject, length=4)


@pytest.mark.parametrize("option", ["{a: 1}", "[[1]]", "2024-01-01", "!!binary YQ==", "&a [*a]"])
def test_options_are_plain(address: str, option: str) -> None:
    with pytest.raises(BadInput, match="option width"):
        train("txc", f"{address}[width={option}]", length=4)
