"""Predictions: every model has a family, every outcome its reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import statetrack as st
from statetrack.errors import BadInput
from statetrack.models import ModelEntry, catalogue, find
from statetrack.models.catalogue import CATALOGUE
from statetrack.theory import predict
from statetrack.theory.predictions.answers import COLUMNS, OUTCOMES
from statetrack.theory.predictions.families import FAMILIES, has_family, table
from statetrack.theory.predictions.rules import RULES
from statetrack.theory.predictions.sources import SOURCES

WEIGHTS = {
    # order-preserving diagonals: no cycles, at any depth
    ("mamba2-4l", "txc"): "cannot",
    ("mamba2-32l", "txc"): "cannot",
    ("mamba2-32l", "s5"): "cannot",
    ("mamba2-32l", "flip_flop"): "every length",
    ("mamba2-4l", "rtc"): "every length",
    ("e88-1l", "txc"): "cannot",
    ("e88-4l", "txc"): "cannot",
    ("e88-1l-notanh", "txc"): "cannot",
    ("e88-1l-notanh", "rtc"): "every length",
    # contraction: fading memory
    ("e88-1l", "fsm"): "fades",
    ("e88-1l", "flip_flop"): "fades",
    ("e88-1l", "rtc"): "fades",
    ("e88-published-1l", "txc"): "fades",
    ("e88-1l", "stream.echo"): "unknown",
    # eigenvalues in [-1, 1]
    ("mamba2-4l-neg", "txc"): "every length",
    ("mamba2-4l-neg", "mod_counter[m=4]"): "every length",
    ("mamba2-32l-neg", "mod_counter[m=3]"): "cannot",
    ("mamba2-32l-neg", "a5"): "cannot",
    ("mamba2-4l-neg", "z2_5"): "cannot",
    ("mamba2-8l-neg", "z2_5"): "every length",
    ("deltanet", "txc"): "cannot",
    ("gated-deltanet", "txc"): "cannot",
    ("deltanet-neg", "txc"): "every length",
    ("deltanet-neg", "z2_3"): "every length",
    ("deltanet-neg", "mod_counter[m=3]"): "cannot",
    # r reflections
    ("deltaproduct-2", "s3"): "fades",
    ("deltaproduct-2", "s4"): "fades",
    ("deltaproduct-2", "a5"): "fades",
    ("deltaproduct-3", "s5"): "cannot",
    ("deltaproduct-4", "s5"): "fades",
    ("deltaproduct-4", "s9"): "cannot",
    ("deltanet-neg", "cups"): "fades",
    # E88 with gain
    ("e88-gain-1l", "txc"): "every length",
    ("e88-gain-1l", "mod_counter[m=3]"): "cannot",
    ("e88-gain-1l", "s3"): "cannot",
    ("e88-gain-4l", "s3"): "unknown",
    ("e88-gain-1l", "stream.xor"): "every length",
    ("e88-gain-r2", "s3"): "every length",
    ("e88-gain-r4", "s5"): "every length",
    ("e88-gain-r2", "a5"): "unknown",
    # a linear recurrence, none, and any
    ("linear-rnn", "rtc"): "every length",
    ("linear-rnn", "fsm"): "every length",
    ("linear-rnn", "txc"): "cannot",
    ("linear-rnn-nobias", "rtc"): "cannot",
    ("linear-rnn-nobias", "fsm"): "every length",
    ("linear-rnn", "regex[pattern=(aa)*,alphabet=a]"): "every length",
    ("mlp", "fsm"): "cannot",
    ("mlp", "regex[pattern=(a|b)*b]"): "every length",
    ("tanh-rnn", "s5"): "every length",
    ("lstm", "rtc"): "every length",
    ("gru", "rtc"): "cannot",
    ("m2rnn", "a5"): "every length",
    # attention of bounded depth
    ("transformer", "s5"): "grows with depth",
    ("transformer-rope", "a5"): "grows with depth",
    ("transformer", "rtc"): "every length",
    ("transformer", "s3"): "unknown",
}

TRAINING = {
    ("e88-1l", "txc"): "cannot",
    ("e88-gain-1l", "txc"): "every length",
    ("gated-deltanet-neg", "txc"): "fades",
    ("deltaproduct-2", "s3"): "fades",
    ("e88-gain-r2", "s3"): "every length",
    ("e88-gain-r4", "a5"): "fades",
    ("e88-gain-r4", "s5"): "unknown",
    ("linear-rnn", "rtc"): "every length",
    ("transformer", "txc"): "cannot",
    ("lstm", "modular_arithmetic"): "every length",
    ("gru", "txc"): "unknown",
    ("mlp", "txc"): "cannot",
}


@pytest.mark.parametrize(("model", "task"), WEIGHTS)
def test_about_weights(model: str, task: str) -> None:
    assert predict(model, st.task(task)).outcome == WEIGHTS[model, task]


@pytest.mark.parametrize(("model", "task"), TRAINING)
def test_about_training(model: str, task: str) -> None:
    assert predict(model, st.task(task), about="training").outcome == TRAINING[model, task]


def test_a_prediction_says_why_and_whence() -> None:
    for model in CATALOGUE:
        for task in ("txc", "rtc", "s3", "flip_flop", "track_the_stat", "dyck"):
            for about in ("weights", "training"):
                known = predict(model, st.task(task), about)
                assert known.outcome in OUTCOMES
                assert known.source in SOURCES
                assert known.precision in COLUMNS
                assert set(known.row) == (set(COLUMNS) if about == "weights" else set())
                assert known.status in ("proved", "assumed", "conditional", "measured", "open")
                assert (known.status == "open") == (known.outcome == "unknown")
                assert known.about == about
                assert SOURCES[known.source] in known.text()
                assert json.loads(json.dumps(known.to_dict()))["why"]


def test_what_cannot_exist_cannot_be_found() -> None:
    for model in CATALOGUE:
        for task in ("txc", "mod_counter[m=3]", "fsm"):
            if predict(model, st.task(task)).outcome == "cannot":
                assert predict(model, st.task(task), "training").outcome == "cannot"


def test_families_as_data() -> None:
    assert set(FAMILIES) == set(RULES) == {model.family for model in CATALOGUE.values()}
    page = (Path(__file__).parents[2] / "docs" / "theory.md").read_text()
    assert table() in page


@pytest.mark.parametrize(("family", "outcome"), [("diagonal", "cannot"), ("quantum", "unknown")])
def test_what_is_said_of_a_new_line_is_what_is_said_of_its_family(
    family: str, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = ModelEntry("brand-new", "their.models:New", family=family)
    monkeypatch.setitem(CATALOGUE, "brand-new", new)
    assert predict("brand-new", st.task("txc")).outcome == outcome
    assert has_family("brand-new") == (family in FAMILIES)


def test_what_has_a_family() -> None:
    assert has_family("Mamba2-12L[negative=true]")
    for text in ("mine.py:Model", "e88-gain-r2[tanh=false]", "mambo", "mlp[layers=many]"):
        assert not has_family(text)


@pytest.mark.parametrize("about", ["weights", "training"])
def test_a_model_of_ones_own_is_unknown_with_a_reason(about: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    point = EntryPoint("Theirs", "statetrack.models.mlp:MLP", "statetrack.models")
    monkeypatch.setattr(catalogue, "_offered", lambda: {"theirs": point})
    for name in ("mine.py:Model", "package.module:Model[dim=8]", "theirs", "theirs[dim=8]"):
        known = predict(name, st.task("txc"), about)
        assert (known.outcome, known.status, known.model) == ("unknown", "open", name.lower())
        assert "nothing is known here" in known.why


def test_options_stay_in_the_name_and_change_what_they_change() -> None:
    s5 = st.task("s5")
    assert (
        predict("E88-gain-r4[learned_start=true]", s5).outcome == predict("e88-gain-r4", s5).outcome == "every length"
    )
    assert predict("E88-gain-r4[learned_start=true]", s5).model == "e88-gain-r4[learned_start=true]"
    assert predict("deltaproduct-3[reflections=4]", s5).outcome == "fades"  # and not "cannot", as with three
    assert predict("mamba2-4l-neg[layers=8]", st.task("z2_5")).outcome == "every length"
    assert predict("mamba2-4l[negative=true]", st.task("txc")).outcome == "every length"  # not "cannot", as mamba2-4l
    assert predict("e88-gain-r4[tanh=false]", s5).outcome == "unknown"  # no line has that recurrence


def test_names() -> None:
    assert find("Mamba2-32L").layers == 32
    assert find("mamba2-64l-neg").family == "signed-diagonal"
    assert find("e88-gain-2l").layers == 2
    with pytest.raises(BadInput, match="unknown model 'mambo'"):
        find("mambo")
    with pytest.raises(BadInput, match="unknown model 'mamba2-4x'; did you mean mamba2-4l"):
        find("mamba2-4x[dim=8]")
    with pytest.raises(BadInput, match="about='both'"):
        predict("mlp", st.task("txc"), about="both")
