"""Several models as one: each replica equals the model alone, in outputs, gradients and a step of training."""

from __future__ import annotations

import pytest
import torch

from statetrack.errors import BadInput
from statetrack.models import Replicas, SequenceModel, names, replicas
from tests.models.small_models import INPUTS, WITH_STATE, small

R, B, T = 3, 2, 7


def some(name: str, **options: object) -> tuple[list[SequenceModel], Replicas, torch.Tensor]:
    singles = [small(name, seed=seed, **options) for seed in range(R)]
    # A norm of one and a bias of zero in all would hide that replicas mix them up.
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for single in singles:
            for parameter in single.parameters():
                parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    ids = torch.randint(INPUTS, (R, B, T), generator=generator)
    return singles, Replicas(singles), ids


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool((a - b).abs().max() <= 1e-6 * b.abs().max().clamp(min=1) * 5)


@pytest.mark.parametrize("name", names())
def test_outputs_and_gradients_equal_the_single_model(name: str) -> None:
    singles, together, ids = some(name)
    logits = together(ids)
    logits.square().mean(dim=(1, 2, 3)).sum().backward()
    for r, single in enumerate(singles):
        alone = single(ids[r])
        alone.square().mean().backward()
        assert close(logits[r], alone)
        back = together.one(r)
        assert all(torch.equal(a, b) for a, b in zip(back.parameters(), single.parameters()))
        grads = gradient_of(together, r)
        for parameter_name, parameter in single.named_parameters():
            assert close(grads[parameter_name], parameter.grad), parameter_name


def gradient_of(together: Replicas, r: int) -> dict[str, torch.Tensor]:
    if together.folded:
        return {name: p.grad[r] for name, p in together.parts[0].named_parameters()}
    return {name: p.grad for name, p in together.parts[r].named_parameters()}


@pytest.mark.parametrize("name", [*WITH_STATE, "transformer"])
def test_streams(name: str) -> None:
    options = {} if name == "transformer" else {"learned_start": True}
    _, together, ids = some(name, **options)
    state, parts = together.initial_state(B), []
    for piece in ids.split([3, 1, 3], dim=2):
        logits, state = together.forward_from(piece, state)
        parts.append(logits)
    whole = together(ids)
    assert (torch.cat(parts, dim=2) - whole).abs().max() / whole.abs().max() < 2e-5


def test_recurrent_scans_fold_and_torch_cells_take_turns() -> None:
    assert all(
        some(name)[1].folded for name in ("e88-1l", "e88-gain-r2", "mamba2-4l", "deltanet", "m2rnn", "linear-rnn")
    )
    assert not any(some(name)[1].folded for name in ("tanh-rnn", "gru", "lstm"))


def test_the_first_pass_of_a_shape_goes_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a model makes in it and keeps for all may be used in branches, and is not to be made in them."""
    _, together, ids = some("gru")
    in_branches = []

    def side_by_side(*given: object, **options: object) -> list[object]:
        in_branches.append(options["device"])
        return real(*given, **options)

    real = replicas.side_by_side
    monkeypatch.setattr(replicas, "side_by_side", side_by_side)
    first, again = together(ids), together(ids)
    assert torch.equal(first, again)
    assert in_branches == [ids.device]
    together(ids[:, :, :3])
    assert len(in_branches) == 1
    together.forward_from(ids[:, :, :3], together.initial_state(B))
    assert len(in_branches) == 2


def test_replicas_hold_copies() -> None:
    singles, together, ids = some("e88-1l")
    expected = together(ids)
    with torch.no_grad():
        singles[0].head.weight.zero_()
        together.one(1).head.weight.zero_()
    assert torch.equal(together(ids), expected)


def test_no_decay_spares_the_same_parameters() -> None:
    singles, together, _ = some("e88-1l", learned_start=True)
    assert together.no_decay() == {f"parts.0.{name}" for name in singles[0].no_decay()}
    assert "parts.0.mixers.0.decay.A_log" in together.no_decay()
    assert "parts.0.head.weight" not in together.no_decay()


def test_what_cannot_be_replicas() -> None:
    with pytest.raises(BadInput, match="at least one model"):
        Replicas([])
    with pytest.raises(BadInput, match="one class"):
        Replicas([small("e88-1l"), small("gru")])
    with pytest.raises(BadInput, match="same shapes"):
        Replicas([small("gru"), small("gru", layers=3)])
