"""Eigenvalues of a step, against finite differences and known matrices."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import statetrack as st
from statetrack.diagnosis.eigenvalues import Spectrum, arnoldi, blocks, eigenvalues, spectrum, step_jacobian
from statetrack.diagnosis.trajectories import flat
from statetrack.models import SequenceModel, State
from statetrack.models.witnesses import toggle


def some_state(model: SequenceModel, steps: int = 6) -> State:
    ids = torch.randint(2, (1, steps), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        return model.forward_from(ids, model.initial_state(1))[1]


def by_differences(model: SequenceModel, symbol: int, state: State, width: float = 1e-6) -> np.ndarray:
    """(f(s + h e_i) - f(s - h e_i)) / 2h, column by column, in double precision."""
    model = model.double()
    parts = [part.double() for part in state]
    size = sum(part.numel() for part in parts)

    def after(vector: torch.Tensor) -> torch.Tensor:
        split = vector.split([part.numel() for part in parts])
        moved = tuple(piece.reshape(part.shape) for piece, part in zip(split, parts))
        new = model.forward_from(torch.tensor([[symbol]]), moved)[1]
        return torch.cat([part.flatten() for part in new])

    centre = torch.cat([part.flatten() for part in parts])
    with torch.no_grad():
        columns = [
            (after(centre + width * unit) - after(centre - width * unit)) / (2 * width)
            for unit in torch.eye(size, dtype=torch.float64)
        ]
    return torch.stack(columns, dim=1).numpy()


@pytest.mark.parametrize(
    ("name", "options"),
    [("e88-gain-1l-small", {"heads": 2, "n_state": 4}), ("e88-published-1l-small", {"heads": 2, "n_state": 4}),
     ("gated-deltanet-neg", {"heads": 1, "n_state": 4}), ("lstm", {"hidden": 8}), ("linear-rnn", {"hidden": 8})],
)  # fmt: skip
def test_the_jacobian_and_its_eigenvalues_equal_finite_differences(name: str, options: dict[str, int]) -> None:
    model = st.model(name, inputs=2, outputs=2, seed=2, **options)
    state = some_state(model)
    mine = step_jacobian(model, 1, state)
    expected = by_differences(model, 1, state)
    np.testing.assert_allclose(mine, expected, atol=1e-5)
    ours, theirs = (np.sort(np.abs(torch.linalg.eigvals(torch.from_numpy(m)).numpy())) for m in (mine, expected))
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_arnoldi_finds_the_leading_and_the_most_negative() -> None:
    model = st.model("e88-published-1l-small", inputs=2, outputs=2, seed=0)
    state = some_state(model, 20)
    dense = Spectrum.of(np.linalg.eigvals(step_jacobian(model, 1, state)))
    few = Spectrum.of(arnoldi(model, 1, state))
    assert few.largest == pytest.approx(dense.largest, rel=1e-2)
    assert few.most_negative == pytest.approx(dense.most_negative, abs=1e-2)


def test_the_linear_rnn_has_the_eigenvalues_of_its_matrix() -> None:
    model = st.model("linear-rnn", inputs=2, outputs=2, seed=0, hidden=6)
    with torch.no_grad():
        model.A.copy_(torch.diag(torch.tensor([-0.9, 0.5, 0.1, 0.2, 0.3, 0.95])))
    found = eigenvalues(st.task("txc"), model, 16, 0)
    for symbol in found["symbols"]:
        assert symbol["largest"] == pytest.approx(0.95, abs=1e-5)
        assert symbol["most_negative"] == pytest.approx(-0.9, abs=1e-5)
    assert found["negative"]


def test_a_one_flips_and_a_zero_keeps_in_the_hand_set_parity() -> None:
    """Along k the slope is (a - b) (1 - s^2), and where nothing is written s is 0: a - b = 2 / (1 + e^-3) (1 - 2)."""
    zero, one = eigenvalues(st.task("txc"), toggle([[0, 1], [1, 0]]), 16, 0)["symbols"]
    assert zero["most_negative"] is None
    assert one["most_negative"] == pytest.approx(-2 / (1 + np.exp(-3)), abs=1e-3)


def test_without_a_delta_rule_no_step_flips() -> None:
    found = eigenvalues(st.task("txc"), st.model("e88-1l-small", inputs=2, outputs=2, seed=0), 16, 0)
    assert not found["negative"]
    assert "no step flips" in found["says"]


def test_a_sketch_keeps_distances() -> None:
    from statetrack.diagnosis.trajectories import Sketch

    x = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 20_000)).astype(np.float32))
    kept = Sketch(20_000)(x)
    assert kept.shape == (2, 1024)
    assert float((kept[0] - kept[1]).norm()) == pytest.approx(float((x[0] - x[1]).norm()), rel=0.1)
    assert flat((x[:, :4], x[:, 4:6])).shape == (2, 6)


def test_a_convolutions_window_makes_no_negative_eigenvalue() -> None:
    """Mamba-2's decays are positive and its windows only shift: a step's eigenvalues are 0 or positive."""
    model = st.model("mamba2-4l", inputs=2, outputs=2, seed=0)
    assert blocks(model, 1, some_state(model)) == [slice(part, part + 1) for part in range(8)]
    found = eigenvalues(st.task("txc"), model, 12, 0)
    assert found["method"].startswith("Arnoldi")
    assert not found["negative"]


def test_block_by_block_they_are_those_of_the_whole_matrix() -> None:
    """Two layers of an LSTM: h and c of a layer act on each other, and on the layer above."""
    model = st.model("lstm", inputs=2, outputs=2, seed=0, layers=2, hidden=6, dim=5)
    state = some_state(model)
    whole = np.linalg.eigvals(step_jacobian(model, 1, state))
    found = spectrum(model, 1, state).values
    assert np.sort(np.abs(found)) == pytest.approx(np.sort(np.abs(whole)), abs=1e-4)
