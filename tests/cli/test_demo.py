"""The demo, with a sweep small enough for a test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from statetrack.cli import demo, interrupts, main
from statetrack.verdicts.tracked_length import ModelContrast

SMALL = """
name: small
protocol: curriculum
settings: {check_every: 5, most_checks: 1, polish: 5, batch: 8}
lengths: [8]
subjects: [e88-gain-1l-small, e88-1l-small, mlp]
blocks:
  - {tasks: [txc], seeds: 3}
  - {tasks: [rtc, fsm], seeds: 1}
"""


@pytest.mark.needs("torch")
def test_the_demo_shows_rows_tables_and_where_the_report_is(tmp_path, monkeypatch, capsys):
    (tmp_path / "small.yaml").write_text(SMALL)
    monkeypatch.setattr(demo, "SWEEP", str(tmp_path / "small.yaml"))
    monkeypatch.setattr(demo, "LOOKED_INTO", ("e88-1l-small",))
    monkeypatch.setattr(demo, "program", lambda: ["bin/st"])
    out = tmp_path / "out"
    assert main(["demo", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    for part in ("txc", "s5_composition", "track_the_stat.median", "e88-gain-1l-small", "mlp", "the best guess"):
        assert part in shown
    assert f"open it in a browser: {(out / 'report.html').resolve().as_uri()}" in shown
    assert shown.splitlines()[-1] == "Next: bin/st list tasks, bin/st show s5, bin/st train --help"
    records = [json.loads(path.read_text()) for path in out.glob("*.json")]
    gain = [r for r in records if (r["cell"]["task"], r["cell"]["subject"]) == ("txc", "e88-gain-1l-small")]
    longest = [next(each for each in record["evaluations"] if each.get("length") == 128) for record in gain]
    middle = sorted(each["last_32_accuracy"] for each in longest)[1]
    line = next(line for line in shown.splitlines() if line.startswith("e88-gain-1l-small"))
    assert line.split()[-1] == f"{middle:.3f}"
    assert "Diagnostics" in (out / "report.html").read_text()
    assert "  Proved as trained: right after every word, for ever" in shown
    (proof,) = out.glob("for-ever/*.proof")
    assert f"  The proof: {proof}\n  check it: bin/st verify {proof}\n" in shown
    assert main(["verify", str(proof)]) == 0
    before = proof.stat().st_mtime_ns
    demo.prove(out / demo.FOR_EVER)  # what is there is not done again
    assert proof.stat().st_mtime_ns == before
    assert len(list((out / "diagnosis").glob("*.json"))) == 2  # one cell, and what compares cells


@pytest.mark.parametrize(
    ("last", "floor", "part"),
    [
        ({"a": 1.0, "b": 0.6}, 0.5, "It tells them apart. Right to 192: a. A guess scores 0.500."),
        ({"a": 0.65, "b": 0.62}, 0.515, "does not tell the models with a state apart: they are within 0.030"),
        ({"a": 1.0, "b": 1.0}, 0.999, "where a guess scores 0.999"),
    ],
)
def test_what_the_demo_says_of_a_task(last, floor, part):
    found = ModelContrast(12, 192, max(last.values()), min(last.values()), floor, len(last))
    reached = {model: 192 if accuracy == 1 else 12 for model, accuracy in last.items()}
    assert part in demo.said(found, reached | {"mlp": 0})


def test_the_program_is_named_as_it_can_be_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(tmp_path / "bin" / "statetrack"), "demo"])
    monkeypatch.setattr("shutil.which", lambda name: f"/somewhere/{name}")
    assert interrupts.program() == ["statetrack"]
    monkeypatch.setattr("shutil.which", lambda name: None)  # it is not on the path, as in an environment of its own
    assert interrupts.program() == ["bin/statetrack"]


def test_the_demo_runs_the_shipped_sweep():
    assert demo.SWEEP == "demo"
    assert set(demo.LOOKED_INTO) <= set(demo.MODELS)
    assert Path("statetrack-demo") == demo.FOLDER
