"""`st.certify` takes what people have: a module, the result of a training, a file of weights."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import statetrack as st
from statetrack.certificates.certify import is_worth_more
from statetrack.certificates.checker import Checked, verify
from statetrack.models.witnesses import automaton
from tests.certificates.certified import PROVABLE, small

pytestmark = pytest.mark.needs("torch")
PARITY = ([[0, 1], [1, 0]], [0, 1])


def test_a_module_is_proved_and_left_as_it_is(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    model = automaton(*PARITY)
    model.train()
    said: list[str] = []
    found = st.certify("txc", model, tick=said.append)
    assert found.outcome == "proved as trained"
    assert said[0] == "hard words"
    assert model.training
    assert all(each.requires_grad for each in model.parameters())
    (tmp_path / "parity.proof").write_text(json.dumps(found.proof))
    save_file({name: each.contiguous() for name, each in model.state_dict().items()}, tmp_path / "parity.safetensors")
    checked = verify(tmp_path / "parity.proof", tmp_path / "parity.safetensors")
    assert found.checked is not None
    assert checked.epsilon == found.checked.epsilon


def test_a_training_is_taken_with_its_task(tmp_path: Path) -> None:
    result = st.train("txc", "gru[hidden=2]", length=4, words=0, batch=4, check_every=2, most_checks=1, polish=1,
                      progress=False)  # fmt: skip
    found = st.certify("txc", result, seconds=1)
    assert found.outcome == "broken by a word"
    with pytest.raises(st.BadInput, match="the result is of txc, not of rtc"):
        st.certify("rtc", result)


def test_a_file_of_ours_says_which_model_it_is_of(tmp_path: Path) -> None:
    store = small(tmp_path / "results")
    found = st.certify("txc", weights=store.path(PROVABLE, "safetensors"), seconds=2)
    assert found.outcome == "proved as trained"


@pytest.mark.parametrize(("given", "why"), [
    ({}, "give weights=FILE.safetensors, or a torch.nn.Module"),
    ({"model": "gru"}, "'gru' has no weights of its own"),
    ({"model": torch.nn.Linear(1, 1), "seconds": 0}, "seconds 0 should lie in 0..86400"),
    ({"model": torch.nn.Linear(1, 1), "trained": -1}, "length -1"),
])  # fmt: skip
def test_what_cannot_be_done_is_said(given: dict[str, object], why: str) -> None:
    with pytest.raises(st.BadInput, match=why):
        st.certify("txc", **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("float32", "regions", "worth"),
    [(0.1, 40, True), (0.9, 10, False), (0.1, 41, False)],
    ids=["more", "loses", "large"],
)
def test_a_larger_epsilon_is_not_worth_float32_or_many_regions(float32: float, regions: int, worth: bool) -> None:
    best = Checked(
        "txc", "m", "tanh-rnn", "0", epsilon=0.01, margin=1, float32=0.001, float32_logits=0.1, regions=10, states=2
    )
    found = replace(best, epsilon=0.03, float32_logits=float32, regions=regions)
    assert best.covers_float32
    assert is_worth_more(found, best) is worth
