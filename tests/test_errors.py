"""What is refused, in a notebook: the line that asked for it and what is wrong, without what is inside statetrack."""

from __future__ import annotations

from pathlib import Path

import pytest

import statetrack as st
from statetrack import trust


def shown(code: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What a notebook shows when a cell fails."""
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    shell.colors = "nocolor"
    assert not shell.run_cell(code).success
    return [line for line in capsys.readouterr().out.splitlines() if line]


def test_a_notebook_shows_the_line_and_what_is_wrong_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    code = "import statetrack as st\ndef asked():\n    return st.task('fsmm')\nasked()"
    lines = shown(code, capsys)
    assert lines[:2] == ["line 4: asked()", "line 3: return st.task('fsmm')"]
    assert lines[2].startswith("BadInput: unknown task 'fsmm'; did you mean fsm")
    assert len(lines) == 3


def test_what_somebodys_own_code_raises_is_shown_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("import statetrack\nclass Mine(statetrack.Task):\n    inputs = 1 // 0\n")
    lines = shown("import statetrack as st\nst.task('mine.py:Mine')", capsys)
    assert lines[0].startswith("Traceback")
    assert any("inputs = 1 // 0" in line for line in lines)
    assert "ZeroDivisionError" in lines[-1]


def test_in_python_too_it_is_said_how_code_is_trusted(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("raise OSError\n")
    with pytest.raises(st.BadInput, match=r"\(in Python trust='.*mine\.py:Mine'\).* \(trust_code=True\)"):
        trust.require(f"{tmp_path}/mine.py:Mine", "0" * 64)
