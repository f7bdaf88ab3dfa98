"""Hand-made networks that hold for ever are proved, of every kind that the checker knows."""

from __future__ import annotations

import time

import numpy as np
import pytest

import statetrack as st
from statetrack.certificates.certify import kind_of, machine_of, prove, tensors_of
from statetrack.certificates.checker import check
from statetrack.certificates.checker.networks import NETWORKS
from statetrack.models import SequenceModel
from statetrack.models.witnesses import automaton, permutations, toggle

REGULAR = ("txc", "fsm", "xor_lag", "mod_counter", "flip_flop", "cycle_navigation", "even_pairs")
SECONDS = 60.0


CELLS = {"tanh-rnn": "tanh", "gru": "gru", "lstm": "lstm"}
EVERY = [(kind, name) for kind in CELLS for name in REGULAR]
EVERY += [("e88-gain", "txc"), ("e88-gain-reflections", "s3_composition")]


def witness(kind: str, name: str) -> SequenceModel:
    if kind in CELLS:
        task = st.task(name)
        machine = machine_of(task)
        answers = np.maximum(machine.answers, 0)  # where nothing is asked, anything may be said
        return automaton(machine.steps, answers, cell=CELLS[kind], outputs=task.outputs)
    elements = st.group("s3").elements
    return toggle([[0, 1], [1, 0]]) if kind == "e88-gain" else permutations(elements, elements)


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_a_witness_is_proved(kind: str, name: str) -> None:
    model, task = witness(kind, name), st.task(name)
    assert kind_of(model) == kind
    found = prove(task.name, machine_of(task), model, kind, "a witness", time.monotonic() + SECONDS)
    assert found is not None
    assert check(found[0], tensors_of(model)).covers_float32


def test_every_kind_has_a_witness() -> None:
    assert {kind for kind, _ in EVERY} == set(NETWORKS)
