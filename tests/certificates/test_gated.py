"""A GRU and an LSTM in intervals: nothing that a step or float32 makes of a box lies outside of what is bounded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

import statetrack as st
from statetrack.certificates.certify import PROVED, certify, kind_of, maps_of, tensors_of
from statetrack.certificates.checker import Refused, check, hash_of
from statetrack.certificates.checker.gated import Cell
from statetrack.certificates.checker.networks import NETWORKS
from statetrack.certificates.cover import Cover, CoveredPart, proof_of
from statetrack.models import SequenceModel
from statetrack.models.witnesses import automaton

CELLS = ("gru", "lstm")
TOKENS, DRAWN = 2, 64
SEEDS = some.integers(0, 2**32 - 1)


def drawn(cell: str, seed: int) -> tuple[SequenceModel, Cell, Any, np.random.Generator]:
    """A cell of random weights, from small to steep, with a start; the checker's network; its maps in float64."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    hidden = int(rng.integers(1, 7))
    model = st.model(cell, inputs=TOKENS, outputs=3, hidden=hidden, dim=4, learned_start=True)
    scale = 10.0 ** rng.uniform(-1, 1)
    with torch.no_grad():
        for name, each in model.named_parameters():
            each.copy_(torch.randn(each.shape) * (0.5 if name.startswith("start") else scale))
    network = NETWORKS[kind_of(model)](tensors_of(model), TOKENS)
    assert isinstance(network, Cell)
    return model, network, maps_of(network), rng


def boxes(numbers: int, rng: np.random.Generator) -> tuple[Any, Any]:
    scale = np.where(np.arange(numbers) < numbers / 2, 1, 10.0 ** rng.uniform(0, 2))  # the cell of an LSTM is larger
    centres = scale * rng.uniform(-1, 1, (4, numbers))
    return centres, 10.0 ** rng.uniform(-4, 0, centres.shape) * (rng.random(centres.shape) < 0.9)


def stepped(model: SequenceModel, states: Any, token: int, kind: torch.dtype) -> Any:
    """The model's own step, in one kind of numbers, from states (rows, numbers)."""
    network = type(model)(inputs=TOKENS, outputs=3, cell=model.cell, hidden=model.hidden, dim=4)  # type: ignore
    weights = {name: each for name, each in model.state_dict().items() if not name.startswith("start")}
    network.load_state_dict(weights)
    network = network.to(kind)
    parts = torch.from_numpy(states).to(kind).split(network.hidden, dim=1)
    ids = torch.full((len(states),), token)
    with torch.no_grad():
        by_torch = network.step(ids, tuple(part[:, None] for part in parts))[1]
        by_scan = network.by_scan(ids[:, None], tuple(part[:, None] for part in parts), None)[1]
    return [torch.cat([part[:, 0] for part in after], dim=1).double().numpy() for after in (by_torch, by_scan)]


@pytest.mark.parametrize("cell", CELLS)
@settings(max_examples=30)
@given(seed=SEEDS)
def test_what_a_step_makes_of_a_box_lies_in_its_image(cell: str, seed: int) -> None:
    model, network, maps, rng = drawn(cell, seed)
    centres, radii = boxes(network.maps.shape[1], rng)
    edges = rng.uniform(-1, 1, (DRAWN, *centres.shape))
    edges[: DRAWN // 2] = np.sign(edges[: DRAWN // 2])  # corners, where the extremes mostly are
    points = (centres + radii * edges).reshape(-1, centres.shape[1])
    for token in range(TOKENS):
        image = network.maps.box((0, 0), token, centres, radii)
        after = stepped(model, points, token, torch.float64)[0].reshape(DRAWN, *centres.shape)
        room = 1e-12 * (1 + np.abs(after))  # of float64
        assert (image.lo <= after + room).all()
        assert (after - room <= image.hi).all()
        # The search, by sums of its own, promises hardly more than the checker will find.
        for row, (middle, wide) in enumerate(zip(centres, radii)):
            low, high = maps.box_image(maps.columns, token, (middle - wide)[None], (middle + wide)[None], 0.0)
            assert (low[0] <= image.lo[row] + 1e-3 * (1 + np.abs(low[0]))).all()
            assert (image.hi[row] - 1e-3 * (1 + np.abs(high[0])) <= high[0]).all()


@pytest.mark.parametrize("cell", CELLS)
@settings(max_examples=30)
@given(seed=SEEDS)
def test_a_small_box_has_the_image_that_slopes_give_it(cell: str, seed: int) -> None:
    """Not much wider than |J| times its radii: what only puts in the ends of each gate would be."""
    _, network, maps, rng = drawn(cell, seed)
    numbers, size = network.maps.shape[1], 1e-4
    centre = rng.uniform(-1, 1, (1, numbers))
    for token in range(TOKENS):
        image = network.maps.box((0, 0), token, centre, np.full_like(centre, size))
        near = np.concatenate([centre + np.eye(numbers) * 1e-6, centre - np.eye(numbers) * 1e-6])
        after = maps.image(maps.columns, token, near)
        slopes = np.abs(after[:numbers] - after[numbers:]).sum(axis=0) / 2e-6
        assert ((image.hi - image.lo)[0] <= 2 * size * slopes * 1.5 + 1e-5 + 1e-3 * size * 100).all()


@pytest.mark.parametrize("cell", CELLS)
@settings(max_examples=30)
@given(seed=SEEDS)
def test_a_step_in_float32_is_off_by_at_most_what_is_bounded(cell: str, seed: int) -> None:
    model, network, _, rng = drawn(cell, seed)
    centres, radii = boxes(network.maps.shape[1], rng)
    points = (centres + radii * rng.uniform(-1, 1, (DRAWN, *centres.shape))).astype(np.float32).astype(np.float64)
    for token in range(TOKENS):
        bound = network.maps.off(token, centres, radii * (1 + 1e-6) + 1e-6)  # type: ignore[attr-defined]
        flat = points.reshape(-1, centres.shape[1])
        exact = stepped(model, flat, token, torch.float64)[0].reshape(points.shape)
        for found in stepped(model, flat, token, torch.float32):
            assert (np.abs(found.reshape(points.shape) - exact) <= bound).all()


@pytest.mark.parametrize("cell", CELLS)
def test_a_witness_is_proved_and_held_to_its_claim(cell: str) -> None:
    task = st.task("txc")
    machine = task.automaton  # type: ignore[attr-defined]
    model = automaton(machine.steps, machine.answers, cell=cell)
    found = certify(task, model)
    assert found.outcome == PROVED
    assert found.checked is not None
    assert found.checked.covers_float32
    assert found.proof is not None
    tensors = tensors_of(model)
    other = "lstm" if cell == "gru" else "gru"
    for change, why in (({"epsilon": 0.9}, "is not inside"), ({"network": other}, "other gates")):
        with pytest.raises(Refused, match=why):
            check({**found.proof, **change}, tensors)
    swapped = {name: each[::-1].copy() if name.startswith("head") else each for name, each in tensors.items()}
    with pytest.raises(Refused, match="read-out"):
        check({**found.proof, "weights": hash_of(swapped)}, swapped)


@pytest.mark.parametrize("cell", CELLS)
def test_of_gates_no_balls_are_taken_and_no_state_is_left_out(cell: str) -> None:
    model, network, _, _ = drawn(cell, 0)
    numbers, tensors = network.maps.shape[1], tensors_of(model)
    balls = Cover(np.zeros((1, 1, numbers)), np.full((1, 1), 100.0), np.zeros((1, TOKENS), np.int64))
    proof = proof_of("txc", "a cell", cell, hash_of(tensors), 0.0, [balls], [CoveredPart(((0, 0),), 0)])
    with pytest.raises(Refused, match="regions are boxes"):
        check(proof, tensors)
    with pytest.raises(Refused, match="one at least"):
        check({**proof, "parts": []}, tensors)
