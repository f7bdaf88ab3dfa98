"""The classic cells as a GPU runs them, by a scan with all replicas in one pass, against torch's cells one by one."""

from __future__ import annotations

import copy

import pytest
import torch

from statetrack.models import Replicas
from statetrack.ops import Noise, rnn
from statetrack.training.noise import step_by_step
from tests.models.small_models import INPUTS, small

NAMES = ("tanh-rnn", "gru", "lstm")
R, B, T = 3, 4, 9


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, by the equations."""
    monkeypatch.setattr(rnn, "is_fused", lambda *_: True)
    monkeypatch.setenv("STATETRACK_KERNEL", "reference")


def singles(name: str) -> list[torch.nn.Module]:
    return [small(name, seed=seed, layers=2, learned_start=True) for seed in range(R)]


def with_gradients(replicas: Replicas, logits: torch.Tensor) -> list[torch.Tensor]:
    """Logits, and the gradients of every replica's weights by replica."""
    weights = torch.arange(logits.numel()).view_as(logits) % 7 - 3.0
    found = torch.autograd.grad(logits, list(replicas.parameters()), weights)
    if replicas.folded:
        return [logits, *(g[r] for r in range(R) for g in found)]
    return [logits, *found]


@pytest.mark.parametrize("inputs", [INPUTS, 60])
@pytest.mark.parametrize("name", NAMES)
def test_is_torchs_cell(name: str, inputs: int, request: pytest.FixtureRequest) -> None:
    """With an alphabet that is smaller than the tokens of a replica, and with one that is larger."""
    models = [small(name, seed=seed, layers=2, learned_start=True, inputs=inputs) for seed in range(R)]
    ids = torch.randint(inputs, (R, B, T), generator=torch.Generator().manual_seed(0))
    apart = Replicas(models)
    assert not apart.folded
    wanted = with_gradients(apart, apart(ids))
    request.getfixturevalue("scanned")
    together = Replicas(models)
    assert together.folded
    found = with_gradients(together, together(ids))
    assert len(found) == len(wanted)
    for mine, theirs in zip(found, wanted):
        torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_one_of_them_runs_on_torchs_cell_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    models = singles(name)
    ids = torch.randint(INPUTS, (B, T), generator=torch.Generator().manual_seed(0))
    wanted = [single(ids) for single in models]
    with monkeypatch.context() as as_on_a_gpu:
        as_on_a_gpu.setattr(rnn, "is_fused", lambda *_: True)
        together = Replicas(models)
    for replica in range(R):
        back = together.one(replica)
        assert all(torch.equal(a, b) for a, b in zip(back.parameters(), models[replica].parameters()))
        assert torch.equal(back(ids), wanted[replica])


@pytest.mark.parametrize("name", NAMES)
def test_one_network_without_noise_is_torchs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU as on a CPU; with noise it is scanned."""
    single = singles(name)[0]
    ids = torch.randint(INPUTS, (B, T), generator=torch.Generator().manual_seed(0))
    wanted = single(ids)
    monkeypatch.setattr(rnn, "is_fused", lambda *_: True)

    def no_scan(*_: object, **__: object) -> None:
        raise AssertionError("scanned")

    monkeypatch.setattr("statetrack.ops.rnn_scan", no_scan)
    assert torch.equal(single(ids), wanted)
    with pytest.raises(AssertionError, match="scanned"):
        single.forward_from(ids, single.initial_state(B), Noise(torch.tensor([11]), 0.25))


@pytest.mark.parametrize(("name", "widest"), [("tanh-rnn", 128), ("gru", 64), ("lstm", 64)])
def test_two_are_folded_where_a_scan_holds_their_weights_and_three_always(
    name: str, widest: int, scanned: None
) -> None:
    together = [Replicas([small(name, hidden=hidden) for _ in range(2)]) for hidden in (widest, widest + 1)]
    assert [replicas.folded for replicas in together] == [True, False]
    assert Replicas([small(name, hidden=widest + 1) for _ in range(3)]).folded
    ids = torch.randint(INPUTS, (2, B, T), generator=torch.Generator().manual_seed(0))
    assert torch.equal(together[1](ids)[1], together[1].one(1)(ids[1]))


@pytest.mark.parametrize("name", NAMES)
def test_to_keep_for_a_gradient_is_what_training_means(name: str) -> None:
    """cuDNN differentiates no cell in evaluation mode, and a diagnosis does."""
    single, ids = singles(name)[0].eval(), torch.zeros(1, 1, dtype=torch.long)
    single(ids)
    assert single.rnn.training
    with torch.no_grad():
        single(ids)
    assert not single.rnn.training


@pytest.mark.parametrize("count", [1, R])
@pytest.mark.parametrize("name", NAMES)
def test_noise_inside_the_scan_is_the_noise_put_on_step_by_step(name: str, count: int, scanned: None) -> None:
    """For replicas in one pass, for one alone, and with torch's cells."""
    replicas = Replicas(singles(name)[:count])
    assert replicas.takes_noise
    ids = torch.randint(INPUTS, (count, B, T), generator=torch.Generator().manual_seed(0))
    noise = Noise(torch.arange(11, 11 + count), 0.25)
    inside, outside = replicas.noisy(ids, noise), step_by_step(replicas, ids, noise)
    torch.testing.assert_close(inside, outside, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(inside[:, :, 1:], replicas(ids)[:, :, 1:], atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_noise_in_pieces(name: str, scanned: None) -> None:
    """The state after a scan has the noise of its last step."""
    single = singles(name)[0]
    ids = torch.randint(INPUTS, (B, 1), generator=torch.Generator().manual_seed(0))
    noise = Noise(torch.tensor([11]), 0.25)
    _, found = single.forward_from(ids, single.initial_state(B), noise)
    _, quiet = single.forward_from(ids, single.initial_state(B))
    for number, (mine, still) in enumerate(zip(found, quiet)):
        torch.testing.assert_close(mine, noise.of_tensor(number).moved(still, 0))


@pytest.mark.parametrize("name", NAMES)
def test_replicas_can_be_copied_where_cudnn_would_flatten(
    name: str, scanned: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU torch flattens the weights of a cell whenever it is copied, and fails on those of several networks."""

    def flatten(cell: torch.nn.RNNBase) -> None:
        assert all(weight.dim() < 3 for weight in cell._flat_weights), "weights of several networks"

    monkeypatch.setattr(torch.nn.RNNBase, "flatten_parameters", flatten)
    together = Replicas([small(name, seed=seed) for seed in range(R)])
    assert together.folded
    assert together.one(1).state_dict().keys() == small(name).state_dict().keys()
    assert copy.deepcopy(together).folded
