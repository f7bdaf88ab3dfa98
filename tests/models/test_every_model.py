"""What holds for every named configuration: pieces equal the whole, no look ahead, sizes, seeds, gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from statetrack import ops
from statetrack.errors import BadInput
from statetrack.models import SequenceModel, model, names
from tests.models.small_models import INPUTS, NAMES, OUTPUTS, ROWS, STEPS, WITH_STATE, small


def some_ids(seed: int = 0, rows: int = ROWS, steps: int = STEPS) -> torch.Tensor:
    return torch.randint(INPUTS, (rows, steps), generator=torch.Generator().manual_seed(seed))


def streamed(subject: SequenceModel, ids: torch.Tensor, pieces: list[int]) -> torch.Tensor:
    state = subject.initial_state(len(ids))
    parts = []
    for piece in ids.split(pieces, dim=1):
        logits, state = subject.forward_from(piece, state)
        parts.append(logits)
    return torch.cat(parts, dim=1)


def stepped(subject: SequenceModel, ids: torch.Tensor) -> torch.Tensor:
    state = subject.initial_state(len(ids))
    parts = []
    for token in ids.unbind(1):
        logits, state = subject.step(token, state)
        parts.append(logits)
    return torch.stack(parts, dim=1)


def relative(actual: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest difference, against the size of the numbers (a form without tanh grows)."""
    return float((actual - expected).detach().abs().max() / expected.detach().abs().max().clamp(min=1))


def check_pieces(subject: SequenceModel) -> None:
    ids = some_ids()
    whole = subject(ids)
    assert whole.shape == (ROWS, STEPS, OUTPUTS)
    assert relative(stepped(subject, ids), whole) < 2e-5
    assert relative(streamed(subject, ids, [5, 1, 6]), whole) < 2e-5


@pytest.mark.parametrize("name", NAMES)
def test_pieces_equal_the_whole(name: str) -> None:
    check_pieces(small(name))


class Devices(TorchDispatchMode):
    """Notes on which devices tensors are made."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = function(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor):
            self.seen.add(made.device.type)
        return made


@pytest.mark.parametrize("name", [name for name in NAMES if small(name).state_size])
def test_the_first_state_is_made_on_its_device(name: str) -> None:
    """A copy from elsewhere cannot be recorded in a CUDA graph."""
    subject = small(name).to("meta")
    with Devices() as devices:
        subject.initial_state(ROWS, "meta")
    assert devices.seen == {"meta"}


@pytest.mark.parametrize("name", WITH_STATE)
def test_pieces_equal_the_whole_from_a_learned_start(name: str) -> None:
    subject = small(name, learned_start=True)
    check_pieces(subject)
    subject(some_ids()).square().sum().backward()
    assert all(start.grad.abs().max() > 0 for start in subject.start)
    assert not torch.equal(subject(some_ids()), small(name)(some_ids()))


def test_mamba2_with_32_layers() -> None:
    deep = model("Mamba2-32L", inputs=2, outputs=2, seed=0)
    ids = some_ids(steps=6) % 2
    assert len(deep.mixers) == 32
    assert relative(streamed(deep, ids, [4, 2]), deep(ids)) < 2e-5


@pytest.mark.parametrize("name", NAMES)
def test_no_look_ahead(name: str) -> None:
    subject = small(name)
    ids = some_ids()
    other = ids.clone()
    other[:, 7:] = (other[:, 7:] + 1) % INPUTS
    before, after = subject(ids), subject(other)
    assert torch.allclose(before[:, :7], after[:, :7], atol=1e-6)
    assert not torch.allclose(before[:, 7], after[:, 7], atol=1e-4)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "mlp"])
def test_the_past_matters(name: str) -> None:
    subject = small(name)
    ids = some_ids()
    other = ids.clone()
    other[:, 0] = (other[:, 0] + 1) % INPUTS
    assert not torch.equal(subject(ids)[:, 3], subject(other)[:, 3])


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_finite_and_reach_every_weight(name: str) -> None:
    subject = small(name)
    subject(some_ids(rows=8)).square().sum().backward()
    for parameter_name, parameter in subject.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name
        assert parameter.grad.abs().max() > 0, parameter_name


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_fixes_the_weights_and_leaves_the_generator_alone(name: str) -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    first, second, other = small(name, seed=1), small(name, seed=1), small(name, seed=2)
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters()))
    assert torch.equal(first(some_ids()), second(some_ids()))
    assert not torch.equal(first(some_ids()), other(some_ids()))


@pytest.mark.parametrize("name", NAMES)
def test_state_size_counts_what_is_kept(name: str) -> None:
    subject = small(name)
    _, state = subject.forward_from(some_ids(steps=16), subject.initial_state(ROWS))
    assert subject.state_size == sum(part[0].numel() for part in state)
    assert all(len(part) == ROWS for part in state)


# Counted by hand, for two tokens and two classes: embedding 2 d, head 2 d + 2, norms d for each mixer and the last.
PARAMETERS = {
    # q, k, v 3 HN d; decay H d, A_log H, dt_bias H; out HN d
    "e88-1l": 4 * 128 + 2 + 2 * 128 + 4 * 512 * 128 + 16 * 128 + 32,
    "e88-4l": 4 * 64 + 2 + 5 * 64 + 4 * (4 * 128 * 64 + 4 * 64 + 8),
    "e88-published-1l": 4 * 128 + 2 + 2 * 128 + 4 * 512 * 128 + 16 * 128 + 32,
    # two rates, each H d + H
    "e88-gain-1l-small": 4 * 64 + 2 + 2 * 64 + 4 * 32 * 64 + 2 * (4 * 64 + 4),
    # in_proj d (2 d + 2 d + 2 N + H), conv (2 d + 2 N) x 5, A_log, dt_bias, D 3 H, norm 2 d, out_proj 2 d d
    "mamba2-4l": 4 * 64 + 2 + 5 * 64 + 4 * (64 * (256 + 32 + 8) + 160 * 5 + 24 + 128 + 128 * 64),
    "linear-rnn": 2 * 128 + 128 * 128 + 2 * 128 + 2,
    "linear-rnn-nobias": 128 + 128 * 128 + 2 * 128 + 2,
    "mlp": 2 * 128 + 4 * (128 * 128 + 128) + 2 * 128 + 2,
    "lstm": 2 * 128 + 4 * (2 * 128 * 128 + 2 * 128) + 2 * 128 + 2,
    "gru": 2 * 128 + 3 * (2 * 128 * 128 + 2 * 128) + 2 * 128 + 2,
    # W H V V and w_r H V
    "m2rnn": 4 * 64 + 2 + 2 * 64 + 4 * 32 * 64 + (4 * 64 + 4) + 4 * 64 + 32,
    "transformer": 4 * 64 + 2 + 9 * 64 + 2048 * 64 + 4 * (4 * 64 * 64 + 2 * 4 * 64 * 64 + 256 + 64),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameter_count_by_hand(name: str) -> None:
    assert model(name, inputs=2, outputs=2).parameter_count == PARAMETERS[name]


STATES = {
    "E88-1L": 16 * 32 * 32,
    "e88-4l": 4 * 4 * 32 * 32,
    "e88-gain-1l-small": 4 * 8 * 8,
    "Mamba2-32L": 32 * (8 * 16 * 16 + 3 * 160),
    "Linear-RNN": 128,
    "MLP": 0,
    "lstm": 256,
    "gru": 128,
    "transformer-rope": 4 * 2 * 2048 * 64,
    "e88-gain-r4": 4 * 8 * 8,
}


@pytest.mark.parametrize("name", STATES)
def test_state_size_by_hand(name: str) -> None:
    assert model(name, inputs=2, outputs=2).state_size == STATES[name]


def test_the_whole_family_is_there() -> None:
    family = {
        f"e88{form}-{size}{tanh}"
        for form in ("", "-published", "-gain")
        for size in ("1l", "4l", "1l-small")
        for tanh in ("", "-notanh")
    }
    others = {
        "linear-rnn",
        "linear-rnn-nobias",
        "mlp",
        "tanh-rnn",
        "gru",
        "lstm",
        "transformer",
        "transformer-rope",
        "m2rnn",
    }
    others |= {f"mamba2-{layers}l{end}" for layers in (4, 8, 16, 32) for end in ("", "-neg")}
    others |= {f"{gate}deltanet{end}" for gate in ("", "gated-") for end in ("", "-neg")}
    others |= {f"{kind}{count}" for kind in ("deltaproduct-", "e88-gain-r") for count in (2, 3, 4)}
    assert set(NAMES) >= family | others
    assert all(about and "\n" not in about for about in names().values())


def test_which_stream_in_constant_memory() -> None:
    assert not any(small(name).recurrent for name in ("transformer", "transformer-rope"))
    assert all(small(name).recurrent for name in ("e88-1l", "mamba2-4l", "linear-rnn", "gru", "m2rnn", "mlp"))


@pytest.mark.parametrize("name", ["transformer", "transformer-rope"])
def test_a_transformer_refuses_more_than_its_positions(name: str) -> None:
    subject = small(name)
    subject(some_ids(steps=16))
    with pytest.raises(BadInput, match=r"17 tokens .* 16 positions"):
        subject(some_ids(steps=17))
    _, state = subject.forward_from(some_ids(steps=16), subject.initial_state(ROWS))
    with pytest.raises(BadInput, match=r"17 tokens .* 16 positions"):
        subject.step(some_ids()[:, 0], state)


def test_weight_decay_leaves_decays_norms_and_biases_alone() -> None:
    e88 = small("e88-1l", learned_start=True)
    spared = e88.no_decay()
    assert {"mixers.0.decay.A_log", "mixers.0.decay.dt_bias", "norms.0.weight", "head.bias", "start.0"} <= spared
    assert not spared & {"mixers.0.project.weight", "head.weight", "embedding.weight"}
    assert {"mixers.1.A_log", "mixers.1.dt_bias", "mixers.1.D"} <= small("mamba2-4l").no_decay()
    assert "A" in small("linear-rnn").no_decay()


def test_silence_moves_nothing_without_an_input_bias() -> None:
    silent = torch.zeros(1, 20, dtype=torch.long)
    without = small("linear-rnn-nobias")(silent)
    assert torch.equal(without, without[:, :1].expand_as(without))
    with_bias = small("linear-rnn")(silent)
    assert not torch.allclose(with_bias[:, 0], with_bias[:, 19])


@pytest.mark.parametrize("name", ["e88-gain-1l", "mamba2-4l-neg", "lstm", "m2rnn", "e88-gain-r2", "transformer-rope"])
def test_autocast_keeps_the_state_in_full_precision(name: str) -> None:
    subject = small(name)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits, state = subject.forward_from(some_ids(), subject.initial_state(ROWS))
    assert logits.isfinite().all()
    if subject.recurrent:
        assert all(part.dtype == torch.float32 for part in state)
    assert relative(logits.float(), subject(some_ids())) < 0.1


def test_mamba_gives_its_scan_what_need_not_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    scan = ops.ssd_scan

    def watched(x, dt, A, B, C, **options):
        seen.extend(tensor.is_contiguous() for tensor in (x, B, C))
        return scan(x, dt, A, B, C, **options)

    monkeypatch.setattr(ops, "ssd_scan", watched)
    small("mamba2-4l")(some_ids())
    assert seen
    assert all(seen)
