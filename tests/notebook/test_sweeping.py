"""`st.sweep` and `st.ask`: many cells and many samples from Python."""

from __future__ import annotations

import doctest
import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import statetrack as st
from statetrack.asking import Rules
from statetrack.errors import BadInput
from statetrack.sweeps import Options

QUICK = {"batch": 4, "check_every": 2, "most_checks": 1, "polish": 2, "validation_rows": 4, "words": 0}
BLOCK: dict[str, Any] = {"tasks": ["txc"], "subjects": ["mlp[hidden=4]", "gru[hidden=4]"], "lengths": [4], "seeds": 2,
                         "settings": QUICK}  # fmt: skip


@pytest.mark.needs("torch")
@pytest.mark.parametrize(
    "name", ["train", "train_many", "evaluate", "diagnose", "certify", "sweep", "ask", "load", "report"]
)
def test_every_argument_is_named_and_explained(name: str) -> None:
    call = getattr(st, name)
    parameters = inspect.signature(call).parameters
    assert " at 0x" not in str(inspect.signature(call))  # no function stands there by its address
    assert all(each.kind is not each.VAR_KEYWORD for each in parameters.values())
    told = inspect.getdoc(call) or ""
    all_told = told + (inspect.getdoc(st.train) or "") if "`train` says" in told else told
    assert [each for each in parameters if each not in all_told] == []
    examples = doctest.DocTestParser().get_examples(told)
    assert examples
    assert not any(each.exc_msg for each in examples)  # they show what works


def test_nothing_of_a_sweep_or_of_the_rules_is_missing() -> None:
    assert {each.name for each in fields(Options)} <= inspect.signature(st.sweep).parameters.keys()
    asked = inspect.signature(st.ask).parameters
    for each in fields(Rules):
        assert asked[each.name].default == each.default


@pytest.mark.needs("torch")
def test_a_sweep_gives_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = st.sweep(BLOCK, tmp_path / "out", workers=0, device="cpu")
    assert len(found) == 4
    assert {record.status for record in found} == {"done"}
    assert found.status.sweeps["sweep"]["done"] == 4
    monkeypatch.setattr("statetrack.training.loop.Stepper.__call__", None)  # nothing is trained any more
    again = st.sweep([BLOCK, BLOCK], tmp_path / "out", workers=0, device="cpu", name="again")
    assert [record.cell for record in again] == [record.cell for record in found]


@pytest.mark.needs("torch")
def test_what_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr("statetrack.training.loop.Stepper.__call__", None)
    found = st.sweep(BLOCK | {"subjects": "mlp", "seeds": 1}, tmp_path / "out", workers=0, device="cpu")
    assert [record.status for record in found] == ["failed"]
    assert "statetrack: failed: txc, mlp, length 4, seed 0: " in capsys.readouterr().err
    assert "failed: txc, mlp, length 4, seed 0: " in repr(found)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"cells": "dmo"}, "unknown sweep or .yaml file 'dmo'; did you mean demo"),
        ({"cells": [3]}, "a sweep is a name, a YAML file, or blocks"),
        ({"cells": BLOCK | {"tasks": ["tcx"]}}, "unknown task 'tcx'; did you mean"),
        ({"workers": -1}, "workers=-1 should lie in 0"),
        ({"worker": 2}, "unknown argument of sweep 'worker'; did you mean workers"),
    ],
)
@pytest.mark.needs("torch")
def test_a_wrong_sweep_is_refused_before_anything_is_made(tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        st.sweep(**{"cells": BLOCK, "out": tmp_path / "out"} | wrong)
    assert not (tmp_path / "out").exists()


def test_asking_gives_what_the_command_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import json

    from statetrack.cli import main

    found = st.ask("track_the_stat.median", solver="window-8", samples=5, length=20, out=tmp_path / "out")
    assert (len(found.records), found.unfinished, found.failures) == (5, 0, "")
    line = ["ask", "track_the_stat.median", "--solver", "window-8", "--samples", "5", "--length", "20"]
    assert main([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(found.summary()))
    assert main(line) == 0
    shown, printed = repr(found).splitlines(), capsys.readouterr().out.splitlines()
    assert [each.rstrip() for each in printed] == shown
    assert len(st.load(tmp_path / "out")) == 5
    assert "avg_max_length" in repr(st.load(tmp_path / "out"))


@pytest.mark.needs("pandas")
@pytest.mark.needs("vl_convert")
def test_what_was_asked_has_rows_and_a_figure() -> None:
    found = st.ask(st.task("txc"), solver="random", samples=6, length=12)
    frame = found.to_pandas()
    assert list(frame.of) == ["dialogue"] * 6
    assert list(frame.max_length) == [record.episode.max_length for record in found.records]
    assert found.figure().key == "txc-survival"
    whole = st.ask("s5", solver="oracle", samples=3, way="whole", length=4)
    assert (whole.summary()["accuracy"]["accuracy"], whole.summary()["chance"]) == (1.0, 1 / 120)
    assert "  chance" in repr(whole)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "solver implicit needs a model: hf:PATH_OR_NAME or PROVIDER/MODEL"),
        ({"solver": "orcale"}, "unknown solver 'orcale'; did you mean oracle"),
        ({"solver": "oracle", "way": "hole"}, "unknown way 'hole'; did you mean whole"),
        ({"solver": "oracle", "samples": 0}, "samples=0 and batch=16 should be at least 1"),
        (
            {"solver": "oracle", "distractor": ["words"]},
            "unknown argument of ask 'distractor'; did you mean distractors",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        st.ask("txc", **wrong)


def test_a_report_is_named_by_its_files(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    st.ask("txc", solver="random", samples=3, length=12, out=tmp_path / "out")
    lines = repr(st.report(tmp_path / "out")).splitlines()
    assert lines[0].startswith(f"{tmp_path}/out/report.html: ")
    assert lines[1] == f"{tmp_path}/out/report.md: the summary"
    assert len(lines[2]) > 20
    with pytest.raises(BadInput, match="unknown argument of report 'figure'; did you mean figures"):
        st.report(tmp_path / "out", figure="here")
