"""Gradients in the state, against a loop that a reader can check."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import statetrack as st
from statetrack.diagnosis.gradient import gradient, per_step, reaches, state_gradients
from statetrack.models import SequenceModel


def by_steps(
    model: SequenceModel, ids: torch.Tensor, targets: torch.Tensor, stops: list[int], last: bool
) -> np.ndarray:
    """The same norms: step by step, each row and stop on its own, from a fresh leaf at the stop."""
    norms = np.zeros((len(stops), len(ids)))
    for row in range(len(ids)):
        for i, stop in enumerate(stops):
            state = model.initial_state(1)
            for t in range(stop):
                _, state = model.step(ids[row : row + 1, t], state)
            leaves = tuple(part.detach().clone().requires_grad_() for part in state)
            state, losses = leaves, []
            for t in range(stop, ids.shape[1]):
                logits, state = model.step(ids[row : row + 1, t], state)
                losses.append(F.cross_entropy(logits, targets[row : row + 1, t]))
            (losses[-1] if last else torch.stack(losses).sum() / ids.shape[1]).backward()
            squares = [leaf.grad.double().square().sum() for leaf in leaves if leaf.grad is not None]
            norms[i, row] = float(torch.stack(squares).sum().sqrt())
    return norms


@pytest.mark.parametrize(
    "name", ["e88-gain-1l-small", "e88-published-1l-small", "gated-deltanet-neg", "lstm", "mamba2-4l", "linear-rnn"]
)
def test_norms_equal_a_plain_loop_through_step(name: str) -> None:
    """Of the loss at the end and of the mean over all positions, of which those behind the state depend on it."""
    model = st.model(name, inputs=2, outputs=2, seed=3)
    draws = torch.Generator().manual_seed(0)
    ids, targets = torch.randint(2, (2, 9), generator=draws), torch.randint(2, (2, 9), generator=draws)
    stops = [1, 4, 8]
    both = state_gradients(model, ids, targets, torch.ones(2, 9), stops)
    assert both is not None
    for mine, last in zip(both, (True, False)):
        np.testing.assert_allclose(mine.numpy(), by_steps(model, ids, targets, stops, last), rtol=2e-4, atol=1e-9)


def test_the_factor_a_step_of_a_known_gradient() -> None:
    """d a_T / d a_t = gain^(T - t): without noise the norm falls by the gain at every step back."""
    from tests.diagnosis.fading import Fading

    found = gradient(st.task("txc"), Fading(0.9, 0.0), 32, 4, 0)
    assert found["per_step"] == pytest.approx(0.9, rel=1e-3)
    assert found["loss_position"] == 32
    assert max(found["position"]) == 31
    assert len(found["over_all"]) == len(found["norm"])


def test_a_norm_that_vanishes_has_a_reach() -> None:
    stops = np.array([2, 10, 18, 19])
    assert reaches(stops, np.array([1e-9, 1e-4, 0.5, 1.0]), 20) == 2
    assert reaches(stops, np.zeros(4), 20) == 0
    assert per_step(stops, np.zeros(4)) is None
