"""What a shell is told when it asks how a line may go on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from statetrack.cli import main
from statetrack.models.catalogue import entries
from statetrack.tasks.catalogue import names

BASH = {"_STATETRACK_COMPLETE": "complete_bash"}


def asked(line: str) -> dict[str, str]:
    """What bash sets for a line whose last word is not finished."""
    return {**BASH, "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("statetrack sw", ["sweep"]),
        ("statetrack train --see", ["--seed", "--seeds"]),
        ("statetrack show fs", ["fsm"]),
        ("statetrack floors txc fs", ["fsm"]),
        ("statetrack train txc mamba2-32l-", ["mamba2-32l-neg"]),
        ("statetrack evaluate txc w.safetensors --model mamba2-32l-", ["mamba2-32l-neg"]),
        ("statetrack predict linear-rnn-n", ["linear-rnn-nobias"]),
        ("statetrack reflections psl2_7", ["psl2_7"]),
        ("statetrack sweep demo", ["demo"]),
        ("statetrack ask s5 --solver ora", ["oracle"]),
        ("statetrack list nc", ["nc1_groups"]),
        ("statetrack show mine.p", []),  # then bash completes file names
        ("statetrack --show", []),  # for whom it is hidden
    ],
)
def test_names_verbs_and_options(
    line: str, told: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in asked(line).items():
        monkeypatch.setenv(name, value)
    assert main() == 0
    printed, said = capsys.readouterr()
    assert printed.split() == told
    assert not said


def test_all_tasks_and_models_are_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for line, known in (("statetrack ask ", names()), ("statetrack train txc ", entries())):
        for name, value in asked(line).items():
            monkeypatch.setenv(name, value)
        assert main() == 0
        assert capsys.readouterr().out.split() == list(known)


def test_it_is_quick_as_no_heavy_library_is_imported() -> None:
    code = (
        "import sys; from statetrack.cli import main; main(); "
        "print(sorted({'torch', 'numba', 'transformers', 'pandas', 'pyarrow'} & set(sys.modules)), file=sys.stderr)"
    )
    for line in ("statetrack train t", "statetrack train txc e", "statetrack sweep d", "statetrack ask s5 --solver i"):
        environment = {**os.environ, **asked(line)}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        assert done.stderr == "[]\n"


def test_a_broken_package_says_nothing_into_the_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> list[str]:
        print("a package is broken", file=sys.stderr)
        return ["txc"]

    monkeypatch.setattr("statetrack.tasks.catalogue.names", broken)
    for name, value in asked("statetrack show t").items():
        monkeypatch.setenv(name, value)
    assert main() == 0
    assert capsys.readouterr() == ("txc\n", "")


def test_bash_completes_after_it_is_installed(tmp_path: Path) -> None:
    """The command installs it into the settings of a shell, and a shell that has read them completes."""
    place = tmp_path / "bin"
    place.mkdir()
    (place / "statetrack").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m statetrack "$@"\n')
    (place / "statetrack").chmod(0o755)
    home = {**os.environ, "HOME": str(tmp_path), "PATH": f"{place}:{os.environ['PATH']}"}
    install = ["statetrack", "--install-completion", "bash"]
    named = {**home, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # else it asks which shell has started it
    done = subprocess.run(install, env=named, capture_output=True, text=True, check=True)
    assert f"completion installed in {tmp_path}" in done.stdout
    script = """. ~/.bashrc
    COMP_WORDS=(statetrack show fs); COMP_CWORD=2
    _statetrack_completion statetrack && echo "${COMPREPLY[@]}" """
    done = subprocess.run(["bash", "-c", script], env=home, capture_output=True, text=True, check=True)
    assert done.stdout == "fsm\n"


def test_the_help_names_one_of_the_two_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert "--install-completion" in shown
    assert "--show-completion" not in shown
