"""Files and options that are made to break something: one line, exit code 2, nothing built and nothing run."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import pytest

from statetrack.cli import main

pytest.importorskip("torch")

LONG = "9" * 400
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi")
)
BASE = "tasks: [txc]\nsubjects: [mlp]\nlengths: [4]\n"
SWEEPS = {
    "billion laughs": (BOMB + "tasks: *i\n", "more than 200,000 parts"),
    "a date that is none": (BASE + "name: 2024-13-45\n", "line 4: cannot be read as timestamp"),
    "a tag that does not fit": (BASE + "about: !!int foo\n", "line 4: cannot be read as int"),
    "a tag of Python": (BASE + "about: !!python/name:os.system x\n", "line 4: could not determine"),
    "an empty integer": (BASE + "about: !!int ''\n", "line 4: cannot be read as int"),
    "a hundred billion seeds": (BASE + "seeds: 100000000000\n", "line 4: 100000000000 seeds: a sweep has at most"),
    "many cells": (BASE + f"seeds: 99999\ntasks2: {list(range(9))}\n", "unknown key 'tasks2'"),
    "a million cells": (BASE.replace("[4]", str(list(range(1, 101)))) + "seeds: 10000\n", "1,000,000 cells"),
    "rates in rates": (BASE + "settings: {rates: [[1]]}\n", r"line 4: rates=\[\[1\]\] should be"),
    "400 digits": (BASE + f"settings: {{batch: {LONG}}}\n", r"line 4: batch=9+\.\.\. should be a whole number"),
    "5,000 digits": (BASE + f"settings: {{batch: {LONG * 13}}}\n", "line 4: cannot be read as int"),
    "a very long hexadecimal": (BASE + f"settings: {{batch: 0x{LONG * 13}}}\n", "batch=a very long int should be"),
    "ask nobody": (BASE.replace("mlp", "'ask:'"), "line 2: 'ask:' names no model"),
    "NUL": (BASE + "name: a\0b\n", "not valid YAML: unacceptable character"),
    "NUL by its escape": (BASE + 'name: "a\\0b"\n', "line 4: name .* should be usable as the name of a file"),
    "a long name": (BASE + f"name: {LONG}\n", "should be usable as the name of a file"),
    "deep nesting": (BASE + "about: " + "[" * 5000 + "]" * 5000, "nested too deep"),
    "some nesting": (BASE + "about: " + "[" * 60 + "]" * 60, "nested more than 50 deep"),
    "itself": ("&a [*a]", "it stands inside itself"),
    "a merge with itself": ("&a {<<: *a}", "it stands inside itself"),
    "not UTF-8": ("\udcff", "cannot be read"),
}
MACHINE = "states: [a]\nalphabet: [x]\nstart: a\nsteps: {a: {x: a}}\nanswers: {a: 0}\n"
MACHINES = {
    "start is a bomb": (BOMB + MACHINE.replace("start: a", "start: *i"), "more than 200,000 parts"),
    "an alias in answers": (MACHINE.replace("[a]", "&l [a]").replace("a: 0", "a: *l"), "has the answer"),
    "an alias in start": (MACHINE.replace("[a]", "&l [a]").replace("start: a", "start: *l"), "unknown start"),
    "a key that is a list": (MACHINE + "? [a, b]\n: c\n", "found unhashable key"),
    "deep": (MACHINE.replace("a: 0", "a: " + "[" * 5000 + "]" * 5000), "nested too deep"),
    "5,000 digits": (MACHINE.replace("a: 0", f"a: {LONG * 13}"), r"has the answer '9+\.\.\.; it should be"),
    "other digits": (MACHINE.replace("a: 0", "a: ²"), "it should be a whole number"),
}  # fmt: skip
OPTIONS = {
    "--part ²/³": (["sweep", "demo", "--out", "o", "--part", "²/³"], "should be of the form 2/4"),
    "--part of many digits": (["sweep", "demo", "--out", "o", "--part", f"1/{LONG * 13}"], "should be of the form"),
    "--workers": (["sweep", "demo", "--out", "o", "--workers", "99999999"], r"should lie in 0\.\.1024"),
    "--together": (["sweep", "demo", "--out", "o", "--together", "99999999"], "should be at most 1024"),
    "--seeds": (["train", "txc", "mlp", "--seeds", "1000000000"], r"should lie in 1\.\.4096"),
    "--set": (["train", "txc", "mlp", "--set", "rates=&a [*a]"], "it stands inside itself"),
    "ask --length": (["ask", "txc", "--solver", "oracle", "--length", "100000"], "more than the 4096 inputs in turns"),
    "play --length": (["play", "txc", "--length", "100000"], "more than the 4096 inputs in turns"),
    "--set of many digits": (["train", "txc", "mlp", "--set", f"batch={LONG}"], "should be a whole number"),
}


def refused(arguments: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert re.search(said, lines[0])
    assert len(lines[0]) < 500


@pytest.mark.parametrize("case", SWEEPS)
def test_sweep_files(case: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text, said = SWEEPS[case]
    (tmp_path / "x.yaml").write_text(text, errors="surrogateescape")
    refused(["sweep", str(tmp_path / "x.yaml"), "--out", str(tmp_path / "o"), "--dry-run"], said, capfd)


@pytest.mark.parametrize("case", MACHINES)
def test_automaton_files(case: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text, said = MACHINES[case]
    (tmp_path / "x.yaml").write_text(text)
    refused(["show", f"automaton[file={tmp_path}/x.yaml]"], said, capfd)


def test_json_that_is_nested_deep(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.json").write_text("[" * 100_000)
    refused(["show", f"automaton[file={tmp_path}/x.json]"], "is not JSON", capfd)


def test_files_without_an_end(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    refused(["show", "automaton[file=/dev/zero]"], "is not a file", capfd)
    (tmp_path / "x.yaml").symlink_to("/dev/zero")
    refused(["sweep", str(tmp_path / "x.yaml"), "--out", str(tmp_path / "o")], "is not a file", capfd)
    (tmp_path / "y.yaml").write_text("a: " + " " * 2**22)
    refused(["sweep", str(tmp_path / "y.yaml"), "--out", str(tmp_path / "o")], "has more than", capfd)


@pytest.mark.parametrize("case", OPTIONS)
def test_options(case: str, capfd: pytest.CaptureFixture[str]) -> None:
    refused(*OPTIONS[case], capfd)


OWN = """
import sys
import torch

class Own(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.table, self.steps = torch.nn.Embedding(inputs, outputs), 0

    def forward(self, ids):
        out = self.table(ids)
        if torch.is_grad_enabled():  # the checks run without
            {line}
        return out
"""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("raise KeyError('lost')", r"own\.py:Own\[sha256=\w+\] fails in training: KeyError: 'lost'"),
        ("out = out[:, :1]", r"own\.py:Own\[sha256=\w+\] fails in training: "),
        ("out = out.detach()", r"own\.py:Own\[sha256=\w+\] fails in training: .*grad"),
        ("sys.exit()", r"own\.py:Own\[sha256=\w+\] fails in training: it calls sys\.exit\(\)"),
        ("sys.exit(3)", r"own\.py:Own\[sha256=\w+\] fails in training: it calls sys\.exit\(3\)"),
    ],
)
def test_models_that_fail_after_the_check(
    line: str, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.py").write_text(OWN.format(line=line))
    arguments = ["train", "txc", f"{tmp_path}/own.py:Own", "--length", "4"]
    refused_after(arguments, said, capfd)
    assert main(["-v", *arguments]) == 2
    shown = capfd.readouterr().err
    assert "Traceback (most recent call last)" in shown
    assert line.startswith("out") or line in shown  # in the user's own file, where it is his


def refused_after(arguments: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    """As `refused`, with lines of progress before."""
    assert main(arguments) == 2
    error = capfd.readouterr().err
    assert re.search(said, error.splitlines()[-1])
    assert "Traceback" not in error


@pytest.mark.parametrize("place", ["module", "constructor", "forward"])
def test_sys_exit_is_not_silence(place: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    parts = {name: "raise SystemExit" if name == place else "pass" for name in ("module", "constructor", "forward")}
    text = """
import torch
{module}
class Own(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.table = torch.nn.Embedding(inputs, outputs)
        {constructor}
    def forward(self, ids):
        {forward}
        return self.table(ids)
"""
    (tmp_path / "own.py").write_text(text.format(**parts))
    refused_after(["train", "txc", f"{tmp_path}/own.py:Own", "--length", "4"], r"it calls sys\.exit\(\)", capfd)


def test_a_sweep_names_the_model_that_fails(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.py").write_text(OWN.format(line="sys.exit()"))
    (tmp_path / "x.yaml").write_text(BASE.replace("mlp", f"'{tmp_path}/own.py:Own'"))
    line = ["sweep", str(tmp_path / "x.yaml"), "--out", str(tmp_path / "o"), "--workers", "0", "--trust-code"]
    assert main(line) == 1
    assert "fails in training: it calls sys.exit()" in capfd.readouterr().err


def test_numba_that_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from statetrack import plugins, task
    from statetrack.tasks import native

    (tmp_path / "numba").mkdir()
    (tmp_path / "numba" / "__init__.py").write_text("raise ImportError('Numba needs NumPy 2.0 or less')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("STATETRACK_NUMBA", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == "numba"]:
        monkeypatch.delitem(sys.modules, name)
    plugins.usable.cache_clear()
    plugins.say.cache_clear()
    try:
        assert task("txc").targets([1, 1, 0, 1]).tolist() == [1, 0, 0, 1]
        assert not native.available()
    finally:
        plugins.usable.cache_clear()
    said = capfd.readouterr().err.splitlines()
    assert said == ["statetrack: numba is installed and cannot be used (ImportError: Numba needs NumPy 2.0 or less); "
                    "numpy and torch take its place"]  # fmt: skip


@pytest.mark.parametrize("count", [8, 30])
@pytest.mark.parametrize("verb", ["show", "data", "floors", "ask", "predict"])
def test_products_without_end_are_refused(verb: str, count: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Of thirty factors the order alone took minutes; of eight, data wanted 153 PiB for the inputs."""
    group = "x".join(["s5"] * count)
    more = {"data": ["--length", "3", "--count", "2", "--out", "-"], "ask": ["--solver", "oracle", "--length", "3"]}
    names = ["gru", group] if verb == "predict" else [group]
    began = time.monotonic()
    assert main([verb, *names, *more.get(verb, [])]) == 2
    assert time.monotonic() - began < 20
    [line] = capsys.readouterr().err.splitlines()
    assert "IDs are given in groups of up to" in line if count == 8 else "a product may have 16" in line
