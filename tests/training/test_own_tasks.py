"""A task of one's own is trained on by its name, and an edit of its file is another cell."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import statetrack as st
from statetrack.cli import main
from statetrack.errors import BadInput
from statetrack.results import Store
from statetrack.tasks.finite import BinaryTask, FiniteTask
from statetrack.training import train
from statetrack.training.weights import load
from tests.strangers import SHORT

MODEL = "mlp[hidden=4]"
FILE = '''
from dataclasses import dataclass
from statetrack.tasks.finite import BinaryTask, FiniteTask

@dataclass(frozen=True, kw_only=True)
class Last(FiniteTask, BinaryTask):
    """The last input."""

    flip: int = 0
    outputs = 2

    def step(self, state, symbol):
        return symbol ^ self.flip
'''


@dataclass(frozen=True, kw_only=True)
class Typed(FiniteTask, BinaryTask):
    """One that was typed into a notebook."""

    outputs = 2

    def step(self, state: int, symbol: int) -> int:
        return symbol


def test_an_edit_never_gives_the_old_result(tmp_path: Path) -> None:
    file = tmp_path / "last.py"
    file.write_text(FILE)
    first = train(f"{file}:Last[flip=1]", MODEL, length=4, settings=SHORT, out=tmp_path / "out")
    assert first.cell.task.startswith(f"{file}:Last[flip=1,sha256=")
    kept = train(f"{file}:Last[flip=1]", MODEL, length=4, settings=SHORT, out=tmp_path / "out")
    assert kept.found
    assert kept.model.parameter_count == first.model.parameter_count
    file.write_text(FILE.replace("symbol ^ self.flip", "1 - (symbol ^ self.flip)"))
    edited = train(f"{file}:Last[flip=1]", MODEL, length=4, settings=SHORT, out=tmp_path / "out")
    assert not edited.found
    assert edited.cell.key != first.cell.key
    for again in (lambda: train(first.cell.task, MODEL, length=4), lambda: load(Store(tmp_path / "out"), first.cell)):
        with pytest.raises(BadInput, match=r"last.py:Last has changed: its sha256 begins with \w{8}, not with \w{8}$"):
            again()


def test_an_object_is_trained_on_and_diagnosed_but_not_kept(tmp_path: Path) -> None:
    result = st.train(Typed(), MODEL, length=4, settings=SHORT)
    assert result.cell.task == "typed"
    assert st.diagnose(Typed(), result.model, trained=4, length=8, stream=64)["task"] == "typed"
    with pytest.raises(BadInput, match=r"give its name, such as file\.py:Typed, or leave out `out`"):
        st.train(Typed(), MODEL, length=4, settings=SHORT, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    kept = st.train(st.task("txc"), MODEL, length=4, settings=SHORT, out=tmp_path / "out")
    assert kept.cell.task == "txc"


def test_the_command_line_trains_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("last.py").write_text(FILE)
    settings = [part for key, value in SHORT.items() for part in ("--set", f"{key}={value}")]
    line = ["train", "last.py:Last", MODEL, "--length", "4", "--out", "out", *settings]
    assert main(line) == 0
    assert "last.py:Last, mlp[hidden=4]: " in capsys.readouterr().out
    Path("last.py").write_text(FILE + "# edited\n")
    assert main(line) == 0
    assert len(list(Store(Path("out")).records())) == 2
    Path("last.py").write_text(FILE.replace("return symbol", "return {}[symbol]"))
    assert main(line) == 2
    assert "last.py:Last fails: KeyError" in capsys.readouterr().err
