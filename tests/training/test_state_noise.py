"""Noise on the state while training: the same signs wherever they are drawn, none in tests, none in old keys."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import statetrack as st
from statetrack.models import Replicas, model
from statetrack.ops.noise import Noise, mix, normals, signed, signs
from statetrack.tasks.draws import STEP
from statetrack.training import checkpoint, loop
from statetrack.training.noise import StateNoise, step_by_step
from statetrack.training.protocol import PROTOCOLS
from statetrack.training.run import cell_protocol

SHORT = {"batch": 8, "check_every": 5, "most_checks": 2, "polish": 10, "warmup": 0, "validation_rows": 16}
NAMES = (
    "e88-gain-1l-small[heads=1,n_state=4]", "e88-gain-1l-small[layers=3]", "e88-gain-r2",
    "e88-gain-r2[heads=1,n_state=5,learned_start=true]", "deltanet-neg", "tanh-rnn[hidden=4]", "gru[hidden=4]",
    "lstm[hidden=4]", "m2rnn", "mamba2-4l", "linear-rnn[hidden=4]",
)  # fmt: skip


def plain_mix(z: int) -> int:
    mask = 2**64 - 1
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def test_signs_are_the_bits_of_the_hash() -> None:
    """Against whole numbers of Python."""
    keys = [5, -7, 2**62]
    found = signs(torch.tensor(keys), 150).tolist()
    for key, row in zip(keys, found):
        words = [plain_mix((key + (n + 1) * STEP) % 2**64) for n in range(3)]
        assert row == [2 * (words[place // 64] >> (place % 64) & 1) - 1 for place in range(150)]


def test_signs_are_balanced_and_independent() -> None:
    found = signs(torch.arange(64), 4096).double()
    assert abs(float(found.mean())) < 0.01
    assert float((found @ found.T / 4096 - torch.eye(64)).abs().max()) < 0.1


@pytest.mark.parametrize("name", NAMES)
def test_every_family_is_moved_in_every_step(name: str) -> None:
    """Step by step by hand, with the noise of a replica alone, gives the same logits."""
    replicas = Replicas([_built(name, seed) for seed in (3, 4)])
    ids = torch.from_numpy(np.random.default_rng(0).integers(0, 2, (2, 5, 6)))
    updates = torch.tensor([7, 9])
    noise = StateNoise(0.25, [3, 4], torch.device("cpu"))
    with torch.no_grad():
        together = noise.logits(replicas, ids, updates)
        for row, seed in enumerate((3, 4)):
            alone = StateNoise(0.25, [seed], torch.device("cpu"))
            single = alone.logits(Replicas([replicas.one(row)]), ids[row : row + 1], updates[row : row + 1])
            torch.testing.assert_close(single[0], together[row], atol=1e-4, rtol=1e-4)
        quiet = StateNoise(0.0, [3, 4], torch.device("cpu")).logits(replicas, ids, updates)
        torch.testing.assert_close(quiet, replicas(ids), atol=1e-4, rtol=1e-4)
        assert not torch.allclose(together[:, :, 1:], quiet[:, :, 1:], atol=1e-4)
        torch.testing.assert_close(together[:, :, 0], quiet[:, :, 0], atol=1e-4, rtol=1e-4)
        other = noise.logits(replicas, ids, updates + 1)
        assert not torch.allclose(other, together)


@pytest.mark.parametrize("name", NAMES)
def test_noise_inside_the_scans_is_the_noise_put_on_step_by_step(name: str) -> None:
    """Logits and gradients, with layers and replicas beside one another. The linear RNN trains so on a GPU alone."""
    replicas = Replicas([_built(name, seed) for seed in (3, 4)])
    inside = name.startswith(("e88", "deltanet", "m2rnn", "tanh-rnn", "gru", "lstm"))
    assert replicas.takes_noise == inside
    inside |= name.startswith("linear-rnn")
    ids = torch.from_numpy(np.random.default_rng(0).integers(0, 2, (2, 5, 19)))
    noise = Noise(torch.tensor([11, 12]), 0.25)
    found = []
    for logits in (step_by_step, lambda *given: given[0].noisy(*given[1:]) if inside else step_by_step(*given)):
        out = logits(replicas, ids, noise)
        weights = torch.arange(out.numel()).view_as(out) % 7 - 3.0
        found.append([out, *torch.autograd.grad(out, list(replicas.parameters()), weights, allow_unused=True)])
    for mine, wanted in zip(*found):
        torch.testing.assert_close(mine, wanted, atol=1e-3, rtol=1e-3)


def _built(name: str, seed: int) -> torch.nn.Module:
    from statetrack.training.weights import built

    return built(name, st.task("txc"), seed)


@pytest.mark.parametrize("name", ["e88-gain-r2[heads=1,n_state=4]", "gru[hidden=4]"])
def test_gaussian_noise_is_the_same_inside_a_scan_and_step_by_step(name: str) -> None:
    replicas = Replicas([_built(name, seed) for seed in (3, 4)])
    ids = torch.from_numpy(np.random.default_rng(0).integers(0, 2, (2, 5, 9)))
    kinds = {kind: StateNoise(0.25, [3, 4], torch.device("cpu"), kind) for kind in ("sign", "gaussian")}
    updates = torch.tensor([7, 9])
    noise = Noise(mix(kinds["sign"].keys + updates * signed(STEP)), 0.25, gaussian=True)
    with torch.no_grad():
        found = {kind: each.logits(replicas, ids, updates) for kind, each in kinds.items()}
        torch.testing.assert_close(found["gaussian"], step_by_step(replicas, ids, noise), atol=1e-4, rtol=1e-4)
        assert not torch.allclose(found["gaussian"][:, :, 1:], found["sign"][:, :, 1:], atol=1e-4)
        alone = StateNoise(0.25, [4], torch.device("cpu"), "gaussian")
        single = alone.logits(Replicas([replicas.one(1)]), ids[1:], updates[1:])
        torch.testing.assert_close(single[0], found["gaussian"][1], atol=1e-4, rtol=1e-4)


def test_gaussian_noise_is_normal_and_independent() -> None:
    drawn = normals(torch.arange(64), 4096)
    assert drawn.isfinite().all()
    for power, moment in ((1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0)):
        assert abs(float((drawn**power).mean()) - moment) < 0.05
    assert float((drawn @ drawn.T / 4096 - torch.eye(64)).abs().max()) < 0.1


def test_gaussian_noise_is_trained_with_and_named_in_the_cell() -> None:
    name, given = "e88-gain-1l-small[heads=1,n_state=4]", {"settings": SHORT, "words": 0, "progress": False}
    sign, normal = (
        st.train("txc", name, length=8, state_noise=0.2, noise_kind=kind, **given) for kind in ("sign", "gaussian")
    )
    assert "noise_kind" not in sign.cell.protocol
    assert normal.cell.protocol["noise_kind"] == "gaussian"
    assert any(not torch.equal(x, normal.model.state_dict()[key]) for key, x in sign.model.state_dict().items())
    with pytest.raises(st.BadInput, match="noise_kind=uniform should be sign or gaussian"):
        PROTOCOLS["curriculum"].with_changes(noise_kind="uniform")


def test_a_run_that_goes_on_ends_with_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise does not repeat and does not depend on where a run was cut."""
    name = "e88-gain-1l-small[heads=1,n_state=4]"
    whole = st.train("txc", name, length=8, state_noise=0.2, settings=SHORT, words=0, progress=False)
    saves = []

    class Cut(Exception):
        pass

    def save(path: Path, *given: object) -> None:
        real(path, *given)
        saves.append(path)
        if len(saves) == 2:
            raise Cut

    real = checkpoint.save
    monkeypatch.setattr(loop, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "save", save)
    with pytest.raises(Cut):
        st.train("txc", name, length=8, state_noise=0.2, settings=SHORT, words=0, out=tmp_path, progress=False)
    monkeypatch.setattr(checkpoint, "save", real)
    cut = st.train("txc", name, length=8, state_noise=0.2, settings=SHORT, words=0, out=tmp_path, progress=False)
    for key, weight in whole.model.state_dict().items():
        assert torch.equal(weight, cut.model.state_dict()[key]), key
    plain = st.train("txc", name, length=8, settings=SHORT, words=0, progress=False)
    assert any(
        not torch.equal(weight, plain.model.state_dict()[key]) for key, weight in whole.model.state_dict().items()
    )


def test_cells_without_noise_keep_their_keys() -> None:
    assert "state_noise" not in cell_protocol(PROTOCOLS["curriculum"])
    assert cell_protocol(PROTOCOLS["curriculum"].with_changes(state_noise=0.2))["state_noise"] == 0.2


def test_a_model_without_a_state_is_refused() -> None:
    with pytest.raises(st.BadInput, match="keeps no state"):
        st.train("txc", "mlp", length=4, state_noise=0.1, settings=SHORT, progress=False)
    assert model("mlp", inputs=2, outputs=2).parameter_count
