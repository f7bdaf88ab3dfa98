"""Three forms of E88 on TXC, trained at 64: one fades, one stays apart, one does neither."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import statetrack as st
from statetrack.results import Store
from statetrack.training.weights import load

WEIGHTS = Path(__file__).parent / "weights"


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, Any]]:
    store = Store.existing(WEIGHTS)
    cells = [record.cell for record in store.records()]
    return {
        cell.subject: st.diagnose(cell.task, load(store, cell), trained=64, length=512, stream=1024, seed=cell.seed)
        for cell in cells
    }


def test_the_published_form_fades_within_a_factor_of_two_of_what_is_predicted(found: dict[str, Any]) -> None:
    here = found["e88-published-1l-small"]
    assert (here["conclusion"], here["mechanism"]) == ("fades", "fades")
    assert here["separation"]["fitted_to"] == 64
    assert here["separation"]["healed"] < 0.6
    for level in ("at_90", "at_half"):
        assert 128 < here["error"]["measured"][level]["length"] < 1024
        assert 0.5 < here["error"]["ratio"][level] < 2
    assert here["sentences"][0].startswith("It fades: right up to about")
    assert here["automaton"]["equal"]
    assert here["eigenvalues"]["negative"]


def test_the_form_with_gain_stays_apart(found: dict[str, Any]) -> None:
    here = found["e88-gain-1l-small"]
    assert (here["conclusion"], here["mechanism"]) == ("stays apart", "holds")
    assert here["sentences"][0].startswith("States stay apart")
    assert here["separation"]["healed"] > 0.9
    assert here["error"]["measured"]["at_90"] == {"length": None, "low": None, "high": None, "beyond": 1024}
    assert here["automaton"]["equal"]
    assert min(here["probe"]["state"]["score"]) > 0.99


def test_the_documents_form_does_not_represent_parity_as_far_as_probes_tell(found: dict[str, Any]) -> None:
    here = found["e88-1l-small"]
    assert (here["conclusion"], here["mechanism"]) == ("not decodable", "never tracked")
    assert here["sentences"][0].startswith("Parity is not decodable by")
    assert here["separation"]["says"] == "never apart"
    assert not here["eigenvalues"]["negative"]
    machine = here["automaton"]
    assert not machine["equal"]
    assert machine["network_errs"]


def test_the_string_is_an_error_of_the_network(found: dict[str, Any]) -> None:
    string = [int(symbol) for symbol in found["e88-1l-small"]["automaton"]["difference"]]
    store = Store.existing(WEIGHTS)
    cell = next(cell for record in store.records() if (cell := record.cell).subject == "e88-1l-small")
    said = int(load(store, cell)(torch.tensor([string]))[0, -1].argmax())
    assert said != sum(string) % 2


def test_every_curve_has_one_length_and_numbers_in_range(found: dict[str, Any]) -> None:
    for here in found.values():
        places = len(here["positions"]["position"])
        assert {len(here["positions"][name]) for name in ("accuracy", "low", "high", "floor")} == {places}
        for low, accuracy, high in zip(*(here["positions"][name] for name in ("low", "accuracy", "high"))):
            assert low <= accuracy <= high
        assert here["positions"]["floor"] == [0.5] * places
        stops = len(here["probe"]["position"])
        assert len(here["separation"]["position"]) == len(here["probe"]["count"]["score"]) == stops
        assert 2 <= len(here["sentences"]) <= 4
        assert all(len(path) == stops for path in here["portrait"]["paths"])
        assert 0 < sum(here["portrait"]["explained"]) <= 1
